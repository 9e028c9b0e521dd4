// Package conntest provides an in-memory network with the faults of a real one, for tests of code
// that must survive lost connections.
//
//	n := new(conntest.Network)
//	s := conntest.NewServer(n, "feed.test:80", conntest.Echo)
//	defer s.Close()
//	// dial ws://feed.test/ with DialContext: n.DialContext
//	n.Conns("feed.test:80")[0].Reset()
//	s.Next(conntest.Status(503, conntest.RetryAfter("7")), s.Accept)
//
// A [Network] has listeners, dials and connections ([Pipe]), a [Server] is a coder/websocket server
// on it, and a [Fault], an [Answer] or a method of Pipe makes each fail. A [Fake] is a conn.Conn
// without a network.
//
// The package guarantees:
//
//  1. In a synctest bubble every wait is durably blocked, so virtual time passes. Both ends may be
//     unmodified net/http, crypto/tls and coder/websocket. Outside a bubble all of it works in real
//     time.
//  2. A fault happens at the instant of the call, and without a fault bytes arrive at the instant
//     of their write.
//  3. Nothing here is random except the scheduler: of two events at one virtual instant either may
//     come first.
//  4. Errors are those of sockets: *net.OpError around net.ErrClosed, os.ErrDeadlineExceeded,
//     syscall.ECONNREFUSED, ECONNRESET or EPIPE, and a bare io.EOF.
//  5. A network has no goroutines, and timers only for deadlines and for bytes and dials in flight.
package conntest
