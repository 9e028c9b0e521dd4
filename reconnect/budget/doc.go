// Package budget decides how many tries may be made. It bounds the tries of many
// callers, where package backoff spaces the tries of one.
//
// [Budget], [RetryBreaker] and [Breaker] are for operations, because the successes of
// operations refill them: retry.Loop and dialer.Dialer take any of them as their
// Budget. A connection that is only reconnected has no such successes, so that package
// reconnect takes none of them.
//
// A [Gate] is shared by the connections of one process, and bounds their dials to each
// host: reconnect.RunOptions and dialer.Dialer take it as their Gate. [Limited] makes a
// gate of any limiter with a method Wait(ctx), such as one that a whole fleet shares. A
// [SlotLimiter] bounds the dials under way as well; redisgate, a module of its own, has one
// in Redis.
//
// A [Window] is for limits of the form "so many per second", where the server counts.
//
// Nothing here starts a goroutine. What decides is pure and gets the time as an
// argument, in [Line] and [Window], or from an option Now, so that a simulator drives the very code
// that runs in a program.
//
// # Sources
//
// [Budget] and [RetryBreaker] are the two ways to bound retries that these articles
// describe and compare; the repository reproduces the simulations of the second:
//
//   - Marc Brooker, "Fixing retries with token buckets and circuit breakers" (Marc's
//     Blog, 2022)
//   - Denis Isaev, "Good Retry, Bad Retry: An Incident Story" (Yandex on Medium, 2024)
//
// [GRPC] is the throttling of gRFC A6, "gRPC Retry Design", in thousandths of its tokens:
// no proportional budget but a breaker, which stops retries from a share of failures of
// ratio/(1+ratio) on. In [AWS] and [AWS2026] timeouts and throttling cost the same,
// because a verdict does not tell them apart. [Breaker] follows Michael T. Nygard,
// "Release It!" (Pragmatic Bookshelf, 2007 and 2018).
package budget
