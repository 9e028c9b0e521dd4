package reconnect

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// ErrStalled is why a connection was given up when no data came for [Stall.Limit].
var ErrStalled = errors.New("no data")

// maxStalls is how often the limit is doubled.
const maxStalls = 5

// stall looks for the data of one link.
type stall struct {
	link  *link
	limit time.Duration
	o     *Stall
	life  *lifetime
	last  atomic.Int64 // when the last message came; 0: none yet
	back  atomic.Int64 // when somebody last began to read again, after a pause; 0: there was none
	timer xsync.Timer  // calls tick

	// Owned by the callback.
	from     instant // silence counts from here at the earliest
	expected bool    // at the last tick
}

// newStall returns nil if data is not asked for. Before is how many sessions in a
// row were given up for want of data.
func newStall(life *lifetime, l *link, before int) *stall {
	o := &life.o.Stall
	if o.Limit <= 0 {
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
		first = 0 // to ask whether data is expected already
	}
	s.timer.Set(first, s.tick)
}

// heard notes a message.
func (s *stall) heard() {
	if s != nil {
		s.last.Store(int64(now()))
	}
}

// resumed says that somebody reads again.
func (s *stall) resumed() {
	if s != nil {
		s.back.Store(int64(now()))
	}
}

// stop stops the timer and returns the number of sessions in a row that were given
// up: data resets it, ErrStalled adds one. The link must be cut already.
func (s *stall) stop(cause error, before int) int {
	if s == nil {
		return before
	}
	s.timer.Stop()
	s.timer.Wait()
	if s.last.Load() != 0 {
		before = 0
	}
	if errors.Is(cause, ErrStalled) {
		before++
	}
	return before
}

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

// next returns how long to wait for the next look. Expected is asked often enough
// to notice that its answer has changed.
func (s *stall) next(silence time.Duration) time.Duration {
	if s.o.Expected == nil {
		return s.limit - silence
	}
	return min(s.limit-silence, max(s.limit/8, time.Millisecond))
}

// ask reports whether data is expected now.
func (s *stall) ask() (expected bool) {
	if s.o.Expected == nil {
		return true
	}
	xsync.Guard(func() { expected = s.o.Expected(s.life.o.Liveness.Now()) },
		func() { s.link.cut(fmt.Errorf("Stall.Expected: %w", errNotReturned)) })
	return expected
}
