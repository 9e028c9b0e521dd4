package watch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Idle writes a message when its link was not written to for a while. A nil Idle does
// nothing.
type Idle struct {
	shared *Shared
	link   *link.Link
	last   atomic.Int64 // when something was written last
	timer  xsync.Timer  // calls tick
}

// NewIdle returns nil if there is nothing to write.
func NewIdle(s *Shared, l *link.Link) *Idle {
	if s.Idle == nil || s.Idle.After <= 0 {
		return nil
	}
	return &Idle{shared: s, link: l}
}

// Start begins to watch the link, which is ready.
func (w *Idle) Start() {
	if w != nil {
		w.Wrote()
		w.timer.Set(w.shared.Idle.After, w.tick)
	}
}

// Wrote notes that something was written.
func (w *Idle) Wrote() {
	if w != nil {
		w.last.Store(int64(link.Now()))
	}
}

// tick is the timer's callback.
func (w *Idle) tick() {
	after := w.shared.Idle.After
	if left := link.Instant(w.last.Load()) + after - link.Now(); left > 0 {
		w.timer.Set(left, w.tick)
		return
	}
	if err := w.write(); err != nil {
		if !w.link.Life().Leaving.Load() && !w.link.Lost() { // else the write has failed
			w.link.Cut(err)
		}
		return
	}
	w.timer.Set(after, w.tick)
}

// write writes the message.
func (w *Idle) write() (err error) {
	xsync.Guard(func() {
		if err = w.link.WriteFirst(w.link, w.shared.Idle.Message()); err == nil {
			w.link.Life().Counts.IdleMessages.Add(1)
		}
	}, func() { err = fmt.Errorf("Idle.Message: %w", xsync.ErrNotReturned) })
	if errors.Is(err, context.Canceled) {
		return nil // the session has ended
	}
	return err
}

// Stop stops the timer, and waits for its callback. The link is cut already.
func (w *Idle) Stop() {
	if w != nil {
		w.timer.Stop()
		AwaitTimer(w.shared.Report, &w.timer, "Idle.Message")
	}
}
