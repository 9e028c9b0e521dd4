package bridge

import (
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/schedule"
)

// failure is a call that has failed, and of which Options.Policy has to decide when it is
// repeated.
type failure[K comparable, T any] struct {
	s      *stream[K, T]
	outage *schedule.Outage // of s
	round  uint64           // of s
	now    time.Time
	err    error
	last   func(s *stream[K, T], err error) // follows if the call is of no use any more
}

// retry has a call for s repeated after a wait, on which decide decides.
func (b *Bridge[K, T]) retry(s *stream[K, T], err error, now time.Time, last func(*stream[K, T], error)) {
	if s.failed == nil {
		s.failed = new(schedule.Outage)
		s.failed.Begin(now)
	}
	b.failures = append(b.failures, failure[K, T]{s, s.failed, s.round, now, err, last})
}

// decide asks Policy when the calls that have failed are repeated. It runs in the goroutine of the
// loop, without the lock.
func (b *Bridge[K, T]) decide() {
	for {
		b.mu.Lock()
		if len(b.failures) == 0 {
			b.failures = nil
			b.mu.Unlock()
			return
		}
		f := b.failures[0]
		b.failures = b.failures[1:]
		b.mu.Unlock()

		step, ok := f.outage.Next(b.o.Policy, backoff.Classify(f.err), f.now, b.random)
		b.mu.Lock()
		b.apply(f, f.outage.History().Verdict.RetryAfter+step.Wait, ok)
		b.mu.Unlock()
	}
}

// apply does what was decided, unless the stream does not need it any more. The caller holds mu.
func (b *Bridge[K, T]) apply(f failure[K, T], wait time.Duration, ok bool) {
	s := f.s
	switch {
	case b.streams[s.key] != s || !s.stale || s.failed != f.outage:
		return
	case !ok && s.round == f.round:
		f.last(s, f.err)
		return
	case !ok: // there is a new reason to ask
		b.enqueue(s)
		return
	case f.err == errNotThere || f.err == errOldSnapshot: // then Patience has begun
		wait = min(wait, max(b.o.Patience-f.now.Sub(s.lacking), 0))
	}
	if b.o.OnRetry != nil {
		b.retries = append(b.retries, retry[K]{s.key, f.err, wait})
	}
	b.wait(s, f.now.Add(wait))
}
