// Package conn defines a message connection, and makes one of a WebSocket or of any
// net.Conn.
//
// A [Conn] is one connection, from dial to end; package reconnect replaces it when it has
// ended. [WebSocket] is a Conn whose handshake coder/websocket has made, joined by a [Wire] to the net.Conn
// under it. [Framed] is a Conn over TCP, TLS or any other net.Conn; a [Framer] cuts its
// messages: [Lines], [LengthPrefix], or one of your own. [NewSplit] cuts frames that hold
// several messages. [NetConn] makes a net.Conn of a Conn, for a protocol that needs a stream of
// bytes. WebSocket and Framed guarantee:
//
//  1. A message is delivered whole or not at all. When the peer hangs up inside a
//     message, Read returns [io.ErrUnexpectedEOF], also inside a compressed message, between two
//     fragments, and whatever a Framer returns. Messages are written whole too: after half a message
//     nothing follows.
//  2. Memory is bounded. No message is larger than ReadLimit, counted after
//     decompression; no length from the wire is trusted; an idle WebSocket
//     holds a buffer of 131 bytes, an idle Framed a buffer of 512. With compression a WebSocket also keeps
//     what both sides have agreed to refer to: 32 KiB of received messages, and a compressor of about
//     1.2 MB once it has sent a message with context takeover. While the peer
//     does not read, 256 answers to its pings and 256 of our own pings are kept, each with at most 3 KiB of
//     payloads, in addition to those that are being written; of the others only the last.
//  3. Nothing is stuck for ever. A write ends within WriteTimeout of its turn, a
//     message that has begun is complete within MessageTimeout, or the
//     connection is cut. Silence has no limit here: the caller judges it by
//     [Transport.Silence], which counts from the last byte of any kind.
//  4. Cutting never waits. CloseNow and [Wire.Cut] unblock every call at once, at
//     any stage, even while a Close waits; Close ends with its context.
//  5. The end of a context never ends the connection. If the context of a Ping ends,
//     only the wait for the answer ends. A Framed has no ping.
//  6. The first cause is kept. Read returns why the connection ended, again and
//     again, and never an error that our own cut has caused. If no byte of a write was
//     handed over, the write fails with [ErrNotWritten]; after any other error the fate
//     of its message is unknown.
//  7. Errors are known by type: [CloseError], [TooBigError], [ProtocolError], [SlowMessageError], [io.EOF],
//     [net.ErrClosed]. Texts of the peer are quoted and cut, and show what [WebSocketOptions].Redact leaves
//     of them. A lost session is never a timeout in the sense of [net.Error].
//  8. Nothing is left. When Close or CloseNow has returned, the connection has no
//     goroutine and no timer.
//  9. Reading into a buffer that is large enough and writing allocate nothing.
//
// A connection that is dropped without Close or CloseNow stays open: the garbage
// collector does not close it.
//
// The package compiles for a browser (js/wasm), where less is possible: see the
// documentation of WebSocket for GOOS=js.
//
// # Wrapping a connection
//
// A Conn may be a [Transport], a [Pinger], and a [CloseStarter] or a [HalfCloser] too. Package reconnect finds out by
// type assertions, so a wrapper has only the methods that it shows: a struct that embeds a Conn
// hides them, works, and costs more. To keep them, embed each that the inner
// connection has: struct{ conn.Conn; conn.Transport; conn.Pinger; conn.CloseStarter }. A wrapper that sees or
// changes messages replaces four methods: Read and ReadBuffer, Write and WriteBatch, because
// a reader or writer that knows a Transport calls the second of each pair in place of the first.
// A wrapper that embeds a [Follower], such as a *[WebSocket], replaces ReadWhole too.
//
//   - A wrapper that makes several messages of one returns the first, and keeps the others for the next
//     calls of Read; [NewSplit] does that. For a message that lies in memory already, its ReadBuffer need
//     not call buffer. It must never reuse that memory, because the data of a message belongs to the
//     caller.
//   - A wrapper that swallows a message reads on in the same Read.
//   - After an error of its own it calls CloseNow of the inner connection, and returns the same error
//     from each later Read.
//   - A method Unwrap() Conn returns the inner connection, for example to find the subprotocol of a
//     WebSocket.
//
// To use a wrapper, wrap the dialer too: its Dial returns the wrapper. The outer dialer needs the methods
// Validate, Host, Endpoint and DialTimeout if the inner one has them, and calls these.
package conn
