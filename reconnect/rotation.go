package reconnect

import (
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/watch"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Rotation says when a healthy session is replaced by another, for servers that end every session after
// some time.
//
// The next session is dialed and opened like any other, while the current one continues. A failed dial
// is repeated as after a loss. A verdict of ClassStop ends the rotation, and the session stays; if After
// has requested the rotation, it requests no other one for that session.
//
// Once the next session is ready, it sends the messages; the old one only finishes the message being
// written, and sends those with its number in [Outgoing.Session]. It is read to its end, or for Drain,
// and then until the peer has answered a close frame, whose reason is "rotated". If the server repeats
// that reason, [Seam].Overlapped can be true although the reader was busy.
//
// If the old session is lost before the next is ready, that is an ordinary loss, and a dial in progress
// becomes the redial. Otherwise the redial follows after the wait of a loss, or the wait that the server
// requested.
type Rotation struct {
	// After is the age at which a session is replaced, drawn for each session from [0.9, 1) of After,
	// with Allowed from [0.9, 0.98). Default: never. Less than 1 ms: an error.
	After time.Duration

	// Allowed reports whether now is a good moment. It is called in a timer's goroutine from the drawn
	// age until 0.99 of After, when the session is replaced anyway. It is an error without After.
	Allowed func(time.Time) bool

	// Overlap defaults to OverlapHold, or to OverlapBreakFirst with RunOptions.OneConnection, which
	// allows nothing else.
	Overlap Overlap

	// Drain is how long the old session is read once the next one is ready, before it is closed. With
	// OverlapBreakFirst it is how long messages wait for the next session, whatever WhenDown says.
	// Default: 5 s. Negative: an error.
	Drain time.Duration
}

// Overlap says what happens while one session replaces another.
type Overlap uint8

// The ways to replace a session. Some servers send everything to both connections, some spread it over
// both, some allow only one.
const (
	// OverlapHold gives the reader all messages of the old session, then one seam, and then the held
	// messages of the next: at most Inbox.Bytes, and at most one message for each 64 of these bytes, or
	// Inbox.Messages if that is more. Beyond that, the old session is dropped, without a close frame.
	// While the old session is quiet the reader waits for as long as Drain.
	//
	// If the next session is lost while the inbox is full, its held messages are added anyway, once. A
	// second time they are dropped, and the session ends with ErrInboxFull.
	OverlapHold Overlap = iota

	// OverlapMix gives the reader the messages of both sessions as they come, one at a time, and the
	// seam when the old session has ended. Up to 16 messages more than Inbox.Messages may wait
	// meanwhile.
	OverlapMix

	// OverlapBreakFirst closes the old session, and then dials without a first wait, for servers that
	// allow one connection. Messages sent before the server sees the close are lost, unless the protocol
	// resumes.
	OverlapBreakFirst
)

// ErrRotated is the cause of the end of a replaced session, unless [Advice] has another.
var ErrRotated error = &link.Ended{Text: "replaced by the next session", Why: backoff.ReasonRotated}

// Rotate requests the replacement of a session, as a says, and returns immediately. It does nothing
// unless session is the current one, ready, and not being replaced already. While the previous session
// is still read, the rotation waits for its end.
func (c *Conn) Rotate(session uint64, a Advice) { c.rotate(session, a) }

// rotate is Rotate, and reports whether it does anything.
func (c *Conn) rotate(session uint64, a Advice) bool {
	l := c.readySession()
	if l == nil || l.Session != session || c.life.Leaving.Load() {
		return false
	}
	r := newReplacement(c, l, a)
	first, ok := r.enlist(a)
	if first {
		r.schedule()
	}
	return ok
}

// aging rotates a session when it has its age.
type aging struct {
	link   *link.Link
	o      *Rotation
	watch  *watch.Shared
	rotate func() bool  // reports whether the rotation is due
	last   link.Instant // from then on Allowed is not asked
	timer  xsync.Timer  // calls tick
}

// age begins to watch the age of l, which Rotate.After limits.
func (c *Conn) age(l *served) *aging {
	o := &c.life.o.Rotate
	rotate := func() bool { return c.rotate(l.Session, Advice{}) }
	a := &aging{
		link:   &l.Link,
		o:      o,
		watch:  &c.life.watch,
		rotate: rotate,
		last:   link.Now() + o.After/100*99,
	}
	latest := o.After
	if o.Allowed != nil {
		latest = o.After / 100 * 98 // so that Allowed is asked in each session
	}
	a.timer.Set(backoff.Uniform(c.life.o.Run.random(), o.After/10*9, latest), a.tick)
	return a
}

// tick is the timer's callback: it rotates the session, or looks again soon.
func (a *aging) tick() {
	allowed := true
	if a.o.Allowed != nil && link.Now() < a.last {
		a.watch.Time("Rotate.Allowed", a.link, func() { allowed = a.o.Allowed(time.Now()) })
	}
	if !a.link.Lost() && !(allowed && a.rotate()) {
		a.timer.Set(min(max(a.o.After/1000, time.Millisecond), time.Second), a.tick)
	}
}

func (a *aging) stop() {
	if a != nil {
		watch.StopTimer(a.watch.Report, &a.timer, "Rotate.Allowed")
	}
}
