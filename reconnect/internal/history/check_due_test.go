package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// What must happen, and by when. These are the promises of package reconnect that say so, and the
// invariants that check it (see TestTableNamesInvariants):
//
//	 1  a second dial, beside one that hangs or after a kick        HungInTime, DialBesideHung, KickBeside
//	    the other dial is cut before OnSession runs                 CutBeforeLogin
//	 2  each wait takes what was announced                          WaitIsKept
//	    a kick ends a wait                                          KickDials
//	 3  the waits grow until a session was ready for long enough    WaitGrows, StableIsEarned, DialsAccept,
//	                                                                RotatedDialsAccept
//	    ten waits may be shorter than 10 ms                         TenShortWaits
//	    ten rotations in a row, and then one in 2 s                 RotationPace, ReplacedInTime
//	    what fails for long is dialed no more often than at first   LimitedCostsLess
//	 4  OnSession ends within OpenTimeout                           OpeningIsBounded
//	    when it has returned, the queue is written                  SentInTime, LastMessageArrives
//	 5  a seam when a session ends                                  SeamBeforeDone
//	    a mark when the next one is ready                           MarkIsHeld
//	    a replaced session is read for Rotation.Drain               DrainIsKept
//	 6  no write after the deadline                                 DeadlineKept, ExpiresInTime
//	    Keep is asked before a message has its fate                 KeptIsOurs
//	    SendWait in OnReceipt fails immediately                     NoWaitInReceipt
//	 7  a Read or Write ends with its context                       CancelEnds, ContextOfItsOwn, WriteEndsInTime
//	 8  a silent peer is cut after the limit                        SilentInTime, DeathIsNoticed, SuspendIsNoticed
//	    up to 8 times as long, until a probe is answered soon       SilentInTime, PatientWithLateAnswers
//	    a stuck write, and a message that never ends                StuckWriteEnds, EndlessMessageEnds
//	    a callback that takes long is reported                      SlowIsReported
//	    KeepAlive.Every and Liveness.ProbeEvery                     TimersAsStated
//	 9  no dial before the time that a server asks for              RetryAfterKept, AdviceKept, GoodbyeIsObeyed
//	    the Conn reads what had come before a write failed          HeardBeforeReset, GoodbyeIsCause
//	    slow from the second failure in a row on                    VerdictAsStated, NoSuchHostIsSlow,
//	                                                                RefusedIsSlow, TooLargeIsSlow
//	    refused credentials are renewed immediately                 RefreshIsSoon
//	10  connecting, handshaking, opening and closing                HungInTime, OpeningIsBounded, CloseIsBounded
//	11  Close, Shutdown and Done                                    CloseAtOnce, ReadEndsAtClose, ShutdownInTime,
//	                                                                RefusedAtShutdown, EndsSoon,
//	                                                                HeardBeforeShutdown
//	    a callback's context ends with its session                  ContextOfPast, ContextEnds
//	12  Await sees the newest state                                 AwaitSees, AwaitIsTrue
//	14  Goexit ends the Conn with the name of the callback          ExitIsNamed
//	    a reservation of a login ends with its dial                 ReservationEnds
//	    a gate lets a healthy connection through soon               HealthyReturn

// drawDue draws events after which something is due, from a stream of its own.
func (p *Plan) drawDue() {
	r := p.stream(23)
	if r.IntN(2) > 0 {
		return
	}
	p.Settings.Dues = true
	if r.IntN(3) == 0 {
		p.Settings.ShortDrain = time.Millisecond + upTo(r, 20*time.Millisecond)
	}
	for range 1 + r.IntN(4) {
		at := 1 + upTo(r, p.Length)
		kind := dueKinds[r.IntN(len(dueKinds))]
		p.Events = append(p.Events, Event{len(p.Events), at, kind.name})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// dueKinds are the events that drawDue draws.
var dueKinds = []happening{
	{"kick a wait", 0, (*world).kickWait},
	{"await a loss", 0, (*world).awaitLoss},
	{"keep beside sends", 0, (*world).keepBesideSends},
	{"send in a receipt", 0, (*world).sendInReceipt},
	{"burst and rotate", 0, func(w *world, r *rand.Rand, e Event) {
		if w.set.Apart {
			return
		}
		for range 6 { // a reader that waits for each message reads the connection itself
			w.burst(r, 1)
			time.Sleep(upTo(r, 15*time.Millisecond) + 1)
		}
		w.burst(r, 10)
		w.rotate(r)
	}},
}

// keepBesideSends resets a connection whose writes are stuck, and keeps sending while Keep is called.
func (w *world) keepBesideSends(r *rand.Rand, e Event) {
	p := w.pipe(r, "window")
	if p == nil || !w.set.Keep {
		return
	}
	p.Window(conntest.ToServer, 0)
	w.sendSome(r, e, 3+r.IntN(20))
	d := 1 + upTo(r, 3*time.Second)
	w.actNext("Keep", func(context.Context) { time.Sleep(d) })
	p.Reset()
	time.Sleep(upTo(r, time.Millisecond))
	for w.acts() && !w.calmed.Load() {
		e.Index += 100_000 // so that the messages have names of their own
		w.sendSome(r, e, 1+r.IntN(10))
		time.Sleep(100*time.Millisecond + upTo(r, time.Millisecond))
	}
}

// acts reports whether a callback is doing what was planned.
func (w *world) acts() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acting > 0
}

// sendInReceipt lets the next OnReceipt call SendWait, while others wait for room in the outbox, and checks
// that this call does not wait.
func (w *world) sendInReceipt(r *rand.Rand, e Event) {
	if w.set.NoReceipts {
		return
	}
	drawn := rand.New(rand.NewPCG(r.Uint64(), 0))
	w.actNext("OnReceipt", func(ctx context.Context) {
		time.Sleep(time.Millisecond) // meanwhile the outbox fills
		again := w.newMessage(drawn, fmt.Sprint("again", e.Index))
		again.out.Tag, again.order = again, -1
		at := w.now()
		err := w.theConn().SendWait(ctx, again.out)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tookIn(again, err)
		w.check(NoWaitInReceipt, w.now() == at || w.closing > 0, "SendWait in OnReceipt took %v: %v", w.now()-at, err)
	})
	for i := range 4 + r.IntN(40) {
		own := rand.New(rand.NewPCG(r.Uint64(), 0))
		wait := time.Second + upTo(r, 20*time.Second)
		w.users.Go(func() {
			time.Sleep(time.Duration(i+1) * time.Microsecond) // so that a history replays
			w.send(own, fmt.Sprintf("s%d.%d", e.Index, i), wait)
		})
	}
	w.pause(100 * time.Millisecond)
}

// kickWait ends a session, whose peer may be mute, and kicks soon after that. If the state is waiting, it
// checks that a dial follows.
func (w *world) kickWait(r *rand.Rand, _ Event) {
	if r.IntN(2) == 0 {
		if p := w.pipe(r, "stall"); p != nil {
			p.Stall(conntest.Both)
		}
	}
	w.redial()
	time.Sleep(upTo(r, 1200*time.Millisecond))
	w.push()
	now := w.conn.State()
	w.mu.Lock()
	dials := w.ended["dial start"]
	budgets := w.set.Gate || w.set.Logins > 0 // for which the dial may have to wait
	free := w.notBefore <= w.now() && !budgets && !w.rotating() && !w.blocked && !w.acted
	w.kicked = 0
	if now == reconnect.StateWaiting && free {
		w.kicked = w.now()
	}
	w.mu.Unlock()
	w.conn.Kick()
	if now != reconnect.StateWaiting || !free {
		return
	}
	const limit = 3 * time.Second
	w.pause(limit)
	w.mu.Lock()
	defer w.mu.Unlock()
	slow := w.blocked || w.acted || w.held
	if !w.closedOrMay() && !slow && max(w.notBefore, w.askedUntil) <= w.now()-limit {
		w.check(KickDials, w.ended["dial start"] > dials,
			"no dial within %v after a kick while the state was waiting", limit)
	}
}

// awaitLoss waits for the state waiting, and checks that Await returns when State returns it.
func (w *world) awaitLoss(r *rand.Rand, _ Event) {
	if w.set.Apart {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	returned := make(chan struct{})
	w.users.Go(func() {
		defer close(returned)
		w.conn.Await(ctx, reconnect.StateWaiting)
	})
	time.Sleep(time.Microsecond)
	for range 100 {
		if w.conn.State() == reconnect.StateWaiting {
			time.Sleep(time.Microsecond)
			sees := w.conn.State() != reconnect.StateWaiting // by now
			select {
			case <-returned:
				sees = true
			default:
			}
			w.claim(AwaitSees, sees, "the state is waiting, and Await does not return")
			return
		}
		time.Sleep(50*time.Millisecond + upTo(r, 50*time.Millisecond))
	}
}

// reservationsEnd checks, when no dial is in progress, that each login that is left can be reserved.
func (w *world) reservationsEnd() {
	if w.logins == nil {
		return
	}
	w.mu.Lock()
	dials := w.ended["dial start"] - w.ended["dial done"]
	idle := dials == 0 && !w.rotating() && w.ended["session start"] == int(w.started)
	w.mu.Unlock()
	if !idle || w.conn.State() != reconnect.StateReady {
		return
	}
	for range w.logins.Free() {
		release, short, _ := w.logins.Reserve(nil)
		w.claim(ReservationEnds, short == nil, "%v, and no dial is in progress", short)
		if short == nil {
			defer release()
		}
	}
}

// refusedSoon checks that a Write or SendWait, which began at a time and dropped its message, has
// failed soon after Shutdown was called. It leaves out a Write behind one that may be stuck, because
// such a Write fails only when the context of Shutdown ends (seed 709). The caller holds w.mu.
func (w *world) refusedSoon(began time.Duration, dropped bool) {
	if w.shut == 0 || !dropped {
		return
	}
	for _, s := range w.sessions {
		last := s.number+2 > w.started // one of the last two
		lived := !s.done || s.endedAt >= w.shut
		if (last || lived) && s.pipe != nil && len(w.piped(s.pipe).faults) > 0 {
			return
		}
	}
	w.check(RefusedAtShutdown, w.now() <= max(began, w.shut)+time.Millisecond,
		"it has waited from %v on, and Shutdown was called at %v", began, w.shut)
}

// besideHung checks that another dial begins, or this one ends, soon after a handshake was not answered
// in time. The caller holds w.mu.
func (w *world) besideHung() {
	budgets := w.set.Gate || w.set.Logins > 0 // for which the dial may have to wait
	if w.cap() == 0 || w.set.OneConnection || budgets || w.rotating() || w.closing > 0 {
		return
	}
	before, rotations := w.ended["dial start"], len(w.rotations)
	w.users.Go(func() {
		w.mu.Lock()
		c := w.conn
		w.mu.Unlock()
		if c == nil {
			return
		}
		limit := w.cap() + time.Second
		w.pause(limit)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.closedOrMay() || w.blocked || w.acted || len(w.rotations) > rotations || w.notBefore > w.now() {
			return
		}
		begun := w.ended["dial start"] > before
		ended := w.ended["session start"] > 0 && w.ended["dial done"] >= before
		w.check(DialBesideHung, begun || ended, "no dial beside one that hangs within %v", limit)
	})
}

// The invariants that are checked here.
const (
	NoWaitInReceipt   Invariant = "6: SendWait does not wait in OnReceipt"
	KickDials         Invariant = "2: a kick while the state is waiting dials"
	AwaitSees         Invariant = "12: Await returns when State shows the state"
	ReservationEnds   Invariant = "logins: a reservation ends with its dial"
	RefusedAtShutdown Invariant = "11: a Write that waits fails as soon as Shutdown is called"
	DialBesideHung    Invariant = "1: a dial begins beside one whose handshake hangs"
	KeptIsOurs        Invariant = "6: Keep is not called with a message that has its fate"
)
