// Package history runs random histories of a Conn, and checks in each what package reconnect
// promises.
//
// A plan is drawn from a seed: the options, and the events with their times. Events are
// faults of the server and of the network, and what the user of the Conn does. A plan runs in
// virtual time, with the real library, the real coder/websocket or framed TCP, and a network in
// memory. Each invariant is checked during the run and at its end.
//
// In most plans there is something above the Conn: a subscription.Set, a call.Client, a ledger.Ledger with a
// store, a bridge.Bridge that reads, or drain.Groups at the server. Each has its part of the server, and invariants of its own.
//
// The same plan gives the same trace. So a failure can be run again, and a plan that fails is
// made smaller: events and options that the failure does not need are left out.
//
// All of it is tests. The files plan_* draw a plan and make it smaller, world_* play it (the user, the server, the
// network, and each kind of fault with the invariants that belong to it), above_* are what stands above the Conn,
// check_* check what every history must keep, and sockets_* play plans in real time:
//
//	go test ./reconnect/internal/history -run TestHistories$ -histories 3000
//
// TestHistoriesOverSockets runs smaller plans in real time, over TCP on loopback. There a plan does not
// give the same trace.
//
// Command widen makes a form of the library in which goroutines meet in more orders.
package history
