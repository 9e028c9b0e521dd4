package reconnect

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/handover"
	"github.com/redial-go/redial/reconnect/internal/inbox"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// replacement is one rotation of a Conn, from the request to its end: the lock, the timers and the
// channels around a [handover.Machine], which decides. The two supervisors tell it what happens:
// see predecessor and successor. With OverlapBreakFirst there is no successor.
type replacement struct {
	c       *Conn
	seat    *seat     // of the supervisor whose session is replaced
	session uint64    // its number
	cause   error     // why
	due     time.Time // when it begins, unless another one is under way then
	next    keeper    // the successor
	login   func()    // ends the reservation of a login for the dial after OverlapBreakFirst; set before the session is closed

	ctx      context.Context // of the successor's supervisor
	start    xsync.Timer     // calls begin
	drain    xsync.Timer     // calls endDrain, or endBridge with OverlapBreakFirst
	givenUp  chan struct{}   // closed when the successor's supervisor has ended, and never led
	released chan struct{}   // closed when the reader has all of the old session, and of what was held; written under mu
	gone     chan struct{}   // closed when the old supervisor has ended

	// Guarded by state.mu.
	ended   bool         // the rotation is over, but its RotateDone may still run
	waiting *replacement // it begins when this one is over; nil: none

	mu      sync.Mutex // guards what follows
	machine handover.Machine
	old     *served // the session that is replaced; nil: its supervisor has ended
	began   time.Time
	lost    *cut       // the loss of the old session before the successor led; nil: there was none
	held    inbox.Held // of the successor's session, while the old one is read
	waits   *served    // the successor's session, whose mark comes after the seam of the old one; nil: none waits for that
	seamed  bool       // the reader has that seam
}

// rotationPace limits how often rotations of a Conn begin. No two rotations begin at the same time,
// so that none begins between wait and began. The zero value is the pace of a Conn without a
// rotation so far.
type rotationPace struct {
	full atomic.Int64 // the link.Instant at which the burst is complete again; 0 before the first rotation
}

// Up to rotationBurst rotations may follow one another without a pause; then one begins every
// rotationEvery.
const (
	rotationBurst = 10
	rotationEvery = 2 * time.Second
)

// wait returns how long the next rotation has to wait.
func (p *rotationPace) wait() time.Duration {
	full := link.Instant(p.full.Load())
	if full == 0 {
		return 0
	}
	return max(full-link.Now()-(rotationBurst-1)*rotationEvery, 0)
}

// began counts a rotation.
func (p *rotationPace) began() {
	now, full := link.Now(), link.Instant(p.full.Load())
	if full == 0 { // now may be negative
		full = now
	}
	p.full.Store(int64(max(full, now) + rotationEvery))
}

func newReplacement(c *Conn, l *served, a Advice) *replacement {
	at := time.Now()
	r := &replacement{
		c: c, old: l, session: l.Session, cause: cmp.Or(a.Cause, ErrRotated),
		due:     at.Add(a.drawn(c.life.o.Run.random(), at, time.Duration(l.clock)*time.Millisecond)),
		machine: handover.New(handover.Overlap(c.life.o.Rotate.Overlap)),
		givenUp: make(chan struct{}), released: make(chan struct{}), gone: make(chan struct{}),
	}
	r.next.c, r.next.origin = c, &origin{old: r.gone}
	r.next.calls.Init(&c.life.hooks, c.life.watch.SlowAfter())
	r.next.origin.follows.Store(r)
	return r
}

// enlist makes r the replacement of the present session, or lets it wait for the end of another. first says
// that r may be scheduled; ok, that r has a use. The lock and the look at the link make sure that a
// session which is lost gets no replacement any more.
func (r *replacement) enlist(hint Advice) (first, ok bool) {
	c := r.c
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	lead, was := c.state.lead, c.replacement.Load()
	switch {
	case lead.link.Load() != r.old || r.old.Lost():
		return false, false
	case was != nil && was.session == r.session && !was.ended, was != nil && was.waiting != nil && was.waiting.session == r.session:
		return false, false
	}
	r.seat = lead
	c.hint.set(hint)
	if was != nil {
		was.waiting = r
		return false, true
	}
	c.replacement.Store(r)
	return true, true
}

// schedule sets the timer for begin.
func (r *replacement) schedule() { r.start.Set(max(time.Until(r.due), 0), r.begin) }

// vacate makes room for another rotation of the Conn, which may wait. A successor is alone from now on.
func (r *replacement) vacate() {
	r.next.origin.follows.Store(nil)
	r.c.state.mu.Lock()
	next := r.waiting
	if r.waiting = nil; next != nil && next.old.Lost() {
		next = nil // because its supervisor does not ask for it any more
	}
	r.c.replacement.CompareAndSwap(r, next)
	r.c.state.mu.Unlock()
	if next != nil {
		next.schedule()
	}
}

// unlock releases mu after a step of the machine.
func (r *replacement) unlock() {
	if handover.Tap != nil {
		handover.Tap(&r.machine)
	}
	r.mu.Unlock()
}

// begin is the timer's callback. With OverlapBreakFirst the old session goes on until a login is reserved for the next one.
func (r *replacement) begin() {
	if wait := r.c.rotations.wait(); wait > 0 {
		r.start.Set(wait, r.begin)
		return
	}
	release := func() {}
	if o := r.c.life.o; o.Rotate.Overlap == OverlapBreakFirst {
		var short *budget.LoginError
		if release, short, _ = o.Run.Logins.Reserve(nil); short != nil {
			wait, _ := short.RetryAfter()
			r.start.Set(min(max(wait, time.Second), 5*time.Second), r.begin) // a reservation may end before that
			return
		}
	}
	r.mu.Lock()
	old := r.old
	what := r.machine.Begin(old.Lost() || r.c.life.Leaving.Load())
	if what == handover.BeginBreak {
		r.login = release
	}
	if what != handover.BeginNothing {
		r.began = time.Now()
		r.c.rotations.began()
		r.c.state.rotating(&r.next.seat) // under mu, because inherits needs the successor's status
	}
	if what == handover.BeginDial {
		r.ctx, r.next.origin.cancel = xsync.Child(&r.c.life.Context)
	}
	r.unlock()
	if what == handover.BeginNothing {
		release()
		return // the old supervisor ends the rotation
	}
	if hook := r.c.life.hooks.Load().RotateStart; hook != nil {
		e := RotateStart{Name: r.c.life.hooks.name, Session: r.session, Cause: r.cause}
		r.hook("Trace.RotateStart", func() { hook(e) })
	}
	if what == handover.BeginBreak {
		r.c.life.Bridging.Store(true)
		r.drain.Set(r.c.life.o.Rotate.Drain, r.endBridge)
		r.close(old)
		return
	}
	go r.next.supervise(r.ctx) // joined by the predecessor's done or, if it leads, by Done
}

// hook calls a hook in a goroutine of its own, and ends the Conn if the hook does not return.
func (r *replacement) hook(name string, f func()) {
	hook := xsync.Go(func() { r.c.life.watch.Time(name, nil, f) })
	if <-hook.Done; !hook.Returned {
		r.c.life.fail(fmt.Errorf("%s: %w", name, xsync.ErrNotReturned))
	}
}

// besideAnother returns the options of the successor's dials, of which there is one at a time.
func besideAnother(o *schedule.DialOptions) *schedule.DialOptions {
	one := *o
	one.OneConnection, one.StartSpread = true, 0
	return &one
}

// farewell is the limit on the close handshake of a session that was replaced or ended by Redial: the
// reader or the redial waits for it.
const farewell = time.Second

// close closes the old session in order. old may be nil.
func (r *replacement) close(old *served) {
	if old != nil {
		old.Retire(r.cause, backoff.ReasonRotated, min(r.c.life.o.CloseTimeout, farewell))
	}
}

// endDrain closes the old session in order, unless its supervisor has ended.
func (r *replacement) endDrain() {
	r.mu.Lock()
	old := r.old
	r.mu.Unlock()
	r.close(old)
}

// endOverlap is endDrain if two sessions overlap. It returns the link of the old one, or nil.
func (r *replacement) endOverlap() *link.Link {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	old, overlap := r.old, r.machine.Leads()
	r.mu.Unlock()
	if old == nil || !overlap {
		return nil
	}
	r.close(old)
	return &old.Link
}

// hold holds a message of the successor's session until the reader has all of the old session. It
// reports whether it holds the message, and whether it holds as much as it may.
func (r *replacement) hold(m Message) (held, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.machine.Holds() {
		return false, false
	}
	return true, r.held.Add(inbox.Item(m), r.c.life.o.Inbox.limits())
}

// reads reports whether the reader has not got all of the old session, and of what was held.
func (r *replacement) reads() bool {
	select {
	case <-r.released:
		return false
	default:
		return true
	}
}

// endRelease closes released. The caller holds mu.
func (r *replacement) endRelease() {
	if r.reads() {
		close(r.released)
	}
}

// stop stops the timers.
func (r *replacement) stop() {
	r.start.Stop()
	r.drain.Stop()
	r.start.Wait()
	r.drain.Wait()
}

// report says that the rotation has ended, because of err if it has failed.
func (r *replacement) report(err error) {
	if err != nil {
		r.c.life.counts.rotationsFailed.Add(1)
	} else {
		r.c.life.counts.rotations.Add(1)
	}
	r.c.state.rotated(func() { r.ended = true })
	if hook := r.c.life.hooks.Load().RotateDone; hook != nil {
		e := RotateDone{Name: r.c.life.hooks.name, Session: r.session, Took: time.Since(r.began), Err: err}
		r.hook("Trace.RotateDone", func() { hook(e) })
	}
	r.vacate()
}

// lower says that messages need not wait any more for the session after OverlapBreakFirst.
func (r *replacement) lower() {
	r.c.life.Bridging.Store(false)
	r.c.life.Changed.Broadcast()
}

// endBridge is the timer's callback: messages have waited long enough.
func (r *replacement) endBridge() {
	r.lower()
	r.c.sender.outbox.Load().Strand(&r.old.Link, r.cause, nil)
}
