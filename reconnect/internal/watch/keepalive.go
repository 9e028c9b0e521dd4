package watch

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// KeepAlive writes a message when its link was not written to for a while. A nil KeepAlive does
// nothing.
type KeepAlive struct {
	shared *Shared
	link   *link.Link
	last   atomic.Int64 // when something was written last
	timer  xsync.Timer  // calls tick
}

// NewKeepAlive returns nil if there is nothing to write.
func NewKeepAlive(s *Shared, l *link.Link) *KeepAlive {
	if s.KeepAlive == nil || s.KeepAlive.Every <= 0 {
		return nil
	}
	return &KeepAlive{shared: s, link: l}
}

// Start begins to watch the link, which is ready.
func (w *KeepAlive) Start() {
	if w != nil {
		w.Wrote()
		w.timer.Set(w.shared.KeepAlive.Every, w.tick)
	}
}

// Wrote notes that something was written.
func (w *KeepAlive) Wrote() {
	if w != nil {
		w.last.Store(int64(link.Now()))
	}
}

// tick is the timer's callback.
func (w *KeepAlive) tick() {
	after := w.shared.KeepAlive.Every
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
func (w *KeepAlive) write() error {
	var m conn.Message
	w.shared.Time("KeepAlive.Message", w.link, func() { m = w.shared.KeepAlive.Message() })
	err := w.link.WriteFirst(w.link, m)
	if err == nil {
		w.link.Life().Counts.KeepAliveMessages.Add(1)
	}
	if errors.Is(err, context.Canceled) {
		return nil // the session has ended
	}
	return err
}

// Stop stops the timer, and waits for its callback. The link is cut already.
func (w *KeepAlive) Stop() {
	if w != nil {
		StopTimer(w.shared.Report, &w.timer, "KeepAlive.Message")
	}
}
