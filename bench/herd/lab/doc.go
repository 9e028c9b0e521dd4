// Package lab measures on real sockets what packages fleet and storm simulate: how a herd
// comes back, and a retry storm. It guards the library, whose Conns are the herd, and the
// model of package fleet, which must agree with it.
//
// The server is a process of its own on loopback: this program, started again with a hidden
// argument, so a main package that uses it calls [IsServer] first. It is killed with SIGKILL
// and a new one, which has been waiting, listens at the same address when the outage is over;
// a storm's is stopped with SIGSTOP and continues with SIGCONT. It ends with its parent.
//
// With a [Scene] the server does worse. A hang begins some milliseconds after the old process
// was killed, when the new one listens; a dial in between is refused.
//
// Each client is a reconnect.Conn over dialer.WebSocket, with the policy that is measured and
// the limits on a try that go with it. On Linux they dial from 64 loopback addresses, since one
// has only 28,232 ports and a port rests for a minute after use.
//
// Clients and server share this machine: what is measured has the machine's load in it. To get
// the same figures twice, use the simulator.
package lab
