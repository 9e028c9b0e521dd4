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
//     which does not answer costs a quarter of a second, and a name server that answers for only one family
//     costs a twentieth (RFC 8305). An endpoint that does not answer does not keep the other endpoints from
//     being tried, and is then tried last for 10 minutes. Until it has answered, an attempt to connect to it
//     delays the others by 2 s at most.
//  4. No redirect is followed: it is a failure that names the host, and no header and no
//     query is sent there. The header of an answer has at most 64 KiB. An address that the server
//     of the last session has advised is followed to the hosts of the endpoints only, unless
//     [WebSocket.FollowHint] allows more.
//  5. The text of no error holds a secret of the dial, also if a peer or a function of yours repeats it.
//     Secrets are the user and the query of each URL (yours, of Prepare, and advised), the login for a proxy,
//     the subprotocols, and the values of the headers except for Host, Origin and User-Agent. "..." takes the
//     place of any 8 bytes of a secret in a row, and of a whole secret of 3 to 7 bytes: as it is or escaped
//     as in a URL, in JSON or in Go, in upper or lower case. The scheme, host and path of a URL are shown. A
//     text that a peer wrote is quoted and cut. The text of a [conn.CloseError] leaves out the secrets of the
//     dial that opened the connection; its Reason, and what an [Error].Err wraps, are as they came.
//  6. A proxy is not the server: a refusal by a proxy is a [ProxyError], and asks for no
//     new credentials. The proxy comes from the environment, as in net/http, unless
//     [WebSocket.Proxy] is set. A [Framed] and a [Dialer] use none.
//  7. If a function among the options panics, Dial panics when everything has ended, with
//     an error that has the first panic's value and stack in its text. If the function calls
//     runtime.Goexit, the attempt fails. A Dialer calls Policy, Classify, Gate, Budget, Rand and
//     OnProgress on the goroutine of DialContext: their runtime.Goexit ends that goroutine once
//     the connection is closed.
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
//	tcp, lookup, race     connecting: the addresses of a host, and the first that answers
//	proxy, socks5         connecting through a proxy
//	tls, upgrade, answer  the handshake
//	error, secrets        why a dial failed, and what must not be in its text
//	dialer, waiters       the net.Dialer that tries again; the calls of it that wait for an address
