// Package clients shows how to hand a [dialer.Dialer] to clients that make
// connections of their own, and which of their settings it depends on. Its
// functions are to be copied rather than called; its tests try each of them with a
// real server that is killed and started again.
//
// All have in common:
//
//   - The Dialer bridges an outage where a connection is made. A call that was under
//     way when the server died still fails, unless the client repeats it; only
//     the caller knows whether that is safe.
//   - A client's own limit on a dial bounds the outage that can be bridged, and
//     its own repeating of dials multiplies it. So only one of them should decide:
//     the limit is above MaxElapsed, or MaxElapsed is negative and the limit counts.
//   - The context of a call is respected. What goes on without it, where a client
//     dials in the background, ends by MaxElapsed, or with the client.
package clients
