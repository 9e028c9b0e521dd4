package bridge

import (
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
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
	b.stats.Failed++
	if s.failed == nil {
		s.failed = new(schedule.Outage) // begins with the first failure
	}
	b.failure = &failure[K, T]{s, s.failed, s.round, now, err, last}
}

// decide asks Policy when the call that has failed is repeated. It runs in the goroutine of the loop,
// without the lock.
func (b *Bridge[K, T]) decide() {
	b.mu.Lock()
	f := b.failure
	b.failure = nil
	b.mu.Unlock()
	step, again := f.outage.Next(b.o.Policy, backoff.Classify(f.err), f.now, b.random)
	wait := f.outage.History().Verdict.RetryAfter + step.Wait
	if b.repeat(f, &wait, again) && b.o.OnRetry != nil {
		b.o.OnRetry(f.s.key, f.err, wait)
	}
}

// repeat does what was decided, unless the stream does not need it any more. It shortens wait to what is
// left of Patience, and reports whether the call will be repeated after it.
func (b *Bridge[K, T]) repeat(f *failure[K, T], wait *time.Duration, again bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := f.s
	switch {
	case b.streams[s.key] != s || !s.stale || s.failed != f.outage:
		return false
	case !again && s.round == f.round:
		f.last(s, f.err)
		return false
	case !again: // there is a new reason to ask
		b.enqueue(s)
		return false
	case f.err == errNotThere || f.err == errOldSnapshot: // then Patience has begun
		*wait = min(*wait, max(b.o.Patience-f.now.Sub(s.lacking), 0))
	}
	b.wait(s, f.now.Add(*wait))
	return true
}
