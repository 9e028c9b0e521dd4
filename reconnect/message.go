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

// Message is a received message, and the session that it came by.
type Message struct {
	conn.Message        // its data is valid as Conn.Read or Options.OnMessage says
	Session      uint64 // the number of the session, from 1 on
}

// Seam marks a place in the stream of received messages where some may be missing. What was
// built from the messages before it is stale. There is exactly one after each session that
// was ready or delivered anything: after its last message, and before the first of the
// next session. With [InboxDropOldest] there is also one in the place of the messages
// that were dropped. The last session has a seam, too: after [Conn.Shutdown] the reader gets it
// just before the end of the stream.
//
// Do not fetch what is missing at such a seam: the next session may not be subscribed yet, and
// what the server sends between the fetch and the subscription is missing for good. With
// [Options.MarkRefetch] there is a second mark, a Seam with Refetch set. Fetch at each Seam with
// Refetch set, those of the first session and of dropped messages included:
//
//	switch seam, ok := errors.AsType[*reconnect.Seam](err); {
//	case ok && seam.Refetch:
//		book = fetch(ctx) // in a loop until it succeeds, or ends with ctx
//	case ok:
//		book = nil // a stale book is worse than none
//	}
//
// A Seam is an error only so that Read can return it in order: read on. It does not
// unwrap to its Cause, because errors.Is(err, [net.ErrClosed]) must mean that the
// Conn is closed, not that one connection was.
//
// If more than 64 seams are unread, one stands for several. Its Session and Cause are then
// those of the last.
type Seam struct {
	Session uint64 // the session that ended, or whose messages were dropped
	Cause   error  // why the session ended; ErrInboxFull for messages that were dropped
	Dropped int    // how many messages were dropped here; 0: none, a connection was lost
	Lost    int    // how many connections were lost here; 0: none, messages were dropped

	Planned bool // the session was replaced, and did not die: see Rotation

	// Overlapped says that the next session was ready before this one was read to its end.
	// Then nothing is missing if the server gives both everything, but some messages may come
	// twice. It is false if this session broke before it was read to its end, if it had to be
	// ended because the reader was slow, and if the peer ended it and nobody read it when the next
	// one became ready, because then the peer may have ended it before.
	Overlapped bool

	Resumed bool           // the protocol vouches that nothing is missing: see Options.Resumable
	Reason  backoff.Reason // the kind of Cause, which is safe as the label of a metric

	// Refetch says that what is missing can be fetched now: what the server sends after that
	// comes by a session that is ready and subscribed. If Lost and Dropped are 0, the seam is only
	// the mark of Session. It is false without Options.MarkRefetch.
	Refetch bool
}

func (s *Seam) Error() string {
	if (*inbox.Seam)(s).Marks() {
		return fmt.Sprintf("session %d: what is missing can be fetched now", s.Session)
	}
	if s.Lost == 0 {
		return fmt.Sprintf("session %d: %d messages dropped: %v", s.Session, s.Dropped, s.Cause)
	}
	return fmt.Sprintf("session %d ended: %v", s.Session, s.Cause)
}

// ErrInboxFull is the cause of a seam in the place of messages that were dropped, and of the
// end of a session with [InboxDisconnect]: the application read too slowly.
var ErrInboxFull = inbox.ErrFull

// mark is the mark of one session for [Options.MarkRefetch]. It comes when nothing holds it any
// more, once, and not after the end of its session. A nil mark never comes.
type mark struct {
	timer xsync.Timer // calls OnSeam if a layer was the last to hold the mark

	mu    sync.Mutex // guards what follows
	holds int        // the session itself until it is ready and the seam before it was given, and each HoldRefetch
	over  bool       // the session has ended
}

// newMark returns nil if the user wants no marks.
func newMark(wanted bool) *mark {
	if !wanted {
		return nil
	}
	return &mark{holds: 1}
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

// stop ends the mark. No call of OnSeam for it begins afterwards. One may still run in the caller's
// goroutine, and in that of the session before, for whose end this session waits.
func (m *mark) stop(w *watch.Shared) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.over = true
	m.mu.Unlock()
	m.timer.Stop()
	watch.AwaitTimer(w.Report, &m.timer, onSeam)
}

// mark returns the mark of l, or nil.
func (l *served) mark() *mark {
	if l == nil || l.extra == nil {
		return nil
	}
	return l.extra.mark
}

// mark ends the hold that the session of l has on its mark. The goroutine is the supervisor of by,
// which is l or the link that l replaces.
func (r *receiver) mark(l, by *served) {
	m := l.mark()
	switch {
	case m == nil:
	case r.inbox != nil:
		m.release(func() { r.inbox.PutMark((*inbox.Seam)(newMarkSeam(l))) })
	case m.release(nil):
		if l == by {
			l.Pause(link.Handling)
			defer l.Resume()
		}
		by.calling.enter(&onSeam)
		r.callMark(l)
		by.calling.leave()
	}
}

// unhold ends the hold of a layer on the mark of l, from any goroutine.
func (r *receiver) unhold(l *served) {
	m := l.mark()
	if r.inbox != nil {
		m.release(func() { r.inbox.PutMark((*inbox.Seam)(newMarkSeam(l))) })
		return
	}
	m.release(func() { // stop waits for the timer
		m.timer.Set(0, func() {
			xsync.Guard(func() { r.callMark(l) }, func() { l.Cut(fmt.Errorf("%s: %w", onSeam, xsync.ErrNotReturned)) })
		})
	})
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

// HoldRefetch keeps the mark of this session back (see [Options.MarkRefetch]) until release is
// called, because something is needed before a refetch misses nothing, and it comes after the
// session is ready: such as the answers to subscriptions. Any goroutine may call release; calls
// after the first do nothing. Without Options.MarkRefetch there is no mark to hold.
func (o *Opening) HoldRefetch() (release func()) {
	m := o.l.mark()
	if m == nil || o.over.Load() || !m.hold() {
		return func() {}
	}
	return sync.OnceFunc(func() { o.receiver.unhold(o.l) })
}
