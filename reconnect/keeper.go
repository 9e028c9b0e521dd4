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
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/watch"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// keeper is the owner of one supervisor of a [Conn]. During a [replacement] there are two. One of them
// leads: its status is the status of the Conn, and the Conn ends when it does.
type keeper struct {
	c         *Conn
	seat      seat
	calls     watch.Calls // the calls of the user's functions in its goroutine
	origin    *origin     // rotation that started its supervisor, or nil if New did
	concluded bool        // the end of the Conn has begun
	waits     bool        // it waits before its next dial
}

// origin is what a supervisor keeps of the rotation that has begun it.
type origin struct {
	cancel  context.CancelFunc          // ends the supervisor
	follows atomic.Pointer[replacement] // nil: the rotation has ended
	old     <-chan struct{}             // closed when the supervisor before it has ended, if it leads
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
		k.conclude(newSupervisor(o, dials, owner[*served](k), &k.c.life.hooks, &k.calls).run(ctx))
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
		if !k.side().done(err) { // then done has stopped k.calls
			return
		}
	}
	k.awaitOld()
	k.concluded = true
	err = k.ended(err)
	xsync.InOrder(slices.Concat(
		[]func(){k.settle, func() { k.publish(err) }},
		k.c.layers.ends(&k.calls, err),
		[]func(){
			func() {
				call(&k.calls, &hookNames.ConnDone, k.c.life.hooks.Load().ConnDone, ConnDone{
					Name: k.c.life.hooks.name,
					Err:  err,
				})
			},
			k.finish,
		})...)
}

// awaitOld waits until the supervisor before k has ended, if there was one: a SlowHandler of its session may
// still run. Only a supervisor that leads or has led may call awaitOld.
func (k *keeper) awaitOld() {
	if k.origin != nil {
		<-k.origin.old
	}
}

// giveUp ends a Conn that was never started, because the Start of a layer has failed. It calls no
// hook. The state is StateClosed only after the layers have ended, so that End can tell by another
// state that the Conn has never lived.
func (k *keeper) giveUp(started layers, err error) {
	k.c.life.fail(err)
	err = k.ended(err)
	xsync.InOrder(slices.Concat(
		[]func(){k.settle},
		started.ends(&k.calls, err),
		[]func(){func() { k.publish(err) }, k.finish},
	)...)
}

// publish sets StateClosed, the last state of the Conn.
func (k *keeper) publish(err error) {
	k.c.state.enter(&k.seat, StateClosed, func(s *Status) { s.Err = err })
}

// finish ends the outbox, and closes Done.
func (k *keeper) finish() {
	k.calls.Stop()
	k.c.sender.end()
	k.c.done.Raise()
}

// abandon ends a supervisor whose goroutine was ended by a callback, and the Conn with it. It
// runs in a goroutine of its own, so that a panic of the callback ends the program.
func (k *keeper) abandon() {
	if k.concluded {
		return // the rest of conclude goes on
	}
	name := k.calls.Name()
	if name == "" {
		name = "a callback" // which a step of the library's has called
	}
	err := fmt.Errorf("%s: %w", name, xsync.ErrNotReturned)
	k.calls.Leave(nil)
	if l := k.seat.link.Load(); l != nil {
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
	began, address := uint32(link.Now().Milliseconds()), ""
	h := k.c.hint.newest.Load()
	if h != nil {
		address = h.address()
		if h.url != "" && address == "" {
			h = nil // because another dial has tried the URL, and the hint is for that dial only
		}
		ctx = h.in(ctx)
	}
	opened, followed, err := k.dialAt(ctx, address)
	if m, ok := errors.AsType[*movedError](err); ok {
		h.again(m, address)
		return nil, err
	}
	if err != nil {
		if ctx.Err() == nil && !isLoss(err) || address != "" {
			k.c.hint.drop(h)
		}
		return nil, err
	}
	if opened == nil {
		return nil, backoff.Permanent(fmt.Errorf("reconnect: %T returned neither a connection nor an error", k.c.dialer))
	}
	l := &served{clock: began, extra: newExtra(&k.c.life, h)}
	if followed {
		l.extra.advised = true
	}
	l.Begin(opened, &k.c.life.Life, k.c.life.o.Pace)
	return l, nil
}

// errNotFollowed is why an address was ignored by a dialer that did not look at it.
var errNotFollowed = errors.New("the dialer follows no address")

// dialAt dials address, or the usual endpoint if address is empty, and reports whether the dialer
// has followed address. If the dialer ignores address, dialAt calls Trace.AddressIgnored.
func (k *keeper) dialAt(ctx context.Context, address string) (c conn.Conn, followed bool, err error) {
	if address == "" {
		c, err = k.c.dialer.Dial(ctx)
		return c, false, err
	}
	ignored := errNotFollowed
	try := backoff.AttemptFrom(ctx)
	try.URL, try.Followed = address, func(err error) { ignored = err }
	c, err = k.c.dialer.Dial(backoff.WithAttempt(ctx, try))
	if ignored != nil {
		if hook := k.c.life.hooks.Load().AddressIgnored; hook != nil {
			e := AddressIgnored{Name: k.c.life.hooks.name, Err: ignored}
			k.c.life.watch.Time("Trace.AddressIgnored", nil, func() { hook(e) })
		}
	} else if err != nil {
		err = &advisedError{err}
	}
	return c, ignored == nil, err
}

func (k *keeper) dialed(l *served, s *Session) {
	s.Number = k.c.life.Counts.Sessions.Add(1)
	l.Session, l.calls = s.Number, &k.calls
	k.calls.Follow(&l.Link)
	k.seat.link.Store(l)
	k.side().describe(s)
	k.c.state.opening(&k.seat, l, k.c.kicks.Lower) // kicks were meant for the outage that is over
}

// serve is one session: it opens the link, receives until the link is lost, and cleans up.
func (k *keeper) serve(ctx context.Context, l *served, s *Session) (ending, error) {
	side := k.side()
	outer := k.calls.Enter(&watch.Elsewhere)
	err := k.open(l, s, side)
	k.calls.Leave(outer)
	if err == nil {
		err = k.activate(l, s, side)
	}
	if err == nil {
		err = side.receive(ctx, l)
	}
	if err == nil {
		err = k.c.receiver.receive(ctx, l)
	}
	err = k.teardown(l, s, err)
	return l.ending, err
}

// activate lets messages be sent by l, and begins to watch it. An error means that there is no use for l.
func (k *keeper) activate(l *served, s *Session, side side) error {
	if h := l.extra.hint; h != nil {
		k.c.hint.drop(h)
	}
	l.clock = uint32(link.Now().Milliseconds()) - l.clock
	if k.c.life.o.Resumable {
		k.c.receiver.settle(l)
	}
	l.prepare(&k.c.life.watch)
	l.Lag(true) // until the hooks have returned, because no goroutine reads l meanwhile
	defer l.Lag(false)
	marks, err := side.lead(l)
	if err != nil {
		return err
	}
	if k.c.life.Leaving.Load() {
		k.sayGoodbye(l)
	}
	if k.origin != nil {
		k.origin.before.Store(nil)
	}
	s.Ready()
	for _, layer := range k.c.layers {
		layer.sessionReady(&k.calls, l.Session)
	}
	l.start()
	if k.c.life.o.Rotate.After > 0 {
		l.extra.aging = k.c.age(l)
	}
	if marks && l.extra.mark != nil {
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
	reason := l.Reason(err)
	replaced := reason == backoff.ReasonRotated
	closing := k.c.life.Ended() || k.c.life.Leaving.Load() && !k.c.sender.outbox.Load().Draining()
	var dials bool
	if l.overlaps, dials = side.lost(l, loss{err, reason, ready, unread}); !l.overlaps {
		k.c.state.enter(&k.seat, StateWaiting, func(st *Status) { st.Err = err })
	}
	if closing && k.c.life.failure.Load() == nil {
		reason = backoff.ReasonShutdown // the Conn was closed, whatever the last error was
	}
	l.ending = ending{reason: reason, lost: l.broken, planned: l.overlaps || replaced, atOnce: replaced}
	if r, is := side.(predecessor); is && r.session == l.Session { // not a session that came after it
		l.ending.login = r.login
	}
	k.c.sender.detach(&l.Link, err, l.keeps(&k.c.life, err))
	if !ready {
		k.neverReady(l)
	}
	for _, layer := range k.c.layers {
		layer.sessionEnded(&k.calls, l.Session, err)
	}
	if ready && !l.overlaps { // else the session that has replaced it has learned since
		l.liveness.Ended(err)
	}
	if ready || l.delivered {
		k.c.life.counts.lost.Add(1)
		k.putSeam(l, side, err, dials)
	}
	side.afterSeam(l)
	if k.c.life.Leaving.Load() && !k.c.sender.outbox.Load().Draining() {
		return backoff.Permanent(err)
	}
	return err
}

// neverReady notes that the session of l has ended before it was ready.
func (k *keeper) neverReady(l *served) {
	outer := k.calls.Enter(&watch.Elsewhere)
	k.attemptFailed()
	k.calls.Leave(outer)
	if !l.broken {
		k.c.hint.drop(l.extra.hint) // the server has refused it
	}
}

// putSeam puts the seam of a session into the stream, or keeps it until the next session may have
// resumed the stream. dials says that the next session is another supervisor's.
func (k *keeper) putSeam(l *served, side side, err error, dials bool) {
	seam := &Seam{Session: l.Session, Cause: err, Lost: 1, Reason: l.ending.reason, Planned: l.ending.planned}
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

func (k *keeper) connecting(atGate bool, host string) {
	if k.waits {
		k.waits = false
		k.side().rests(false)
	}
	k.c.state.connecting(&k.seat, atGate, host)
}

func (k *keeper) troubled(atGate bool, try int, err error, verdict backoff.Class) {
	k.c.state.mu.Lock()
	defer k.c.state.mu.Unlock()
	k.c.state.edit(&k.seat, func(s *Status) { s.AtGate, s.Try, s.Err, s.Verdict = atGate, try, err, verdict })
}

func (k *keeper) attemptFailed() {
	k.c.life.counts.failures.Add(1)
	k.side().failed(errors.New("the first dial has failed"))
}

func (k *keeper) waiting(w *WaitStart) {
	k.waits = true
	w.replaces = k.side().rests(w.Verdict.RetryAfter == 0)
	k.c.state.enter(&k.seat, StateWaiting, func(s *Status) {
		s.Try, s.Err, s.Verdict = w.Try-1, w.Cause, w.Verdict.Class
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

func (k *keeper) limit(t backoff.Attempt) time.Duration {
	d, ok := k.c.dialer.(interface {
		DialTimeout(backoff.Attempt) time.Duration
	})
	if ok {
		if limit := d.DialTimeout(t); limit > 0 {
			return limit
		}
	}
	return dialLimit(t)
}

func (k *keeper) kick() <-chan struct{} { return k.c.kicks.Up() }

func (k *keeper) took(bool) bool {
	k.c.kicks.Lower()
	return true
}

func (k *keeper) forgetKicks() { k.c.kicks.Lower() }

// served is a link with all else that one session of a Conn needs. It is the context of the session's callbacks.
type served struct {
	link.Link

	delivered bool   // a message of it is in the stream; belongs to the supervisor, and to OnSession while that runs
	resumed   bool   // OnSession has called Resumed; likewise
	broken    bool   // a Read or Write of OnSession has failed; likewise
	overlaps  bool   // another session led before this one ended; belongs to the supervisor
	ending    ending // how it has ended; set by teardown, belongs to the supervisor

	// When its dial began; once it is ready, how long the dial and OnSession took. In ms, whose differences are
	// right within weeks.
	clock uint32

	extra    *extra
	calls    *watch.Calls // those of its supervisor
	liveness watch.Liveness
}

// extra is what only some sessions have. The others share noExtra.
type extra struct {
	hint      *hint            // with which it was dialed
	advised   bool             // it was dialed at the address of the hint
	aging     *aging           // or nil if its age is not limited
	keepAlive *watch.KeepAlive // or nil without Options.KeepAlive
	stall     *watch.Stall     // or nil without a limit
	mark      *mark            // or nil without Options.MarkRefetch
}

var noExtra = &extra{}

func newExtra(life *lifetime, h *hint) *extra {
	o := &life.o
	if h == nil && o.KeepAlive.Every <= 0 && o.Rotate.After <= 0 && !o.MarkRefetch && life.watch.Stall == nil {
		return noExtra
	}
	x := &extra{hint: h}
	if o.MarkRefetch {
		x.mark = &mark{holds: 1}
	}
	return x
}

// Value returns the life of the Conn for its key.
func (l *served) Value(key any) any {
	if key == (lifeKey{}) {
		return l.Life()
	}
	return nil
}

// prepare makes what watches l, which is about to be ready.
func (l *served) prepare(w *watch.Shared) {
	notes := l.liveness.Prepare(w, l.Conn)
	if x := l.extra; x != noExtra {
		x.keepAlive, x.stall = watch.NewKeepAlive(w, &l.Link), watch.NewStall(w, &l.Link)
		notes = notes || x.keepAlive != nil || x.stall != nil
	}
	if notes {
		l.Observe(l)
	}
}

// start begins to watch l, which is ready.
func (l *served) start() {
	l.liveness.Start(&l.Link)
	if x := l.extra; x != noExtra {
		x.keepAlive.Start()
		x.stall.Start()
	}
}

// stop ends what watches l, which was cut because of cause.
func (l *served) stop(w *watch.Shared, cause error) {
	outer := l.calls.Enter(&watch.Elsewhere)
	defer l.calls.Leave(outer)
	l.liveness.Stop()
	if x := l.extra; x != noExtra {
		x.aging.stop()
		x.keepAlive.Stop()
		x.mark.stop(w)
		x.stall.Stop(cause)
	}
}

// block waits until ready is closed, or until ctx or l ends. Meanwhile no goroutine reads l, and afterwards it is
// still paused.
func (l *served) block(ctx context.Context, ready <-chan struct{}) error {
	l.Pause(link.Blocked)
	l.liveness.Blocked()
	select {
	case <-ready:
		return nil
	case <-l.Done():
		return l.Cause(net.ErrClosed)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// NoteHeard notes a message.
func (l *served) NoteHeard() {
	l.liveness.Heard()
	l.extra.stall.Heard()
}

// NoteResumed notes that reading begins again.
func (l *served) NoteResumed() { l.extra.stall.Resumed() }

// NoteWrote notes that messages were written.
func (l *served) NoteWrote() { l.extra.keepAlive.Wrote() }
