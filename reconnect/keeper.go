package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/schedule"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// keeper is the owner of one supervisor of a [Conn]. During a [replacement] there are two. One of them
// leads: its status is the status of the Conn, and the Conn ends when it does.
type keeper struct {
	c         *Conn
	seat      seat
	origin    *origin // the rotation that has begun its supervisor; nil: New has
	concluded bool    // the end of the Conn has begun
}

// origin is what a supervisor keeps of the rotation that has begun it.
type origin struct {
	cancel  context.CancelFunc          // ends the supervisor
	follows atomic.Pointer[replacement] // nil: the rotation has ended
	before  atomic.Pointer[cut]         // the loss after which the supervisor came to lead, until a session is ready; nil: it was none
}

// cut is how a session was lost.
type cut struct {
	err error
	at  time.Time
}

// supervise is a supervisor goroutine. It comes to its end even if a callback ends this goroutine.
func (k *keeper) supervise(ctx context.Context) {
	xsync.Guard(func() {
		o := k.c.life.o.Run
		dials := o.dials
		if k.origin != nil {
			dials = besideAnother(dials)
		}
		k.conclude(newSupervisor(o, dials, owner[*served](k), &k.c.life.hooks).run(ctx))
	}, func() {
		go k.abandon() // closes done
	})
}

// errReplaced is the error of a supervisor whose session another one has replaced.
var errReplaced = errors.New("the session was replaced")

// conclude is the last act of a supervisor, which has ended because of err. It ends the Conn if k leads.
// If not, the other supervisor goes on.
func (k *keeper) conclude(err error) {
	if k.origin != nil {
		k.origin.cancel()
	}
	for range 2 { // a successor that leads may have been replaced in turn
		if !k.side().done(err) {
			return
		}
	}
	k.concluded = true
	err = k.ended(err)
	xsync.InOrder(slices.Concat(
		[]func(){k.settle, func() { k.c.state.enter(&k.seat, StateClosed, func(s *Status) { s.Err = err }) }},
		k.c.layers.ends(err),
		[]func(){
			func() { call(k.c.life.trace().ConnDone, ConnDone{Name: k.c.life.hooks.name, Err: err}) },
			func() { k.c.sender.end(); k.c.done.Raise() },
		})...)
}

// abandon ends a supervisor whose goroutine was ended by a callback, and the Conn with it. It
// runs in a goroutine of its own, so that a panic of the callback ends the program.
func (k *keeper) abandon() {
	if k.concluded {
		return // the rest of conclude goes on
	}
	err := fmt.Errorf("%s: %w", k.serving(), xsync.ErrNotReturned)
	if l := k.seat.link.Load(); l != nil {
		l.calling.leave()
		l.Cut(err)
		l.Parted()
		l.stop(&k.c.life.watch, err)
	}
	k.c.life.fail(err)
	k.conclude(err)
}

// The rest are the methods of an owner.

func (k *keeper) dial(ctx context.Context) (*served, error) {
	k.c.life.counts.dials.Add(1)
	h, began := k.c.hint.newest.Load(), link.Milliseconds(link.Now())
	opened, err := k.dialAt(h.in(ctx), h.address())
	if err != nil {
		if ctx.Err() == nil && !isLoss(err) {
			k.c.hint.drop(h)
		}
		return nil, err
	}
	if opened == nil {
		return nil, backoff.Permanent(fmt.Errorf("reconnect: %T returned neither a connection nor an error", k.c.dialer))
	}
	l := &served{clock: began, extra: newExtra(&k.c.life, h)}
	l.Begin(opened, &k.c.life.Life, k.c.life.o.Pace)
	return l, nil
}

// errNotFollowed is why an address was ignored by a dialer that did not look at it.
var errNotFollowed = errors.New("the dialer follows no address")

// dialAt dials address, or the usual endpoint if address is empty. If the dialer ignores address, it calls Trace.AddressIgnored.
func (k *keeper) dialAt(ctx context.Context, address string) (conn.Conn, error) {
	if address == "" {
		return k.c.dialer.Dial(ctx)
	}
	ignored := errNotFollowed
	try := schedule.AttemptFrom(ctx)
	try.URL, try.Followed = address, func(err error) { ignored = err }
	c, err := k.c.dialer.Dial(schedule.WithAttempt(ctx, try))
	if ignored != nil {
		call(k.c.life.trace().AddressIgnored, AddressIgnored{Name: k.c.life.hooks.name, Err: ignored})
	} else if err != nil {
		err = &advisedError{err}
	}
	return c, err
}

func (k *keeper) dialed(l *served, s *Session) {
	s.Number = k.c.life.Counts.Sessions.Add(1)
	l.Session = s.Number
	k.seat.link.Store(l)
	k.side().describe(s)
	k.c.state.opening(&k.seat, l)
}

// serve is one session: it opens the link, receives until the link is lost, and cleans up.
func (k *keeper) serve(ctx context.Context, l *served, s *Session) error {
	side := k.side()
	l.calling.enter(&elsewhere)
	err := k.open(l, s, side)
	l.calling.leave()
	if err == nil {
		err = k.ready(l, s, side)
	}
	if err == nil {
		err = side.receive(ctx, l)
	}
	if err == nil {
		err = k.c.receiver.receive(ctx, l)
	}
	return k.teardown(l, s, err)
}

// ready lets messages be sent by l, and begins to watch it. An error means that there is no use for l.
func (k *keeper) ready(l *served, s *Session, side side) error {
	k.c.hint.drop(l.extra.hint)
	l.clock = link.Milliseconds(link.Now()) - l.clock
	k.c.receiver.settle(l)
	l.prepare(&k.c.life.watch)
	marks, err := side.ready(l)
	if err != nil {
		return err
	}
	if k.origin != nil {
		k.origin.before.Store(nil)
	}
	s.Ready()
	k.c.layers.ready(l.Session)
	l.start(k.c.age(l))
	if marks {
		k.c.receiver.mark(l, l)
	}
	return nil
}

// teardown cleans up after a session, and puts the seam into the stream of messages.
func (k *keeper) teardown(l *served, s *Session, err error) error {
	l.Parted()
	unread := l.Unread()
	l.Cut(err)
	l.Parted() // what may have come just before cut
	l.stop(&k.c.life.watch, err)
	_, ready := s.end()
	side := k.side()
	var dials bool
	if l.overlaps, dials = side.lost(l, loss{err, ready, unread}); !l.overlaps {
		if !dials { // its supervisor may wait for a kick
			k.c.kicks.Lower() // because those were meant for an outage that is over
		}
		k.c.state.enter(&k.seat, StateWaiting, func(st *Status) { st.Err = err })
	}
	k.c.sender.detach(&l.Link, err, l.keeps(&k.c.life, err))
	if !ready {
		k.neverReady(l)
	}
	k.c.layers.sessionEnded(l.Session, err)
	if ready && !l.overlaps { // else the session that has replaced it has learned since
		l.liveness.Ended(err)
	}
	if ready || l.delivered {
		k.c.life.counts.lost.Add(1)
		k.putSeam(l, side, err, dials)
	}
	k.c.receiver.mark(side.marks(), l)
	side.release()
	if k.c.life.Leaving.Load() && !k.c.sender.outbox().Draining() {
		return backoff.Permanent(err)
	}
	return err
}

// neverReady notes that the session of l has ended before it was ready.
func (k *keeper) neverReady(l *served) {
	l.calling.enter(&elsewhere)
	k.failed()
	l.calling.leave()
	if !l.broken {
		k.c.hint.drop(l.extra.hint) // the server has refused it
	}
}

// putSeam puts the seam of a session into the stream, or keeps it until the next session may have
// resumed the stream. dials says that the next session is another supervisor's.
func (k *keeper) putSeam(l *served, side side, err error, dials bool) {
	how := k.ending(l, l, err)
	seam := &Seam{Session: l.Session, Cause: err, Lost: 1, Reason: how.reason, Planned: how.planned}
	if l.overlaps {
		side.mark(seam)
	}
	if k.c.life.o.Resumable && !dials {
		k.c.receiver.holdSeam(l, seam)
	} else {
		k.c.receiver.putSeam(l, seam)
	}
}

func (k *keeper) replaced(v backoff.Verdict) bool { return k.side().inherits(v) }

func (k *keeper) connecting(atGate bool) {
	k.side().rests(false)
	k.c.state.connecting(&k.seat, atGate)
}

func (k *keeper) troubled(atGate bool, try int, err error, verdict backoff.Class) {
	k.c.state.edit(&k.seat, func(s *Status) { s.AtGate, s.Try, s.Err, s.Verdict = atGate, try, err, verdict })
}

func (k *keeper) failed() {
	k.c.life.counts.failures.Add(1)
	k.side().failed(errors.New("the first dial has failed"))
}

func (k *keeper) lost(l *served, _ error) bool { return l.broken }

func (k *keeper) waiting(w WaitStart, verdict backoff.Class) {
	k.side().rests(w.Verdict.RetryAfter == 0)
	k.c.state.enter(&k.seat, StateWaiting, func(s *Status) {
		s.Try, s.Err, s.Verdict = w.Try-1, w.Cause, verdict
		s.Next = time.Now().Add(w.Verdict.RetryAfter + w.Drawn)
	})
}

func (k *keeper) ended(err error) error {
	switch failure := k.c.life.failure.Load(); {
	case failure != nil:
		return &EndError{Err: *failure}
	case k.c.life.Ended() || k.c.life.Leaving.Load():
		return net.ErrClosed
	}
	return &EndError{Err: err}
}

// settle puts the seam that waits for the next session.
func (k *keeper) settle() {
	if l := k.seat.link.Load(); l != nil {
		l.resumed = false
		k.c.receiver.settle(l)
	}
}

// serving returns the name of the callback that runs in the supervisor's goroutine, "" if it runs in
// another goroutine, which reports it.
func (k *keeper) serving() string {
	l := k.seat.link.Load()
	if l == nil {
		return "a hook"
	}
	if name := l.calling.name.Load(); name != nil {
		return *name
	}
	if l.Turn().Does() == link.Handling {
		return "OnMessage"
	}
	return "a hook"
}

// judge is Classify, with a longer wait if advice in err asks for it. The address and the hint of the
// advice are for the next dial, unless the session was replaced already.
func (k *keeper) judge(err error) backoff.Verdict {
	v := k.c.life.o.Run.classify(err)
	if _, ok := errors.AsType[*advisedError](err); ok && v.Class >= backoff.ClassRefresh {
		v.Class, v.Lenient = backoff.ClassRetry, false // the usual address may be right
	}
	if a, ok := adviceIn(err); ok && v.Class != backoff.ClassStop {
		v.RetryAfter = max(v.RetryAfter, a.drawn(k.c.life.o.Run.random(), time.Now(), 0))
		if l := k.seat.link.Load(); l == nil || !l.overlaps {
			k.c.hint.set(a)
		}
	}
	return v
}

// ending: if the Conn was closed, that is why the session has ended, whatever the last error was.
func (k *keeper) ending(_ context.Context, l *served, err error) ending {
	atOnce := l.Reason(nil) == backoff.ReasonRotated // OverlapBreakFirst has closed the session
	e := ending{reason: l.Reason(err), planned: l.overlaps || atOnce, atOnce: atOnce}
	left := k.c.life.Ended() || k.c.life.Leaving.Load() && !k.c.sender.outbox().Draining()
	if left && k.c.life.failure.Load() == nil {
		e.reason = backoff.ReasonShutdown
	}
	return e
}

func (k *keeper) limit(t schedule.Attempt) time.Duration {
	d, ok := k.c.dialer.(interface {
		DialTimeout(schedule.Attempt) time.Duration
	})
	if ok {
		if limit := d.DialTimeout(t); limit > 0 {
			return limit
		}
	}
	return dialLimit(t)
}

func (k *keeper) reserved() func() {
	if r, is := k.side().(predecessor); is {
		return r.login
	}
	return nil
}

func (k *keeper) kick() <-chan struct{} { return k.c.kicks.Up() }

func (k *keeper) took(bool) bool {
	k.c.kicks.Lower()
	return true
}

func (k *keeper) forgetKicks() { k.c.kicks.Lower() }
