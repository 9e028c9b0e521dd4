package reconnect

import (
	"errors"
	"sync/atomic"
	"time"
)

// ErrStalled is why a connection was given up when no data came for [Stall.Limit].
var ErrStalled = errors.New("no data")

// maxStalls is how often the limit is doubled.
const maxStalls = 5

// stall looks for the data of one link.
type stall struct {
	c     *Conn
	l     *link
	limit time.Duration
	last  atomic.Int64 // when the last message came; 0: none yet
	pulse pulse        // calls tick

	// Owned by the callback.
	from     instant // silence counts from here at the earliest
	expected bool    // at the last tick
}

// newStall returns nil if data is not asked for.
func newStall(c *Conn, l *link) *stall {
	limit := c.o.Stall.Limit
	if limit <= 0 {
		return nil
	}
	return &stall{c: c, l: l, limit: limit << min(c.stalls, maxStalls), expected: c.o.Stall.Expected == nil}
}

func (s *stall) start() {
	if s != nil {
		s.from = now()
		first := s.limit
		if s.c.o.Stall.Expected != nil {
			first = 0 // to ask whether data is expected already
		}
		s.pulse.arm(first, s.tick)
	}
}

// heard notes a message.
func (s *stall) heard() {
	if s != nil {
		s.last.Store(int64(now()))
	}
}

// stop ends it, and counts the sessions in a row that were given up, data being
// the end of the row. The link is cut already.
func (s *stall) stop(cause error) {
	if s == nil {
		return
	}
	s.pulse.halt()
	s.pulse.running.Wait()
	if s.last.Load() != 0 {
		s.c.stalls = 0
	}
	if errors.Is(cause, ErrStalled) {
		s.c.stalls++
	}
}

func (s *stall) tick() {
	defer s.pulse.running.Done()
	if s.c.leaving.Load() {
		return
	}
	at := now()
	if expected := s.ask(); !expected || !s.expected || s.l.watch.busy() {
		s.from, s.expected = at, expected
	}
	from := s.from
	if last := s.last.Load(); last != 0 { // an instant may be negative: synctest begins in 2000
		from = max(from, instant(last))
	}
	silence := at - from
	if silence >= s.limit {
		s.c.sever(s.l, ErrStalled)
		return
	}
	s.pulse.arm(s.next(silence), s.tick)
}

// next is how long to wait for the next look. Who has a say in whether data is
// expected is asked often enough to notice a change.
func (s *stall) next(silence time.Duration) time.Duration {
	if s.c.o.Stall.Expected == nil {
		return s.limit - silence
	}
	return min(s.limit-silence, max(s.limit/8, time.Millisecond))
}

func (s *stall) ask() bool {
	if s.c.o.Stall.Expected == nil {
		return true
	}
	s.c.callers.enter()
	defer s.c.callers.leave()
	return s.c.o.Stall.Expected(s.c.o.Liveness.Now())
}
