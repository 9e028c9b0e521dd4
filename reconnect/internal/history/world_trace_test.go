package history

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// trace returns hooks that record each event, and check it.
func (w *world) trace() *reconnect.Trace {
	return &reconnect.Trace{
		GateStart: then(w, "GateStart", func(reconnect.GateStart) {
			w.event("gate start")
			w.mu.Lock()
			defer w.mu.Unlock()
			w.dialsBeside()
			w.mirror.begins()
		}),
		GateDone:  then(w, "GateDone", func(e reconnect.GateDone) { w.event("gate done"); w.spill(e.Err) }),
		DialStart: w.dialStart,
		DialHung: then(w, "DialHung", func(e reconnect.DialHung) {
			w.event("dial hung")
			w.mu.Lock()
			defer w.mu.Unlock()
			w.verdicts.beside = true
			delete(w.dialing, e.Try)
			w.mirror.hung(e.Try)
			w.besideHung()
			w.bigs = 0 // its verdict came between
		}),
		DialDone:       then(w, "DialDone", w.dialDone),
		AddressIgnored: then(w, "AddressIgnored", func(reconnect.AddressIgnored) { w.event("address ignored") }),
		SessionStart: then(w, "SessionStart", func(s *reconnect.Session) {
			w.event("session start")
			w.mu.Lock()
			defer w.mu.Unlock()
			w.started++
			w.unserved = false
			w.verdicts.unknown, w.verdicts.beside = w.verdicts.unknown || w.verdicts.beside, false
			w.check(SessionsCount, s.Number == w.started, "session %d after %d", s.Number, w.started-1)
			w.of(s.Number).started, w.of(s.Number).startedAt = true, w.now()
			if w.mirror != nil {
				w.mirror.session = s.Number
			}
		}),
		SessionReady: w.sessionReady,
		SessionDone:  w.sessionDone,
		RotateStart: func(e reconnect.RotateStart) {
			w.event("rotate start")
			w.mu.Lock()
			w.rotatesByAge(e)
			w.rotates(e.Session)
			w.replaced = e.Session
			w.rotationPace()
			w.rotated, w.turning = true, true
			w.meddled[e.Session] = true
			w.mu.Unlock()
			w.callback("RotateStart", nil)
		},
		RotateDone: then(w, "RotateDone", func(e reconnect.RotateDone) {
			w.event("rotate done")
			w.mu.Lock()
			w.rotateDone = w.now()
			w.mirror.hasRotated(e.Err)
			w.verdicts.unknown = true // the other supervisor may go on
			w.mu.Unlock()
			w.spill(e.Err)
		}),
		WaitStart: w.waitStart,
		WaitDone:  then(w, "WaitDone", w.waitDone),
		ConnDone: then(w, "ConnDone", func(e reconnect.ConnDone) {
			w.event("conn done")
			w.mu.Lock()
			defer w.mu.Unlock()
			w.connDone = true
			w.secrets(e.Err)
			w.exitIsNamed(e.Err)
			if end, ok := errors.AsType[*reconnect.EndError](e.Err); ok {
				w.check(OnlyGoneEnds, w.mayEnd != "", "the Conn has ended by itself: %v", end)
			}
		}),
		ProbeStart: func(e reconnect.ProbeStart) {
			w.event("probe start")
			w.mu.Lock()
			w.of(e.Session).probes++
			if w.quiet != nil {
				w.quiet.probes++
			}
			w.mu.Unlock()
			w.callback("ProbeStart", nil)
		},
		ProbeDone: then(w, "ProbeDone", func(e reconnect.ProbeDone) {
			w.event("probe done")
			w.spill(e.Err)
			w.mu.Lock()
			defer w.mu.Unlock()
			if e.Err == nil && e.Took <= w.silence()/3*2/3 {
				w.grown = 0
			}
		}),
		SlowHandler: then(w, "SlowHandler", func(e reconnect.SlowHandler) {
			w.event("slow handler")
			w.reported(e.What)
			if e.What != "Probe" { // which has a limit of its own
				w.claim(SlowIsSlow, e.Since >= w.silence()/3,
					"%s is slow after %v, and the limit is %v", e.What, e.Since, w.silence())
			}
		}),
		Overdue: then(w, "Overdue", func(e reconnect.Overdue) {
			w.reported(e.What)
			w.mu.Lock()
			w.log("overdue %s", e.What)
			w.mu.Unlock()
		}),
	}
}

// then returns a hook that notes an event, and then does what was planned for its next call.
func then[E any](w *world, name string, note func(E)) func(E) {
	return func(e E) {
		note(e)
		w.callback(name, nil)
	}
}

// event records an event.
func (w *world) event(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log("%s", name)
	w.ended[name]++
	w.result.Events["("+name+")"]++
	w.check(NothingAfterTheEnd, !w.connDone || name == "slow handler", "%s after ConnDone", name)
}

func (w *world) spill(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secrets(err)
}

func (w *world) dialStart(e reconnect.DialStart) {
	w.event("dial start")
	w.mu.Lock()
	w.kicked = 0
	if !w.set.Gate {
		w.mirror.begins()
	}
	w.mirror.tried(e.Try)
	w.dialsBeside()
	now := w.now()
	w.loginLeft()
	w.hangsInTime(e.Try)
	w.check(AdviceKept, now >= w.advisedAt || w.rotating(),
		"a dial at %v, and a close frame asked for %v", now, w.advisedAt)
	if w.restartAt > 0 && !w.rotating() {
		w.check(GoodbyeIsObeyed, now >= w.restartAt, "a dial at %v, and none is allowed before %v", now, w.restartAt)
		w.restartAt = 0
	}
	exited := w.exited // a hook that ends its goroutine takes the wait with it, and the Conn ends
	w.check(RetryAfterKept, now >= w.notBefore || exited, "a dial at %v, and the server asked for %v", now, w.notBefore)
	w.dials = append(w.dials, now)
	most := 60
	if w.set.Policy == 1 {
		most = 200
	}
	if w.set.Eager {
		most = 10 + 60*100
	}
	lastMinute := func(times []time.Duration) (n int) {
		for i := len(times) - 1; i >= 0 && times[i] > now-time.Minute; i-- {
			n++
		}
		return n
	}
	recent := lastMinute(w.dials)
	w.check(NoHotLoop, recent <= most+2*lastMinute(w.pushes), "%d dials in a minute", recent)
	most = 2
	if w.set.OneConnection {
		most = 1
	}
	count := w.network.Count(address)
	w.check(AtMostTwoDials, count.MaxDialing <= most, "%d dials at a time", count.MaxDialing)
	w.check(AtMostTwoConnections, count.MaxHeld <= most, "%d connections and dials at a time", count.MaxHeld)
	w.mu.Unlock()
	w.callback("DialStart", nil)
}

func (w *world) dialDone(e reconnect.DialDone) {
	w.event("dial done")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log("dial: %v", kind(e.Err))
	delete(w.dialing, e.Try)
	if e.Err != nil {
		w.bigs = 0
	}
	answered := w.unserved // another dial, whose session begins
	w.unserved = e.Err == nil || answered
	w.failedAt, w.judgedAt = cmp.Or(w.judgedAt, w.now()), 0
	w.mirror.ended(e)
	w.secrets(e.Err)
	if e.Err != nil && !noSuchHost(e.Err) { // no wait follows if there was a Kick
		w.missing = 0
	}
	d, ok := errors.AsType[*dialer.Error](e.Err)
	if !ok || d.StatusCode == 0 {
		w.refusals = nil // one may have been lost on its way
	}
	if ok {
		w.refused(d)
	}
	if ok && !answered {
		w.notBefore = max(w.notBefore, w.now()+min(d.RetryAfter, backoff.MaxRetryAfter))
		if w.set.Gate {
			w.gated = max(w.gated, w.notBefore)
		}
	} else if e.Err == nil {
		w.notBefore = 0 // the server has let us in
	}
}

func (w *world) sessionReady(s *reconnect.Session) {
	w.event("session ready")
	w.mu.Lock()
	n := w.of(s.Number)
	w.check(ReadyAfterLogin, n.opened && !n.ready && !n.done, "session %d: %+v", s.Number, n)
	n.ready, n.readyAt, n.jumps, w.missing = true, w.now(), w.jumps, 0
	w.turning = false
	w.drainEnds(s.Number)
	c, ours := w.conn, w.meddled[s.Number]
	w.mu.Unlock()
	if c != nil && !ours && !w.ending() {
		state := c.State()
		w.claim(StateIsNewest, state != reconnect.StateConnecting && state != reconnect.StateOpening, "%v in SessionReady", state) // it may be lost already
	}
	w.callback("SessionReady", nil)
}

func (w *world) sessionDone(e reconnect.SessionDone) {
	w.event("session done")
	w.mu.Lock()
	w.log("session %d ends: %v, planned %t", e.Session, coarse(e.Reason), e.Planned)
	w.failedAt, w.judgedAt = cmp.Or(w.judgedAt, w.now()), 0
	w.secrets(e.Cause)
	s := w.of(e.Session)
	s.done, s.reason, s.endedAt = true, e.Reason, w.now()
	w.check(CancelHarmless, !errors.Is(e.Cause, context.DeadlineExceeded) && !errors.Is(e.Cause, context.Canceled) || !s.ready || w.closing > 0 || w.exited, "session %d ends with %v", e.Session, e.Cause)
	if errors.Is(e.Cause, reconnect.ErrSilent) {
		w.check(SilentOnlyAfterProbes, s.probes >= 2 && !w.set.Unlimited || w.checked >= s.readyAt && w.checked > 0 || w.jumps > s.jumps, "session %d ends as silent after %d probes", e.Session, s.probes)
		if w.set.Reader == readPush && s.heard > 0 && w.checked < s.heard && w.jumps == s.jumps && !w.rotated && !w.held { // a rotation, and a slow handler, hold messages back
			w.check(SilentOnlyAfterProbes, w.now()-s.heard >= w.silence()-3, "session %d ends after a silence of %v", e.Session, w.now()-s.heard)
		}
	}
	w.silentEnd(s, errors.Is(e.Cause, reconnect.ErrSilent))
	w.stallIsStated(s, errors.Is(e.Cause, reconnect.ErrStalled))
	w.endIsOne(s, told{e.Planned, e.Reason})
	w.livePeer(s, e)
	w.earned(e)
	w.tooLargeEnds(e)
	w.replacedInTime(s)
	w.past(s, e)
	if e.Stable {
		w.verdicts.last, w.verdicts.unknown = backoff.ClassOK, w.rotated
	}
	w.trueCause(s, e)
	w.mirror.hasEnded(e.Session, e.Planned)
	w.mu.Unlock()
	w.callback("SessionDone", nil)
}

// opening checks how long a session was not ready that is lost. It is called by Layer.Lost, and not by SessionDone, because that
// comes after the seam, and the seam waits while the other session of a rotation is in OnMessage. The caller holds w.mu.
func (w *world) opening(s *session) {
	if s.ready {
		return
	}
	limit := w.set.OpenTimeout
	if limit == 0 {
		limit = 30 * time.Second
	}
	took := w.now() - max(s.startedAt, s.progressAt)
	limit += 15 * time.Second // for callbacks that take long
	if w.rotated {            // Layer.Lost waits until the reader has what was held of the session
		limit += time.Duration(s.read) * w.set.ReaderTakes
	}
	w.check(OpeningIsBounded, w.blocked || took <= limit, "session %d was not ready for %v", s.number, took)
}

func (w *world) waitStart(e reconnect.WaitStart) {
	w.event("wait start")
	logins := w.waitsForLogin(e)
	w.mu.Lock()
	w.loginWait = logins
	w.log("wait %v and %v", e.Verdict.RetryAfter, e.Drawn)
	w.secrets(e.Cause)
	asked := w.notBefore > w.now() // what an earlier answer has asked for is a part of Drawn
	if !w.rotated && e.Cause != nil && !asked && !logins && e.Verdict.Class != backoff.ClassSlow {
		if most := w.cap(); most > 0 {
			w.check(WaitWithinPolicy, e.Drawn <= most, "%v, and the cap is %v", e.Drawn, most)
		}
		const floor = 10 * time.Millisecond // instead of no wait, from the eleventh one on
		if e.Drawn > floor && e.Verdict.Class != backoff.ClassRefresh && !w.set.Eager {
			w.drawn[e.Drawn]++
			chance := len(w.drawn) > 1000 // of a billion nanoseconds
			w.check(WaitIsJittered, w.drawn[e.Drawn] == 1 || chance, "the wait %v twice", e.Drawn)
		}
	}
	w.waitsSlowly(e)
	w.askedUntil = max(w.askedUntil, w.now()+e.Verdict.RetryAfter)
	w.tooLargeIsSlow(e)
	w.verdictAsStated(e)
	if e.Cause == nil {
		w.check(SpreadOnce, e.Drawn == 0 || w.started == 0 && len(w.dials) == 0 && e.Drawn < w.set.StartSpread, "a wait without a cause: %+v", e)
	}
	w.waitGrows(e)
	w.shortWaits(e)
	w.refreshesSoon(e)
	w.mirror.waits(e)
	if w.waiting < 0 {
		w.waiting, w.waitFrom = e.Verdict.RetryAfter+e.Drawn, w.now()
	}
	w.mu.Unlock()
	w.callback("WaitStart", nil)
}

func (w *world) waitDone(e reconnect.WaitDone) {
	w.event("wait done")
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.rotated {
		took := w.now() - w.waitFrom
		mayDiffer := w.blocked || e.Kicked || w.closedOrMay()
		w.check(WaitIsKept, mayDiffer || took == w.waiting, "%v of %v", took, w.waiting)
	}
	from := max(w.waitFrom, w.kicked)
	if w.kicked > 0 && !w.blocked && !w.acted && !w.closedOrMay() && max(w.notBefore, w.askedUntil) <= from {
		w.check(KickDials, w.now()-from <= time.Millisecond,
			"a wait goes on for %v after a kick while the state was waiting", w.now()-from)
	}
	w.kicked = 0
	if w.waiting = -1; w.announced >= 0 {
		w.waited = min(w.now()-w.waitFrom, w.announced) // WaitStart may have blocked for longer
	}
}
