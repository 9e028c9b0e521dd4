// Package dialer opens connections, and explains in its errors why it could not.
//
// A [WebSocket] is a value with public fields, usable with reconnect.New or alone:
//
//	d := &dialer.WebSocket{URL: "wss://feed.example/v1"}
//	c, err := d.Dial(ctx)
//
// The guarantees of a dial:
//
//  1. It ends with its context, at any stage. Each endpoint also has limits on connecting and the
//     handshake.
//  2. When Dial returns an error, no socket is open and no dial in flight. A returned connection
//     does not depend on ctx, and keeps nothing of the attempt.
//  3. Names are looked up for every attempt, and addresses are raced (RFC 8305): one that does not
//     answer costs 250 ms, a name server that answers for only one family 50 ms. An endpoint that
//     does not answer keeps no other from being tried: see [WebSocket.Dial].
//  4. A redirect is not followed: it is an error that names the host, which gets no header and no
//     query. A response header has at most 64 KiB.
//  5. No error text holds a secret of the dial, even if a peer or a callback repeats it. Secrets are
//     the user and query of each URL (yours, of Prepare, and advised), the login for a proxy, the
//     subprotocols, and header values except Host, Origin and User-Agent. "..." replaces any 8
//     consecutive bytes of a secret, and a whole secret of 3 to 7 bytes, in any case, plain or
//     escaped as in a URL, JSON or Go. The scheme, host and path of a URL are shown. Text from a
//     peer is quoted and truncated. This also holds for the text of a [conn.CloseError] of the
//     connection, but not for its Reason, and not for what an [Error].Err wraps.
//  6. A rejection by a proxy is a [ProxyError]. A [Framed] and a [Dialer] use no proxy.
//  7. If a callback among the options panics, Dial panics after cleaning up, with an error whose
//     text has the first panic's value and stack. If it calls runtime.Goexit, the attempt fails; but
//     a Dialer calls Policy, Classify, Gate, Budget, Rand and OnProgress on the goroutine of
//     DialContext, which such a Goexit ends once the connection is closed.
//
// A [Framed] opens framed connections over TCP or TLS:
//
//	d := &dialer.Framed{Address: "feed.example:7001", Framer: conn.Lines{}, TLS: &tls.Config{}}
//
// A [Dialer] replaces a net.Dialer, such as in net/http or pgx, and retries.
//
// The net/http/httptrace hooks in a dial's context are called for names, connecting, TLS and the
// written request.
//
// In a browser (js) a Framed needs a DialContext. A WebSocket uses URL, URLs, Prepare,
// Subprotocols, the limits and Conn there; a header is an error, and the other options do nothing.
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
