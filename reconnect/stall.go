package reconnect

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// ErrStalled is the cause of the end of a session that brought no message for [Stall.Limit].
var ErrStalled error = &reasonError{"no data", backoff.ReasonStalled}

// maxStalls is how often the limit is doubled.
const maxStalls = 5

// stall ends a link that brings no messages.
type stall struct {
	link  *link
	limit time.Duration
	o     *Stall
	life  *lifetime
	last  atomic.Int64 // when the last message came; 0: none yet
	back  atomic.Int64 // when reading last began again after a pause; 0: there was no pause
	timer xsync.Timer  // calls tick

	// Owned by the callback.
	from     instant // silence counts from here at the earliest
	expected bool    // whether messages were, at the last tick
}

// newStall returns nil if there is no limit. before is how many sessions in a row were given
// up because they brought no message.
func newStall(life *lifetime, l *link, before int) *stall {
	o := life.o.Stall
	if o == nil {
		return nil
	}
	return &stall{link: l, life: life, o: o, limit: o.Limit << min(before, maxStalls), expected: o.Expected == nil}
}

func (s *stall) start() {
	if s == nil {
		return
	}
	s.from = now()
	first := s.limit
	if s.o.Expected != nil {
		first = 0 // so that the first tick asks whether messages are expected
	}
	s.timer.Set(first, s.tick)
}

// heard notes a message.
func (s *stall) heard() {
	if s != nil {
		s.last.Store(int64(now()))
	}
}

// resumed notes that reading begins again.
func (s *stall) resumed() {
	if s != nil {
		s.back.Store(int64(now()))
	}
}

// stop stops the timer and returns the number of sessions in a row that were given up: a
// message resets it, ErrStalled adds one. The link must be cut already.
func (s *stall) stop(cause error, before int) int {
	if s == nil {
		return before
	}
	s.timer.Stop()
	s.life.waitForTimer(&s.timer, "Stall.Expected")
	if s.last.Load() != 0 {
		before = 0
	}
	if errors.Is(cause, ErrStalled) {
		before++
	}
	return before
}

// tick is the timer's callback: it looks, and ends the link or sets the timer again.
func (s *stall) tick() {
	if s.life.leaving.Load() {
		return
	}
	at := now()
	if expected := s.ask(); !expected || !s.expected || s.link.paused() {
		s.from, s.expected = at, expected
	}
	from := s.from
	for _, since := range [...]int64{s.last.Load(), s.back.Load()} {
		if since != 0 { // an instant may be negative: synctest begins in 2000
			from = max(from, instant(since))
		}
	}
	silence := at - from
	if silence >= s.limit {
		s.link.cut(ErrStalled)
		return
	}
	s.timer.Set(s.next(silence), s.tick)
}

// next returns how long to wait until the next look. It is short enough to notice that the
// answer of Expected has changed.
func (s *stall) next(silence time.Duration) time.Duration {
	if s.o.Expected == nil {
		return s.limit - silence
	}
	return min(s.limit-silence, max(s.limit/8, time.Millisecond))
}

// ask reports whether messages are expected now.
func (s *stall) ask() (expected bool) {
	if s.o.Expected == nil {
		return true
	}
	xsync.Guard(func() { expected = s.o.Expected(s.life.o.Liveness.now()) },
		func() { s.link.cut(fmt.Errorf("Stall.Expected: %w", errNotReturned)) })
	return expected
}
