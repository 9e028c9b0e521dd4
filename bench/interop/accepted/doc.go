// Package accepted has tests of reconnect/drain with the connections that other libraries have
// accepted: gorilla/websocket and lxzan/gws. Their closers are those of the package's doc.
package accepted
