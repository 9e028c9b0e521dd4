package redisgate

import "time"

// OnPass makes l call f when it lets a dial begin, with the time at which it has decided so. Call it
// before the first Acquire.
func OnPass(l *Limiter, f func(now time.Time, share bool)) { l.passed = f }

// RetryEvery is how long after a question that fails the next one follows, at most.
const RetryEvery = retryEvery
