// Package readers has a test that gives the same bytes, cut into the same pieces, to four clients: to
// conn.WebSocket, coder/websocket, gorilla/websocket and lxzan/gws. A small parser, called the judge and
// written from RFC 6455 and RFC 7692 alone, says which messages a client must read from the bytes, and
// how the connection must end. A client may differ only where a row of the table says so, with the reason.
//
//	go test -run TestFourClients . -v -cases 1000000 -seed 1   # as many streams as you like
//	REDIAL_LONG=1 go test -run TestFourClients . -v -timeout 2h # for an hour; -for 10m: for ten minutes
//
// If a client differs on a stream, the test prints the seed of the stream, as few of its frames as still
// show the difference, and the command that runs the stream again.
package readers
