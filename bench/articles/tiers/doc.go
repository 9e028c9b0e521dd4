// Package tiers simulates services that call one another: a person or a client calls the
// first, the first calls the second, and each may try again. It is the incident of an article
// about retries (Denis Isaev, "Good Retry, Bad Retry: An Incident Story", Yandex, 2024), in
// which three tries of people times three tries of a service became nine times the load,
// and the load outlived its cause. The library itself decides what a caller does about a
// failed try: by a backoff.Policy, and a budget of package reconnect/budget.
//
// The model, in discrete events:
//
//   - Calls arrive as a Poisson process. A call is up to as many requests to the first tier as
//     its caller makes; a person is a caller too, see [Person].
//   - A request takes a trip of Exp(mean 5 ms) to its tier; the answer takes no time. A tier
//     has one queue, first in first out, and CPUs; a request holds one for the tier's own
//     service time x LogNormal(0, 0.25). When the queue is full a request fails at once.
//   - After its service a tier that is not the lowest calls the next one, and holds no CPU
//     while it waits. Its answer is the outcome of that call.
//   - At the end of its service at the lowest tier a request fails with the share of the
//     [Failure] that goes on at that moment, else with 0.5 %.
//   - A caller gives up on a request the tier's timeout after sending it. The tiers below do
//     not notice, and work on.
//   - With an [Admission] only a share of the users is let in; the others fail before the first
//     tier, which costs the tiers nothing.
//   - A tier may get more CPUs while it is busy: see [Scaling].
//
// A scenario is a file: see [Read].
//
// The same Setup gives the same Result on machines of one kind.
package tiers
