// Package readers has a test that gives the same bytes, cut into the same pieces, to four clients: to
// conn.WebSocket, coder/websocket, gorilla/websocket and lxzan/gws. A small judge, written from RFC
// 6455 and RFC 7692 alone, says what each of them must make of the bytes. A client may differ only
// where the table says so, with the reason.
//
//	go test -run TestFourClients . -v -cases 1000000 -seed 1   # as many streams as you like
//	REDIAL_LONG=1 go test -run TestFourClients . -v -timeout 2h # for an hour; -for 10m: for ten minutes
//
// A stream on which a client differs is printed with its seed, with as few frames as still show
// the difference, and with the command that runs it again.
package readers
