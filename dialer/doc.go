// Package dialer opens one connection at a time, and says well why it could not.
//
// A [WebSocket] is a value with public fields:
//
//	d := &dialer.WebSocket{URL: "wss://feed.example/v1"}
//	c, err := d.Dial(ctx)
//
// It is what reconnect.New takes, and works without it. What it guarantees:
//
//  1. An attempt ends with its context, at whatever stage: name lookup, TCP, a
//     proxy's CONNECT, TLS, the upgrade, or the check of the answer. Connecting and
//     handshaking have limits of their own, for each endpoint.
//  2. When Dial returns an error, what it began has ended: no socket of it is
//     open and no dial in flight. When it returns a connection, ctx has no more to
//     say, and the connection holds on to nothing of the attempt.
//  3. Names are looked up anew for every attempt, and addresses are raced, so that
//     one which does not answer costs a quarter of a second (RFC 8305). With
//     several endpoints none starves another.
//  4. Nothing is followed: a redirect is a failure that names the host, and sends
//     no header and no query there. No environment variable chooses a proxy
//     unless told to. The header of an answer is at most 64 KiB.
//  5. No error holds a secret: no user, no password and no query of a URL, no
//     value of a header. What a server wrote is quoted and cut.
//
// A [TCP] opens framed connections in the same way: TCP, TLS if it is wanted, and
// nothing else. The guarantees are the same, as far as they speak of these.
//
//	d := &dialer.TCP{Address: "feed.example:7001", Framer: conn.Lines{}, TLS: &tls.Config{}}
//
// A [Dialer] goes where a net.Dialer goes, such as the DialContext of net/http, go-redis
// or pgx, and tries until it is connected, its context ends, or its time is over.
//
// In a browser (js) a TCP needs a DialContext, and of a WebSocket there are URL,
// URLs, Prepare, Subprotocols, the limits and Conn; what else is set does nothing,
// but a header is an error.
package dialer
