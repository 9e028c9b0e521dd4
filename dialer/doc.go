// Package dialer opens one connection at a time. When it cannot, its error explains why.
//
// A [WebSocket] is a value with public fields:
//
//	d := &dialer.WebSocket{URL: "wss://feed.example/v1"}
//	c, err := d.Dial(ctx)
//
// reconnect.New takes a WebSocket, which works without reconnect too. The guarantees of a dial:
//
//  1. An attempt ends with its context, at whatever stage: name lookup, TCP, a proxy,
//     TLS, the upgrade. Connecting and the handshake have limits of their own, for each
//     endpoint.
//  2. When Dial returns an error, everything that it began has ended: no socket of it is
//     open and no dial is in flight. When it returns a connection, ctx may end, and the
//     connection keeps nothing of the attempt.
//  3. Names are looked up anew for every attempt, and addresses are raced, so that an address
//     which does not answer costs a quarter of a second (RFC 8305). An endpoint that does not
//     answer does not keep the other endpoints from being tried.
//  4. No redirect is followed: it is a failure that names the host, and no header and no
//     query is sent there. The header of an answer has at most 64 KiB. An address that the server
//     of the last session has advised is followed to the hosts of the endpoints only, unless
//     [WebSocket.FollowHint] allows more.
//  5. No error holds a secret: no user, no password and no query of a URL, no value of a
//     header that we sent. A text that a server wrote is quoted and cut.
//  6. A proxy is not the server: a refusal by a proxy is a [ProxyError], and asks for no
//     new credentials. The proxy comes from the environment, as in net/http, unless
//     [WebSocket.Proxy] is set. A [Framed] and a [Dialer] use none.
//  7. If a function among the options panics, Dial panics when everything has ended, with
//     an error that has the first panic's value and stack in its text. If the function calls
//     runtime.Goexit, the attempt fails.
//
// A [Framed] opens framed connections in the same way: TCP, TLS if it is wanted, and
// nothing else.
//
//	d := &dialer.Framed{Address: "feed.example:7001", Framer: conn.Lines{}, TLS: &tls.Config{}}
//
// A [Dialer] goes where a net.Dialer goes, such as the DialContext of net/http, go-redis
// or pgx, and tries until it is connected, its context ends, or its time is over.
//
// The hooks of net/http/httptrace in a dial's context are called for names, connecting,
// TLS and the request that was written.
//
// In a browser (js) a Framed needs a DialContext. A WebSocket uses URL, URLs, Prepare, Subprotocols,
// the limits and Conn there; a header is an error, and the other options do nothing.
package dialer

// The files, in the order of a dial:
//
//	websocket, framed     the two dialers of messages, and their options
//	endpoints, hangs      which endpoint is dialed next; what all dials of a dialer share
//	advised               an address that a server has advised
//	prepare, url          the request, and the address
//	attempt, call         one attempt at one endpoint: its limits and its cleaning up
//	tcp, race             connecting: the addresses of a host, and the first that answers
//	proxy, socks5         connecting through a proxy
//	tls, upgrade, answer  the handshake
//	error                 why a dial failed
//	dialer                the net.Dialer that tries again
