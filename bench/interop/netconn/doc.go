// Package netconn has a test only: conn.NetConn under autopaho (MQTT 5, with mochi's broker), under
// golang.org/x/crypto/ssh, and under the tests of golang.org/x/net/nettest.
package netconn
