// Package budget decides how many tries may be made. It bounds the tries of many
// callers, where package backoff spaces the tries of one.
//
// [Budget] and [Breaker] are for operations, because the successes of operations refill them:
// retry.Loop and dialer.Dialer take either as their Budget. A connection that is only reconnected
// has no such successes, so package reconnect takes neither.
//
// A [Gate] is shared by the connections of one process, and bounds their dials to each
// host: reconnect.RunOptions and dialer.Dialer take it as their Gate. [Limited] makes a
// gate of any limiter with a method Wait(ctx), such as the limiter of a whole fleet. A
// [SlotLimiter] bounds the dials under way as well; redisgate, a separate module, has a SlotLimiter
// in Redis.
//
// A [Logins] bounds the logins of an account in a day, or in any other interval, over restarts of the
// process: reconnect.RunOptions takes it. A [LoginFile] keeps its record, or redisgate shares it among processes.
//
// A [Window] is for limits of the form "so many per second", where the server counts.
//
// Nothing here starts a goroutine. Decisions get the time as an argument, in [Window],
// or from an option Now, so that a simulator drives the very code that runs in a program.
//
// # Sources
//
// A [Budget], and a [Breaker] of retries only, are the two ways to bound retries that these articles
// describe and compare; the repository reproduces the simulations of the second article:
//
//   - Marc Brooker, "Fixing retries with token buckets and circuit breakers" (Marc's
//     Blog, 2022)
//   - Denis Isaev, "Good Retry, Bad Retry: An Incident Story" (Yandex on Medium, 2024)
//
// [Breaker] follows Michael T. Nygard, "Release It!" (Pragmatic Bookshelf, 2007 and 2018).
package budget
