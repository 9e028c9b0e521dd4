// Package lab measures on real sockets what packages fleet and storm simulate: how a herd
// comes back, and a retry storm. It guards the library, whose Conns are the herd, and the
// model of package fleet, which must agree with it.
//
// The server is a process of its own on loopback: this program, started again with
// a hidden argument, so a main package that uses it calls [IsServer] first. It is
// killed with SIGKILL and a new one, which has been waiting for that, listens at
// the same address when the outage is over; or it is stopped with SIGSTOP and
// continues with SIGCONT. It never outlives the process that started it: it reads its
// standard input to the end, and on Linux it dies with its parent.
//
// With a [Scene] the server does worse: it accepts and never answers for a while, flaps, or is
// one of several that are restarted one after the other, or of which half hang. A hang begins
// when the new process listens, some milliseconds after the old one was killed; a dial in
// between is refused.
//
// The clients are real: N values of reconnect.Conn over dialer.WebSocket, each
// with the policy that is measured and the limits on a try that go with it. On Linux
// they dial from 64 loopback addresses, since one has only 28,232 ports and a
// port rests for a minute after use.
//
// Clients and server share this machine's processors and its kernel, and a herd
// of thousands is not one instant to them: what is measured has the machine's load in
// it. To get the same figures twice, use the simulator.
package lab
