// Package conntest is a network in memory and the faults of a real one, for
// tests of anything that must survive a lost connection.
//
//	n := new(conntest.Network)
//	s := conntest.NewServer(n, "feed.test:80", conntest.Echo)
//	defer s.Close()
//	// dial ws://feed.test/ with DialContext: n.DialContext
//	n.Conns("feed.test:80")[0].Reset()
//	s.Next(conntest.Status(503, conntest.RetryAfter("7")), s.Accept)
//
// # Three levels
//
//   - [Network] has listeners and dials, and counts them ([Count]). A [Fault] makes a dial
//     fail, hang or come late, or drops the connection once it is accepted.
//   - [Pipe] is one of its connections. A test can reset, cut, half-close, stall, delay or
//     throttle it, and put garbage into it.
//   - [Server] is a real coder/websocket server on it. A test chooses how it answers each
//     handshake ([Answer]), and can kill it and start it again.
//
// [Fake] needs none of these: it is a conn.Conn whose Read returns the messages that a
// test delivers, and [Poison] shows when a reader keeps a buffer for too long.
//
// # What it promises
//
//  1. In a synctest bubble every wait is durably blocked, so virtual time passes. Both
//     ends may be net/http, crypto/tls and coder/websocket as they are. Make the network
//     inside the bubble.
//  2. A fault happens at the instant of the call. Without a fault, bytes arrive at the
//     instant of their write. So a test can assert elapsed time exactly.
//  3. Nothing here is random. Only the scheduler is: of two events at one virtual instant
//     either may come first.
//  4. Errors are the errors of sockets: *net.OpError around net.ErrClosed,
//     os.ErrDeadlineExceeded, syscall.ECONNREFUSED, ECONNRESET or EPIPE, and a bare
//     io.EOF.
//  5. A network has no goroutines, and timers only for deadlines and for bytes and dials
//     under way. [Network.Unclosed] returns the connections that were not closed.
//
// Outside a bubble all of it works in real time.
package conntest
