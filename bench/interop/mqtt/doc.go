// Package mqtt has a test only: a ledger.Ledger as the sending half of MQTT 3.1.1 with QoS 1, against
// mochi's broker.
package mqtt
