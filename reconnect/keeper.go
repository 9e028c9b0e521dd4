package reconnect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// keeper is the owner of one supervisor of a [Conn]. While one session replaces another
// there are two: see [replacement]. One of them leads: its status is that of the Conn, and the
// Conn ends when it does.
type keeper struct {
	*Conn
	replaces *replacement         // that has begun its supervisor; nil: New has
	link     atomic.Pointer[link] // its present connection, or its last
	shadow   *Status              // the status that counts if it comes to lead; guarded by state.mu
}

// supervise is a supervisor goroutine. It comes to its end even if a callback ends this
// goroutine.
func (k *keeper) supervise(ctx context.Context) {
	xsync.Guard(func() {
		o := k.life.o.Run
		dials := o.dials
		if k.replaces != nil {
			dials = besideAnother(dials)
		}
		k.conclude(newSupervisor(o, dials, owner[*link](k)).run(ctx))
	}, func() {
		go k.abandon() // closes done
	})
}

// errReplaced is the error of a supervisor whose session another one has replaced.
var errReplaced = errors.New("the session was replaced")

// conclude is the last thing that a supervisor does, which has ended because of err. It ends
// the Conn if k leads. If not, the other supervisor goes on.
func (k *keeper) conclude(err error) {
	if r := k.replaces; r != nil && !r.concludeNext(err) {
		return
	}
	if r := k.replacedBy(); r != nil && !r.concludeOld() {
		return
	}
	err = k.ended(err)
	k.life.layers().end(err)
	call(k.life.trace().End, End{Name: k.life.o.Name, Err: err})
	k.finish()
}

// planned reports whether a session that is opened now replaces one that has not died.
func (k *keeper) planned() bool {
	if r := k.replacedBy(); r != nil && r.breaks {
		return true
	}
	return k.replaces.planned()
}

// replacedBy returns what replaces the session of k, nil if there is nothing. Once that session
// is lost no other replacement of it comes: see [Conn.enlist]. From then on, until the next
// session of k is attached, it is the one that has closed the session before first, or nil.
func (k *keeper) replacedBy() *replacement {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	if r := k.replacement.Load(); r != nil && r.keeper.Load() == k {
		return r
	}
	return nil
}

// abandon ends a supervisor whose goroutine was ended by a callback, and the Conn with it. It
// runs in a goroutine of its own, so that a panic of the callback ends the program.
func (k *keeper) abandon() {
	err := fmt.Errorf("%s: %w", k.serving(), errNotReturned)
	if l := k.link.Load(); l != nil {
		l.calling.leave()
		l.cut(err)
		l.parted()
		k.release(l, err)
	}
	k.life.fail(err)
	k.conclude(err)
}

// The rest are the methods of an owner.

func (k *keeper) dial(ctx context.Context) (*link, error) {
	k.life.counts.dials.Add(1)
	h, began := k.hint.newest.Load(), milliseconds(now())
	opened, err := k.dialAt(h.in(ctx), h.address())
	if err != nil {
		if ctx.Err() == nil && !isLoss(err) {
			k.hint.drop(h)
		}
		return nil, err
	}
	if opened == nil {
		return nil, backoff.Permanent(fmt.Errorf("reconnect: %T returned neither a connection nor an error", k.dialer))
	}
	l := &link{conn: opened, clock: began, extra: newExtra(&k.life, h)}
	l.late, _ = opened.(conn.BufferReader)
	return l, nil
}

// errNotFollowed is why an address was ignored by a dialer that did not look at it.
var errNotFollowed = errors.New("the dialer follows no address")

// dialAt dials, at an address that was advised if that is not empty. It reports if the dialer
// goes elsewhere.
func (k *keeper) dialAt(ctx context.Context, address string) (conn.Conn, error) {
	if address == "" {
		return k.dialer.Dial(ctx)
	}
	ignored := errNotFollowed
	try := backoff.AttemptFrom(ctx)
	try.URL, try.Followed = address, func(err error) { ignored = err }
	c, err := k.dialer.Dial(backoff.WithAttempt(ctx, try))
	if ignored != nil {
		call(k.life.trace().AddressIgnored, AddressIgnored{Name: k.life.o.Name, Err: ignored})
	} else if err != nil {
		err = &advisedError{err}
	}
	return c, err
}

func (k *keeper) name() string { return k.life.o.Name }

func (k *keeper) hooks() *hooks { return &k.life.hooks }

func (k *keeper) nextSession() uint64 { return k.life.counts.sessions.Add(1) }

func (k *keeper) dialed(l *link, s *Session) {
	l.session, l.liveness.life = s.Number, &k.life
	k.link.Store(l)
	if r := k.replaces; r != nil {
		r.describe(s)
	}
	k.state.opening(k, l)
}

// serve is one session: it opens the link, receives until the link is lost, and cleans up.
func (k *keeper) serve(ctx context.Context, l *link, s *Session) error {
	l.calling.enter(&elsewhere)
	err := k.open(l, s)
	l.calling.leave()
	if err == nil {
		err = k.ready(l, s)
	}
	if err == nil && k.replaces != nil {
		if err = k.replaces.receive(ctx, l); err == nil {
			k.receiver.ready(l)
		}
	}
	if err == nil {
		err = k.receiver.receive(ctx, l)
	}
	return k.lose(l, s, err)
}

// ready lets messages be sent by l, and begins to watch it. An error means that there is no
// use for it any more.
func (k *keeper) ready(l *link, s *Session) error {
	k.hint.drop(l.hint())
	l.clock = milliseconds(now()) - l.clock
	k.receiver.settle(l)
	if k.replaces == nil {
		k.receiver.ready(l)
	}
	if l.extra != nil {
		l.extra.idle = newIdler(&k.life, l)
	}
	bridge := k.replacedBy() // it has closed the session before first; one that comes later replaces l
	marks := true
	if r := k.replaces; r == nil {
		k.sender.attach(l)
		k.state.ready(k, l)
	} else if !r.takeOver(l) {
		return errReplaced
	} else {
		marks = r.seamGiven(l)
	}
	if bridge != nil {
		l.calling.enter(&elsewhere)
		bridge.bridged(nil)
		l.calling.leave()
	}
	k.kicks.Lower()
	s.Ready()
	k.life.layers().ready(l.session)
	l.liveness.start(l)
	if x := l.extra; x != nil {
		x.idle.start()
		x.aging = k.age(l)
		x.stall = newStall(&k.life, l, int(k.life.stalls.Load()))
		x.stall.start()
	}
	if marks {
		k.receiver.mark(l, l)
	}
	return nil
}

// lose cleans up after a session, and puts the seam into the stream of messages.
func (k *keeper) lose(l *link, s *Session, err error) error {
	l.parted()
	unread := l.unread()
	l.cut(err)
	l.parted() // what may have come just before cut
	k.release(l, err)
	_, ready := s.readyAt()
	if r := k.replaces; r != nil && ready { // the seam of the session before comes first
		r.endDrain()
		<-r.drained
	} else if r != nil && r.forget(l.session) {
		l.delivered = false
	}
	next := k.replacedBy()
	l.overlaps = next != nil && next.loseOld(err, unread)
	if !l.overlaps {
		if !next.runs() { // its supervisor may wait for a kick
			k.kicks.Lower() // because those were meant for an outage that is over
		}
		k.state.enter(k, StateWaiting, func(st *Status) { st.Err = err })
	}
	k.sender.detach(l, err)
	if !ready {
		l.calling.enter(&elsewhere)
		k.failed()
		l.calling.leave()
		if !l.broken {
			k.hint.drop(l.hint()) // the server has refused it
		}
	}
	k.life.layers().lost(l.session, err)
	if ready && !l.overlaps { // else the session that has replaced it has learned since
		l.liveness.ended(err)
	}
	if ready || l.delivered {
		k.life.counts.lost.Add(1)
		seam := &Seam{
			Session: l.session, Cause: err, Lost: 1, Reason: k.endReason(l, err),
			Planned: k.wasReplaced(l),
		}
		if l.overlaps {
			next.mark(seam)
		}
		if k.life.o.more.Resumable && !next.runs() {
			k.receiver.lose(l, seam)
		} else {
			k.receiver.seam(l, seam)
		}
	}
	if next != nil {
		k.receiver.mark(next.giveSeam(), l)
		next.release()
	}
	if k.life.leaving.Load() && !k.sender.outbox().draining() {
		return backoff.Permanent(err)
	}
	return err
}

// release stops the timers of l, which was cut because of err.
func (k *keeper) release(l *link, err error) {
	l.calling.enter(&elsewhere)
	l.extra.stop()
	l.mark().stop(&k.life)
	l.liveness.stop()
	if l.extra != nil {
		k.life.stalls.Store(int32(l.extra.stall.stop(err, int(k.life.stalls.Load()))))
	}
	l.calling.leave()
}

func (k *keeper) replaced(v backoff.Verdict) bool {
	r := k.replacedBy()
	return r != nil && r.inherit(v)
}

func (k *keeper) connecting(atGate bool) {
	k.replaces.rests(false)
	k.state.connecting(k, atGate)
}

func (k *keeper) troubled(atGate bool, try int, err error, verdict backoff.Class) {
	k.state.edit(k, func(s *Status) { s.AtGate, s.Try, s.Err, s.Verdict = atGate, try, err, verdict })
}

func (k *keeper) failed() {
	k.life.counts.failures.Add(1)
	if r := k.replacedBy(); r != nil { // it has closed the session before first
		r.bridged(errors.New("the first dial has failed"))
	}
}

func (k *keeper) lost(l *link, _ error) bool { return l.broken }

func (k *keeper) waiting(w Wait, verdict backoff.Class) {
	k.replaces.rests(w.Verdict.RetryAfter == 0)
	k.state.enter(k, StateWaiting, func(s *Status) {
		s.Try, s.Err, s.Verdict = w.Try-1, w.Cause, verdict
		s.Next = time.Now().Add(w.Verdict.RetryAfter + w.Drawn)
	})
}

func (k *keeper) ended(err error) error {
	switch failure := k.life.failure.Load(); {
	case failure != nil:
		err = &EndError{Err: *failure}
	case k.life.Ended() || k.life.leaving.Load():
		err = net.ErrClosed
	default:
		err = &EndError{Err: err}
	}
	if l := k.link.Load(); l != nil {
		l.resumed = false
		k.receiver.settle(l)
	}
	k.state.enter(k, StateClosed, func(s *Status) { s.Err = err })
	return err
}

// serving returns the name of the callback that runs in the supervisor's goroutine. It is
// empty if the supervisor waits for a callback in another goroutine, which is reported
// there.
func (k *keeper) serving() string {
	l := k.link.Load()
	if l == nil {
		return "a hook"
	}
	if name := l.calling.name.Load(); name != nil {
		return *name
	}
	if l.turn.Load()&turnMask == handling {
		return "OnMessage"
	}
	return "a hook"
}

// judge is Classify, and what advice in err asks for beyond that. An address and a hint in it
// are for the next dial, unless the session was replaced already.
func (k *keeper) judge(err error) backoff.Verdict {
	v := k.life.o.Run.classify(err)
	if _, ok := errors.AsType[*advisedError](err); ok && v.Class >= backoff.ClassRefresh {
		v.Class, v.Lenient = backoff.ClassRetry, false // the usual address may be right
	}
	if a, ok := adviceIn(err, k.life.o.more.ReadAdvice); ok && v.Class != backoff.ClassStop {
		v.RetryAfter = max(v.RetryAfter, a.drawn(k.life.o.Run.random(), time.Now(), 0))
		if !k.replacedBy().led() {
			k.hint.set(a)
		}
	}
	return v
}

func (k *keeper) reason(_ context.Context, l *link, err error) backoff.Reason {
	return k.endReason(l, err)
}

// endReason returns the kind of err, with which the session by l has ended. If the Conn was
// closed, that is why the session has ended, whatever the last error was.
func (k *keeper) endReason(l *link, err error) backoff.Reason {
	left := k.life.Ended() || k.life.leaving.Load() && !k.sender.outbox().draining()
	if left && k.life.failure.Load() == nil {
		return backoff.ReasonShutdown
	}
	return l.reason(err)
}

// atOnce reports whether the next dial follows at once: after a rotation that has closed the
// session first.
func (k *keeper) atOnce(l *link) bool { return l.reason(nil) == backoff.ReasonRotated }

func (k *keeper) wasReplaced(l *link) bool { return l.overlaps || k.atOnce(l) }

func (k *keeper) limit(t backoff.Attempt) time.Duration {
	d, ok := k.dialer.(interface {
		DialTimeout(backoff.Attempt) time.Duration
	})
	if ok {
		if limit := d.DialTimeout(t); limit > 0 {
			return limit
		}
	}
	return dialLimit(t)
}

func (k *keeper) kick() <-chan struct{} { return k.kicks.Up() }

func (k *keeper) took(bool) bool {
	k.kicks.Lower()
	return true
}

func (k *keeper) forgetKicks() { k.kicks.Lower() }
