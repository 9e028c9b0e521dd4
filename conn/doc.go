// Package conn defines message connections, and implements them over WebSocket and over any
// [net.Conn].
//
// A [Conn] is one connection, from dial to loss; package reconnect replaces lost ones. A [Framed]
// is a TCP, TLS or other net.Conn whose messages a [Framer] delimits: [Lines], [LengthPrefix], or
// your own. [NewSplit] splits frames that hold several messages, and [NetConn] turns a Conn into a
// byte stream. [WebSocket] and Framed guarantee:
//
//  1. A message is delivered completely or not at all. If the peer hangs up inside a message, or
//     between two fragments, Read returns [io.ErrUnexpectedEOF], whatever a Framer returns. Nothing
//     is written after a partial message.
//  2. Memory is bounded. No message is larger than ReadLimit, and no length from the wire is
//     trusted. An idle WebSocket holds a buffer of 131 bytes, an idle Framed one of 512. With
//     compression a WebSocket also keeps the agreed context: 32 KiB of received messages, and a
//     compressor of about 1.2 MB once it has sent a message with context takeover. While the peer
//     does not read, 256 pongs and 256 pings are queued, with at most 3 KiB of payload for each
//     kind, in addition to those being written; of any others only the last is kept (RFC 6455,
//     section 5.5.3).
//  3. Nothing blocks forever: see [Limits]. Only silence is not limited: see [Transport.Silence].
//  4. CloseNow and [Wire.Cut] unblock every call immediately, at any stage, even during a Close.
//  5. Canceling a Ping does not close the connection.
//  6. The first cause is kept: Read always returns why the connection ended.
//  7. Errors are known by type: see [WebSocket.Read]. Text from the peer is quoted and truncated. A
//     lost session is never a timeout in the sense of [net.Error].
//  8. When Close or CloseNow has returned, the connection has no goroutine and no timer.
//  9. Reading into a buffer that is large enough and writing allocate nothing.
//
// The garbage collector does not close a connection: call Close or CloseNow.
//
// For a browser (js/wasm) see the documentation of WebSocket for GOOS=js.
//
// # Wrapping a connection
//
// A Conn may also be a [Transport], a [Pinger], and a [CloseStarter] or a [HalfCloser], which
// package reconnect finds by type assertions. So a wrapper should embed each interface that the
// inner connection implements: struct{ conn.Conn; conn.Transport; conn.Pinger; conn.CloseStarter }.
// A wrapper that sees or changes messages must replace Read and ReadBuffer, Write and WriteBatch,
// because users of a Transport call the second of each pair. If it embeds a [Follower], such as a
// *[WebSocket], it must replace ReadWhole too.
//
//   - A wrapper that splits a message, as [NewSplit] does, keeps the later parts for later Reads.
//     Its ReadBuffer must never reuse their memory, which belongs to the caller.
//   - A wrapper that swallows a message continues reading in the same Read.
//   - After an error of its own it calls CloseNow of the inner connection, and returns the same
//     error from each later Read.
//   - A method Unwrap() Conn returns the inner connection, such as a WebSocket with its Subprotocol.
//
// Wrap the dialer too: its Dial returns the wrapper, and its methods Validate, Host, Endpoint and
// DialTimeout call those that the inner dialer has.
package conn
