package watch

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// ErrStalled is the cause of the end of a session that brought no message for [StallOptions].Limit.
var ErrStalled error = &link.Ended{Text: "no data", Why: backoff.ReasonStalled}

// MostStalls is how often the limit is doubled.
const MostStalls = 5

// Stall ends a link that brings no messages.
type Stall struct {
	shared *Shared
	link   *link.Link
	limit  time.Duration
	last   atomic.Int64 // when the last message came; 0: none yet
	back   atomic.Int64 // when reading last began again after a pause; 0: there was no pause
	timer  xsync.Timer  // calls tick

	// Owned by the callback.
	from     link.Instant // silence counts from here at the earliest
	expected bool         // whether messages were, at the last tick
}

// NewStall returns nil if there is no limit. A nil Stall does nothing.
func NewStall(s *Shared, l *link.Link) *Stall {
	o := s.Stall
	if o == nil {
		return nil
	}
	return &Stall{shared: s, link: l, limit: o.Limit << min(s.stalls.Load(), MostStalls), expected: o.Expected == nil}
}

// Start begins to watch the link, which is ready.
func (s *Stall) Start() {
	if s == nil {
		return
	}
	s.from = link.Now()
	first := s.limit
	if s.shared.Stall.Expected != nil {
		first = 0 // so that the first tick asks whether messages are expected
	}
	s.timer.Set(first, s.tick)
}

// Heard notes a message.
func (s *Stall) Heard() {
	if s != nil {
		s.last.Store(int64(link.Now()))
	}
}

// Resumed notes that reading begins again.
func (s *Stall) Resumed() {
	if s != nil {
		s.back.Store(int64(link.Now()))
	}
}

// Stop stops the timer, and counts how many sessions in a row were given up: a message makes it 0,
// ErrStalled adds one. The link must be cut already, because of cause.
func (s *Stall) Stop(cause error) {
	if s == nil {
		return
	}
	StopTimer(s.shared.Report, &s.timer, "Stall.Expected")
	if s.last.Load() != 0 {
		s.shared.stalls.Store(0)
	}
	if errors.Is(cause, ErrStalled) {
		s.shared.stalls.Add(1)
	}
}

// tick is the timer's callback: it looks, and ends the link or sets the timer again.
func (s *Stall) tick() {
	if s.link.Life().Leaving.Load() {
		return
	}
	at := link.Now()
	if expected := s.ask(); !expected || !s.expected || !s.link.IsRead() {
		s.from, s.expected = at, expected
	}
	from := s.from
	for _, since := range [...]int64{s.last.Load(), s.back.Load()} {
		if since != 0 { // an Instant may be negative: synctest begins in 2000
			from = max(from, link.Instant(since))
		}
	}
	silence := at - from
	if silence >= s.limit {
		s.link.Cut(ErrStalled)
		return
	}
	s.timer.Set(s.next(silence), s.tick)
}

// next returns how long to wait until the next look. It is short enough to notice that the
// answer of Expected has changed.
func (s *Stall) next(silence time.Duration) time.Duration {
	if s.shared.Stall.Expected == nil {
		return s.limit - silence
	}
	return min(s.limit-silence, max(s.limit/8, time.Millisecond))
}

// ask reports whether messages are expected now.
func (s *Stall) ask() (expected bool) {
	if s.shared.Stall.Expected == nil {
		return true
	}
	s.shared.Time("Stall.Expected", s.link, func() { expected = s.shared.Stall.Expected(s.shared.Liveness.Now()) })
	return expected
}
