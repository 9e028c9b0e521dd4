package reconnect

import (
	"fmt"
	"sync"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/inbox"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/watch"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Message is a received message.
type Message struct {
	conn.Message        // data valid as Conn.Read or Options.OnMessage says
	Session      uint64 // session by which it came, from 1
}

// Seam marks a place in the stream of received messages where some may be missing. There is exactly one
// after each session that was ready or delivered anything. With [InboxDropOldest] there is also one in
// place of dropped messages.
//
// Do not fetch missing messages at such a seam: the next session may not be subscribed yet, and what the
// server sends before the subscription is missing for good. With [Options.MarkRefetch] fetch at each
// Seam with Refetch set, including that of the first session and of dropped messages:
//
//	switch seam, ok := errors.AsType[*reconnect.Seam](err); {
//	case ok && seam.Refetch:
//		book = fetch(ctx) // in a loop until it succeeds, or ends with ctx
//	case ok:
//		book = nil // a stale book is worse than none
//	}
//
// A Seam is an error only so that Read can return it in order: keep reading. It does not unwrap to its
// Cause, because errors.Is(err, [net.ErrClosed]) must mean that the Conn is closed.
//
// If more than 64 seams are unread, one stands for several, with the Session and Cause of the last. That
// session may still be live if the seam has Dropped.
type Seam struct {
	Session uint64 // session that ended, or whose messages were dropped
	Cause   error  // why the session ended; ErrInboxFull for dropped messages
	Dropped int    // number of messages dropped here; 0 if a connection was lost
	Lost    int    // number of connections lost here; 0 if messages were dropped

	Planned bool // the session was replaced: see Rotation

	// Overlapped says that the next session was ready before this one was read to its end. Nothing is
	// then missing if the server sends everything to both, but messages may be duplicated. It is false
	// if this session broke before or during its close, if we ended it while some of it may have been
	// unread, and if the peer may have ended it with something unread when the next one became ready.
	Overlapped bool

	Resumed bool           // the protocol guarantees that nothing is missing: see Options.Resumable
	Reason  backoff.Reason // kind of Cause, safe as a metric label

	// Refetch says that missing messages can be fetched now: see Options.MarkRefetch. If Lost and
	// Dropped are 0, the seam is only the mark of Session.
	Refetch bool
}

func (s *Seam) Error() string {
	if (*inbox.Seam)(s).Marks() {
		return fmt.Sprintf("session %d: missing messages can be fetched now", s.Session)
	}
	if s.Lost == 0 {
		return fmt.Sprintf("session %d: %d messages dropped: %v", s.Session, s.Dropped, s.Cause)
	}
	return fmt.Sprintf("session %d ended: %v", s.Session, s.Cause)
}

// ErrInboxFull is the cause of a seam in place of dropped messages, and of the end of a session with
// [InboxDisconnect].
var ErrInboxFull = inbox.ErrFull

// mark is the mark of one session for [Options.MarkRefetch]. It comes once, when nothing holds it any
// more and if its session lives. A nil mark never comes.
type mark struct {
	timer xsync.Timer // calls OnSeam if a layer was the last to hold the mark

	mu    sync.Mutex // guards what follows
	holds int        // the session itself until it is ready and the seam before it was given, and each HoldRefetch
	over  bool       // the session has ended
}

// hold keeps the mark back until a release more. It reports false if the mark has come, or never comes.
func (m *mark) hold() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holds == 0 || m.over {
		return false
	}
	m.holds++
	return true
}

// release ends one hold, and reports whether it was the last. It calls give, if give is not nil, before the session can end.
func (m *mark) release(give func()) (due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds--
	if due = m.holds == 0 && !m.over; due && give != nil {
		give()
	}
	return due
}

// stop ends the mark: no call of OnSeam for it begins afterwards. A call may still run in the goroutine
// of the caller, or of the session before, for whose end this session waits.
func (m *mark) stop(w *watch.Shared) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.over = true
	m.mu.Unlock()
	watch.StopTimer(w.Report, &m.timer, onSeam)
}

// mark ends the hold that the session of l, which may be nil, has on its mark. The goroutine is the
// supervisor of by, which is l or the link that l replaces.
func (r *receiver) mark(l, by *served) {
	switch {
	case l == nil || l.extra.mark == nil:
	case r.inbox != nil:
		r.putMark(l)
	case l.extra.mark.release(nil):
		if l == by {
			l.Pause(link.Handling)
			defer l.Resume()
		}
		outer := by.calls.Enter(&onSeam)
		r.callMark(l)
		by.calls.Leave(outer)
	}
}

// unhold ends the hold of a layer on the mark of l, from any goroutine.
func (r *receiver) unhold(l *served) {
	if r.inbox != nil {
		r.putMark(l)
		return
	}
	m := l.extra.mark
	m.release(func() { // stop waits for the timer
		m.timer.Set(0, func() { r.life.watch.Time(onSeam, &l.Link, func() { r.callMark(l) }) })
	})
}

// putMark ends a hold on the mark of l, and puts the mark into the inbox if it was the last.
func (r *receiver) putMark(l *served) {
	l.extra.mark.release(func() { r.inbox.PutMark((*inbox.Seam)(newMarkSeam(l))) })
}

// callMark calls OnSeam with the mark of l.
func (r *receiver) callMark(l *served) {
	if f := r.life.o.OnSeam; f != nil {
		if r.turn.Acquire(l, nil) != nil {
			return // the session has ended
		}
		defer r.turn.Release()
		if !l.Ended() {
			f(l, newMarkSeam(l))
		}
	}
}

func newMarkSeam(l *served) *Seam { return &Seam{Session: l.Session, Refetch: true} }

// HoldRefetch delays the mark of this session until release is called. Any goroutine may call release;
// calls after the first do nothing.
func (o *Opening) HoldRefetch() (release func()) {
	m := o.l.extra.mark
	if m == nil || o.over.Load() || !m.hold() {
		return func() {}
	}
	return sync.OnceFunc(func() { o.receiver.unhold(o.l) })
}
