package reconnect

import (
	"fmt"
	"sync"

	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// mark is the mark of one session for [Options.MarkRefetch]. It comes when nothing holds it any
// more, once, and not after the end of its session. A nil mark never comes.
type mark struct {
	timer xsync.Timer // calls OnSeam if a layer was the last to hold the mark

	mu    sync.Mutex // guards what follows
	holds int        // the session itself until it is ready and the seam before it was given, and each HoldRefetch
	over  bool       // the session has ended
}

// newMark returns nil if the user wants no marks.
func newMark(life *lifetime) *mark {
	if !life.o.more.MarkRefetch {
		return nil
	}
	return &mark{holds: 1}
}

// hold keeps the mark back until a release more.
func (m *mark) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds++
}

// release ends one hold, and reports whether it was the last. It calls give, if give is not nil, before the
// session can end.
func (m *mark) release(give func()) (due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds--
	if due = m.holds == 0 && !m.over; due && give != nil {
		give()
	}
	return due
}

// stop ends the mark. No call of OnSeam for it runs afterwards, except in the caller's goroutine.
func (m *mark) stop(life *lifetime) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.over = true
	m.mu.Unlock()
	m.timer.Stop()
	life.waitForTimer(&m.timer, onSeam)
}

// mark returns the mark of l, or nil.
func (l *link) mark() *mark {
	if l == nil || l.extra == nil {
		return nil
	}
	return l.extra.mark
}

// mark ends the hold that the session of l has on its mark. The goroutine is the supervisor of by,
// which is l or the link that l replaces.
func (r *receiver) mark(l, by *link) {
	m := l.mark()
	switch {
	case m == nil:
	case r.inbox != nil:
		m.release(func() { r.inbox.putMark(newMarkSeam(l)) })
	case m.release(nil):
		if l == by {
			l.pause(handling)
			defer l.resume()
		}
		by.calling.enter(&onSeam)
		r.callMark(l)
		by.calling.leave()
	}
}

// unhold ends the hold of a layer on the mark of l, from any goroutine.
func (r *receiver) unhold(l *link) {
	m := l.mark()
	if r.inbox != nil {
		m.release(func() { r.inbox.putMark(newMarkSeam(l)) })
		return
	}
	m.release(func() { // stop waits for the timer
		m.timer.Set(0, func() {
			xsync.Guard(func() { r.callMark(l) }, func() { l.cut(fmt.Errorf("%s: %w", onSeam, errNotReturned)) })
		})
	})
}

// callMark calls OnSeam with the mark of l.
func (r *receiver) callMark(l *link) {
	if f := r.life.o.OnSeam; f != nil {
		if r.turn.Acquire(l, nil) != nil {
			return // the session has ended
		}
		defer r.turn.Release()
		f(l, newMarkSeam(l))
	}
}

func newMarkSeam(l *link) *Seam { return &Seam{Session: l.session, Refetch: true} }

// HoldRefetch keeps the mark of this session back (see [Options.MarkRefetch]) until release is
// called, because something is needed before a refetch misses nothing, and it comes after the
// session is ready: such as the answers to subscriptions. Any goroutine may call release; calls
// after the first do nothing. Without Options.MarkRefetch there is no mark to hold.
func (o *Opening) HoldRefetch() (release func()) {
	m := o.l.mark()
	if m == nil || o.over.Load() {
		return func() {}
	}
	m.hold()
	return sync.OnceFunc(func() { o.receiver.unhold(o.l) })
}
