// Package queueing reproduces the simulation of an article about retries (Denis Isaev, "Good
// Retry, Bad Retry: An Incident Story", Yandex, 2024): many callers, one server with a
// queue, and a failure of half a second, in discrete events. The library itself decides what
// the callers do about a failed call: each has a schedule.Outage, asks a
// backoff.Policy how long to wait, and may have to ask a budget of package
// reconnect/budget for leave.
//
// The model:
//
//   - Calls arrive as a Poisson process; a call is up to as many requests as its
//     strategy makes. In a closed loop it first waits for one of L permits, in
//     order of arrival, and holds it until it ends, waits included.
//   - A request takes one round trip, Exp(mean 5 ms), to the server; the reply
//     takes no time. The server has one queue, first in first out and without
//     bound, and floor(capacity rps 10.317 ms) CPUs; a request holds one for its whole
//     service time, 10 ms x LogNormal(0, 0.25). When a client gives up, the server
//     does not notice.
//   - At the end of its service a request fails with the share of the
//     [Failure] that goes on at that moment, else with 0.5 %.
//   - A client gives up on a request its timeout after sending it.
//   - With deadline propagation the server knows when the call's first request
//     was sent and its timeout: what is too late already is refused after 1/20 of
//     its service time, what would become too late during it after
//     min(remaining + 1/5, 1) of it.
//   - A server may have a limit on the requests that it holds, fixed or adaptive, and refuses
//     the others; a refusal takes no time. A server of several hosts, of which callers may eject one,
//     has one queue and its CPUs all the same.
//
// A scenario is a file (see [Read]); those of the article are in scenarios/article. The calls under
// way, the rate at which they end and the time that they take are counted on their own: see [Row.Little].
//
// The differences from the original program:
//
//   - Each strategy has a clock of its own. There, the second strategy of a process began
//     where the first had ended, with the failure past.
//   - A seed repeats a run to the byte. There, the service times were not seeded.
//   - A request fails by the time at which it ends, not by the time at which it began.
//   - A [Bucket] also counts the calls that still wait, which success of the calls that end
//     hides, and the requests that were sent, because a server cannot end more than it can do.
//
// It keeps two properties, because the article's figures rest on them: the deadline is not
// renewed by a retry, so that deadline propagation kills late ones; and a breaker
// that is half open lets every call pass.
package queueing
