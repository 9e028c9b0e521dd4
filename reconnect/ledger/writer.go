package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// session is what a Ledger knows of a session. The Ledger's mutex guards it.
type session struct {
	number uint64
	next   uint64 // the Seq from which messages are to be written by it
	ready  bool
	failed bool // nothing can be written by it any more

	// The arguments of Resume.
	have   uint64
	forgot bool   // Resume with same = false
	peer   string // the epoch of ResumeEpoch; empty: it was not called
	fresh  bool   // no session was ever ready before, so nothing was ever sent

	resets bool // the peer has forgotten us, as it was then, and new numbers have not begun with the session
}

// writing is the message that the goroutine write has in hand.
type writing struct {
	id     uint64          // 0: none
	ctx    context.Context // ends the waits before the write; nil: there was none yet, or it has ended
	cancel func()          // ends ctx
}

// session returns the session with this number, which it adds if need be.
func (l *Ledger) session(number uint64) *session {
	for _, s := range l.sessions {
		if s.number == number {
			return s
		}
	}
	s := &session{number: number}
	l.sessions = append(l.sessions, s)
	slices.SortFunc(l.sessions, func(a, b *session) int { return cmp.Compare(a.number, b.number) })
	return s
}

// ready notes that messages can be written by a session. If a later session is ready already, because SessionReady of
// this one was slow, nothing is written by this one.
func (l *Ledger) ready(number uint64) {
	l.mu.Lock()
	defer l.unlock()
	if l.closed || slices.ContainsFunc(l.sessions, func(s *session) bool { return s.ready && s.number > number }) {
		return
	}
	s := l.session(number)
	s.ready = true
	switch {
	case l.reset != nil: // another session begins new numbers, and this one too, unless that has succeeded
		s.resets, l.reset = true, s
	case !l.forgotten(s):
		l.goOn(s)
	default:
		s.resets, l.epoch = true, number
		if l.o.Store != nil {
			l.reset = s
		} else {
			l.applyReset(s, l.planReset(s))
		}
	}
	l.interrupt() // because the old session need not be waited for
}

// lost notes that a session has ended.
func (l *Ledger) lost(number uint64, _ error) {
	l.mu.Lock()
	l.sessions = slices.DeleteFunc(l.sessions, func(s *session) bool { return s.number == number })
	l.interrupt()
	l.unlock()
}

// interrupt ends the waits of the goroutine write, so that it looks again at what it has to do.
func (l *Ledger) interrupt() {
	if l.current.ctx != nil && l.current.id != 0 {
		l.current.cancel()
		l.current.ctx = nil
	}
}

// pick returns what is to be written now, and by which session; nil if there is nothing.
func (l *Ledger) pick() (*queued, *session) {
	if l.closed {
		return nil, nil
	}
	for _, s := range slices.Backward(l.sessions) {
		if s.ready && !s.failed && s.number >= l.epoch {
			if s.resets {
				return nil, nil // its numbers are not stored yet
			}
			return l.queue.from(s.next), s
		}
	}
	return nil, nil
}

// startWriting starts the goroutine write if there is something to write.
func (l *Ledger) startWriting() {
	if l.writing {
		return
	}
	if e, _ := l.pick(); e != nil {
		l.writing = true
		l.work.Add(1)
		go l.write() // joined by end
	}
}

// write writes the messages while there are some to write.
func (l *Ledger) write() {
	defer l.work.Done()
	defer l.stopWriting() // even if Encode or OnDone ends this goroutine
	for l.writeNext() {
	}
}

// stopWriting lets another goroutine write what can be written by now. A message whose Encode has
// ended the goroutine is refused.
func (l *Ledger) stopWriting() {
	l.mu.Lock()
	l.writing = false
	id := l.current.id
	l.current.id = 0
	if e := l.queue.byID(id); e != nil && id > 0 {
		l.settle(e, OutcomeRefused, errNotReturned)
	}
	l.unlock()
}

// writeNext writes one message. It reports whether there may be another one.
func (l *Ledger) writeNext() bool {
	l.mu.Lock()
	if l.dropOld() { // the timer may be late, because it stands still while the machine sleeps
		l.unlock()
		return true
	}
	e, s := l.pick()
	if e == nil {
		l.mu.Unlock()
		return false
	}
	entry, was, resets := e.entry(), *e, l.stats.Resets
	e.sent, e.again = true, true // before the write, because an acknowledgement can come before it ends
	l.sentSeq = max(l.sentSeq, e.seq)
	if l.current.ctx == nil {
		l.current.ctx, l.current.cancel = context.WithCancel(context.Background())
	}
	l.current.id = e.id
	ctx := l.current.ctx
	l.mu.Unlock()

	m, err := l.o.Encode(entry)
	refused := err != nil
	if !refused {
		err = l.conn.WriteTo(ctx, s.number, m)
		refused = errors.Is(err, conn.ErrBadMessage)
	}

	l.mu.Lock()
	l.current.id = 0
	l.wrote(s, was, resets, err, refused)
	l.unlock()
	return true
}

// wrote notes how the write of a message has gone, which was e before it, after so many resets.
func (l *Ledger) wrote(s *session, e queued, resets uint64, err error, refused bool) {
	now := l.queue.byID(e.id)
	if resets != l.stats.Resets {
		now = nil // it has a new number by now
	}
	if now != nil && err != nil && (refused || wasDropped(err)) {
		now.sent, now.again = e.sent, e.again
	}
	switch {
	case err == nil:
		s.next = max(s.next, e.seq+1)
		l.written = true
	case refused && now != nil:
		l.settle(now, OutcomeRefused, err)
	case refused:
	case errors.Is(err, context.Canceled) && l.current.ctx == nil:
		// It was interrupted, and is picked again if there is still use for it.
	default:
		s.failed = true
	}
}

// wasDropped reports whether not a byte was sent.
func wasDropped(err error) bool {
	w, ok := errors.AsType[*reconnect.WriteError](err)
	return ok && w.Fate == reconnect.FateDropped
}
