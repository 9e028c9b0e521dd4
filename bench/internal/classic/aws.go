package classic

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// AWSLegacy is the delay of aws-sdk-go-v2 without its newer modes: b * 2^k s, with b in
// [0, 1) and k = N+1, as long as that is below Max for any b. After that the delay is
// exactly Max for all clients. The SDK makes at most two retries, and has a token bucket
// (aws of bench/articles/caller).
type AWSLegacy struct {
	Max time.Duration // default 20 s; negative: no wait
}

// Next returns the wait, and never gives up.
func (l *AWSLegacy) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	limit := span.Delay(l.Max, 20*time.Second)
	d := span.Grow(2*time.Second, 2, a.N, span.Longest)
	if d > limit {
		return backoff.Step{Wait: limit}, true
	}
	return backoff.Step{Wait: span.Uniform(r, 0, d)}, true
}

// AWS is the delay of the 2026 mode of aws-sdk-go-v2: full jitter over
// min(20 s, 50 ms * 2^n), cap first. It is [backoff.Exponential] with other numbers.
type AWS struct {
	Base time.Duration // default 50 ms; 25 ms for DynamoDB, 1 s when throttled; negative: no wait
	Max  time.Duration // default 20 s; negative: no wait
}

// Next returns the wait, and never gives up.
func (w *AWS) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	d := span.Grow(span.Delay(w.Base, 50*time.Millisecond), 2, a.N, span.Delay(w.Max, 20*time.Second))
	return backoff.Step{Wait: span.Uniform(r, 0, d)}, true
}
