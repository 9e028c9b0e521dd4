package reconnect

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// replacement replaces the session of one keeper by that of another, the successor.
//
// Its life: it is due at some time. Then the successor's supervisor dials, while the old
// session goes on. When the successor's session is ready, the successor leads, and the old
// supervisor reads its session to the end, gives the reader what was held, and ends. If the
// old session is lost first, the successor leads from then on. With OverlapBreakFirst
// there is no successor: the keeper itself makes the next session.
type replacement struct {
	*Conn
	keeper  atomic.Pointer[keeper] // whose session is replaced; nil: none yet, or its supervisor has ended
	old     *link                  // the session that is replaced
	session uint64                 // its number
	cause   error                  // why
	after   keeper                 // the successor
	breaks  bool                   // OverlapBreakFirst
	mixes   bool                   // OverlapMix
	due     time.Time              // when it begins, unless another one is under way then

	// Guarded by state.mu.
	ended bool         // it is over, but its RotateDone may still run
	next  *replacement // begins when this one is over; nil: none

	ctx     context.Context // of the successor's supervisor
	cancel  context.CancelFunc
	start   xsync.Timer   // calls begin
	drain   xsync.Timer   // calls endDrain; or ends the patience of writes, with OverlapBreakFirst
	failed  chan struct{} // closed when the successor's supervisor has ended, and never led
	drained chan struct{} // closed when the reader has all of the old session, and of what was held; written under mu
	gone    chan struct{} // closed when the old supervisor has ended

	mu      sync.Mutex // guards what follows
	phase   phase
	began   time.Time
	idle    bool      // the successor waits before its next dial, and the server has not asked for that
	ready   bool      // the successor has had a session that was ready
	resumed bool      // the first of them has resumed the stream
	lost    error     // why the old session was lost before that; nil: it was not
	lostAt  time.Time // when
	behind  bool      // nobody read the old session when the successor came to lead, so that its peer may have ended it before
	short   bool      // messages between the two sessions may be missing
	held    holding   // of the successor's session, while the old one is read

	releasing bool  // the reader gets what was held
	given     bool  // the reader has the seam after the old session
	marks     *link // the successor's, whose mark comes after that seam; nil: none waits for it
}

// phase is how far a replacement is.
type phase uint8

const (
	phaseDue     phase = iota
	phaseDialing       // the successor's supervisor runs, or the old session is closed first
	phaseLed           // the successor leads
	phaseGivenUp       // the successor will not lead any more
)

func newReplacement(c *Conn, l *link, a Advice) *replacement {
	o, at := &c.life.o.more.Rotate, time.Now()
	r := &replacement{
		Conn: c, old: l, session: l.session, cause: a.Cause, breaks: o.Overlap == OverlapBreakFirst, mixes: o.Overlap == OverlapMix,
		failed: make(chan struct{}), drained: make(chan struct{}), gone: make(chan struct{}),
	}
	if r.cause == nil {
		r.cause = ErrRotated
	}
	r.due = at.Add(a.drawn(c.life.o.Run.random(), at, time.Duration(l.clock)*time.Millisecond))
	r.after.Conn, r.after.replaces = c, r
	return r
}

// schedule sets the timer for begin.
func (r *replacement) schedule() { r.start.Set(max(time.Until(r.due), 0), r.begin) }

// begin is the timer's callback: it begins the replacement, unless the old session is lost.
func (r *replacement) begin() {
	r.mu.Lock()
	old := r.old
	ok := r.phase == phaseDue && !old.lost() && !r.life.leaving.Load()
	if ok {
		r.phase, r.began = phaseDialing, time.Now()
		r.state.rotating(&r.after) // under mu, because inherit needs the successor's status
		if !r.breaks {
			r.ctx, r.cancel = context.WithCancel(&r.life.Context)
		}
	}
	r.mu.Unlock()
	if !ok {
		return // its supervisor calls concludeOld or inherit
	}
	r.hook("Trace.RotateStart", func() {
		call(r.life.trace().RotateStart, RotateStart{Name: r.life.o.Name, Session: r.session, Cause: r.cause})
	})
	if r.breaks {
		r.life.bridging.Store(true)
		r.drain.Set(r.life.o.more.Rotate.Drain, r.endBridge)
		old.part(r.cause, backoff.ReasonRotated, min(r.life.o.CloseTimeout, farewell))
		return
	}
	go r.after.supervise(r.ctx) // joined by concludeOld or, if it leads, by Done
}

// hook calls a hook, and ends the Conn if it does not return. It has a goroutine of its own,
// because what follows in this one is awaited.
func (r *replacement) hook(name string, f func()) {
	hook := xsync.Go(f)
	if r.life.waitFor(hook.Done(), name); !hook.Returned() {
		r.life.fail(fmt.Errorf("%s: %w", name, errNotReturned))
	}
}

// besideAnother returns the options of the successor's dials, of which there is one at a time.
func besideAnother(o *backoff.DialOptions) *backoff.DialOptions {
	one := *o
	one.OneConnection, one.StartSpread = true, 0
	return &one
}

// The successor's supervisor calls these.

// planned reports whether a session that is opened now replaces one that has not died.
func (r *replacement) planned() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.ready && r.lost == nil
}

// rests notes whether the successor waits before its next dial, and the server has not asked
// for that.
func (r *replacement) rests(idle bool) {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.idle = idle
	}
}

// describe says why there is a new session.
func (r *replacement) describe(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ready:
		return
	case r.lost != nil:
		s.Downtime = time.Since(r.lostAt)
		if s.Cause == nil {
			s.Cause = r.lost
		}
	default:
		s.Downtime = 0
		if s.Cause == nil {
			s.Cause = r.cause
		}
	}
}

// takeOver makes the successor lead, whose session by l is ready. It returns false if there is
// no use for that any more.
func (r *replacement) takeOver(l *link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase == phaseGivenUp {
		return false
	}
	if !r.ready {
		r.ready, r.resumed = true, l.resumed
	}
	if r.phase == phaseLed {
		r.sender.attach(l)
		r.state.ready(&r.after, l)
		return true
	}
	r.phase, r.behind = phaseLed, r.old.paused()
	r.state.succeed(&r.after, l, r.sender.attach)
	r.drain.Set(r.life.o.more.Rotate.Drain, r.endDrain)
	return true
}

// receive reads l, the successor's session, until the reader has all of the old one.
func (r *replacement) receive(ctx context.Context, l *link) error {
	for !r.life.closed.Load() {
		if !r.holds() {
			return nil
		}
		m, err := l.conn.Read(nil)
		if err != nil {
			return l.endedBy(err)
		}
		r.life.counts.received(m)
		l.heard()
		if err := r.pass(ctx, l, m, noLayer); err != nil {
			return err
		}
	}
	return net.ErrClosed
}

// pass gives a message of the successor's session to the layers but one, and then to the
// reader, or holds it until the reader has all of the old session. m belongs to r.
func (r *replacement) pass(ctx context.Context, l *link, m conn.Message, but int) error {
	msg := Message{Message: m, Session: l.session}
	if r.life.layers().take(msg, but) {
		return nil
	}
	l.delivered = true
	switch held, full := r.hold(msg); {
	case full:
		r.cutOld()
		return r.awaitDrained(ctx, l)
	case held:
		return nil
	case l.Ended(): // perhaps by release, because there was no room for what came before
		return l.why(net.ErrClosed)
	}
	return r.receiver.pass(ctx, l, msg)
}

// awaitDrained waits until nothing is held, or until ctx or l ends. Meanwhile nobody reads l.
func (r *replacement) awaitDrained(ctx context.Context, l *link) error {
	l.pause(blocked)
	defer l.resume()
	l.liveness.blocked()
	select {
	case <-r.drained:
		return nil
	case <-l.Done():
		return l.why(net.ErrClosed)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hold holds a message until the reader has all of the old session, unless it has by now. It
// reports whether it holds as much as it may.
func (r *replacement) hold(m Message) (held, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.holds() || r.mixes && r.lost == nil {
		return false, false
	}
	return true, r.held.add(m, &r.life.o.Inbox)
}

// holds reports whether the reader has not got all of the old session, and of what was held,
// yet.
func (r *replacement) holds() bool {
	select {
	case <-r.drained:
		return false
	default:
		return true
	}
}

// forget drops what is held of a session that was never ready. It reports whether it was
// anything. If the reader gets what was held just now, forget drops nothing and waits until the
// reader has it, because the seam of the session comes after that.
func (r *replacement) forget(session uint64) bool {
	r.mu.Lock()
	releasing := r.releasing
	forgotten := !releasing && r.held.forget(session)
	r.mu.Unlock()
	if releasing {
		<-r.drained
	}
	return forgotten
}

// farewell is how long the close handshake of a session that was replaced, or ended by Redial,
// may last: not long, because the reader or the redial waits for the end.
const farewell = time.Second

// endDrain ends the old session, politely.
func (r *replacement) endDrain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.old != nil {
		r.old.part(r.cause, backoff.ReasonRotated, min(r.life.o.CloseTimeout, farewell))
	}
}

// endOverlap is endDrain if two sessions overlap. It returns the link of the old one, or nil.
func (r *replacement) endOverlap() *link {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	old := r.old
	if r.phase != phaseLed {
		old = nil
	}
	r.mu.Unlock()
	if old != nil {
		r.endDrain()
	}
	return old
}

// cutOld ends the old session at once.
func (r *replacement) cutOld() {
	r.mu.Lock()
	old := r.old
	r.short = true
	r.mu.Unlock()
	if old != nil {
		old.part(r.cause, backoff.ReasonRotated, -1)
	}
}

// concludeNext is called when the successor's supervisor has ended because of err. It reports
// whether the successor leads, and then waits for the old supervisor.
func (r *replacement) concludeNext(err error) bool {
	r.mu.Lock()
	leads := r.phase == phaseLed
	if !leads {
		r.phase = phaseGivenUp
	}
	lost := r.lost
	r.mu.Unlock()
	r.cancel()
	if leads {
		r.endDrain()
		<-r.gone
		return true
	}
	if lost != nil {
		err = lost
	}
	r.over(err)
	close(r.failed)
	return false
}
