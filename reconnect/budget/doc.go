// Package budget limits how many attempts many callers make, where package backoff spaces the attempts of one.
//
// [Budget] and [Breaker] are for operations, whose successes refill them: retry.Loop and dialer.Dialer take
// either, and package reconnect neither.
//
// A [Gate] limits the dials of a process to each host: reconnect.RunOptions, dialer.Dialer and retry.Loop take
// it. [Limited] makes a gate of any limiter with a method Wait(ctx). A [SlotLimiter] also limits the dials in
// progress; redisgate, a separate module, has one in Redis.
//
// A [Logins] limits the logins of an account per day or other interval, across restarts: reconnect.RunOptions
// takes it. A [LoginFile] stores its record, or redisgate shares it among processes.
//
// A [Window] allows N events per interval.
//
// This package starts no goroutine.
//
// # Sources
//
// [Budget], and [Breaker] of retries only, are compared in these articles; the repository reproduces the
// simulations of the second:
//
//   - Marc Brooker, "Fixing retries with token buckets and circuit breakers" (Marc's Blog, 2022)
//   - Denis Isaev, "Good Retry, Bad Retry: An Incident Story" (Yandex on Medium, 2024)
//
// [Breaker] follows Michael T. Nygard, "Release It!" (Pragmatic Bookshelf, 2007 and 2018).
package budget
