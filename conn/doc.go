// Package conn says what a message connection is, and makes one of a WebSocket or
// of any net.Conn.
//
// A [Conn] lives once, from dial to death; package reconnect replaces the dead.
// [WebSocket] is a Conn over coder/websocket, joined by a [Wire] to the net.Conn
// under it. [Framed] is a Conn over TCP or TLS, or whatever else is a net.Conn,
// whose messages a [Framer] cuts: [Lines], [LengthPrefix], or the user's own. What
// they guarantee, a WebSocket given a Wire:
//
//  1. A message is delivered whole or not at all. When the peer hangs up inside
//     one, Read returns [io.ErrUnexpectedEOF], also where coder/websocket takes
//     the half for the whole (compressed, or between two fragments), and whatever
//     a Framer says of it. What is written is whole too: after half a message
//     nothing follows.
//  2. Memory is bounded. No message is larger than ReadLimit, counted after
//     decompression; no length from the wire is trusted; an idle WebSocket
//     holds a buffer of 131 bytes, an idle Framed one of 512.
//  3. Nothing is stuck for ever. A write ends within WriteTimeout of its turn, a
//     message that has begun is complete within MessageTimeout, or the
//     connection is cut. That nothing at all comes in is for the caller to
//     judge, by Idle, which knows the last byte of any kind.
//  4. Cutting never waits. CloseNow and [Wire.Cut] unblock every call at once, at
//     any stage, even while a Close waits; Close ends with its context.
//  5. No context costs the connection. Ping's ends the wait for the answer only.
//     A Framed has no ping.
//  6. The first cause is kept. Read returns why the connection ended, again and
//     again, and never an error of our own cut in its place. A write of
//     which no byte was handed over fails with [ErrNotWritten]; of any other
//     that fails the fate is unknown.
//  7. Errors are known by type: [CloseError], [TooBigError], [ProtocolError],
//     [SlowMessageError], [io.EOF], [net.ErrClosed]. What the peer has said is quoted
//     and cut. A lost session is never a timeout in the sense of [net.Error].
//  8. Nothing is left. When Close or CloseNow returns, no goroutine and no timer
//     of the connection is.
//  9. Reading into a buffer that is large enough and writing allocate nothing.
//
// A connection that is dropped without Close or CloseNow stays open: nobody
// collects it.
//
// For a browser (js/wasm) the package compiles, with the little that is possible
// there: see the documentation for GOOS=js.
package conn
