// Package wire has the tests of package conn with WebSocket servers in other languages, alone and
// behind nginx: Python's websockets, Node's ws and libwebsockets.
package wire
