// Package budget says how many may try: it bounds the tries of many, where package
// backoff spaces those of one.
//
// [Budget], [RetryBreaker] and [Breaker] serve operations, whose successes fill
// them again: backoff.Retrier and dialer.Dialer take any of them as their Budget.
// A connection that is only reconnected has no successes to refill one, so
// package reconnect does not.
//
// A [Gate] is shared by the connections to one host in one process:
// reconnect.RunOptions and dialer.Dialer take it as their Gate. [Limited] makes a
// gate of any limiter with Wait(ctx), such as one that a whole fleet shares.
//
// None of them starts a goroutine. What decides is pure and told the time, in
// [Line] or by an option Now, so that a simulator drives the very code that runs
// in a program.
package budget
