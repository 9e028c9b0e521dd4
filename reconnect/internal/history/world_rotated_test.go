package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// What happens after a rotation: handshakes that hang, silence, losses, another rotation, a kick.
// And two faults of a server that last until the faults are over: it refuses each login, or breaks
// the protocol in each session.

// drawTurned draws these events, from a stream of its own.
func (p *Plan) drawTurned() {
	r := p.stream(24)
	if r.IntN(3) > 0 {
		return
	}
	p.Settings.Turns = true
	for range 1 + r.IntN(3) {
		at := 1 + upTo(r, max(p.Length-20*time.Second, p.Length/3)) // so that a handshake hangs while faults last
		kind := turnedKinds[r.IntN(len(turnedKinds))]
		if r.IntN(3) == 0 {
			kind = turnedKinds[0]
		}
		p.Events = append(p.Events, Event{len(p.Events), at, kind.name})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// turnedKinds are the events that drawTurned draws.
var turnedKinds = []happening{
	{"rotate and hang", 0, func(w *world, r *rand.Rand, e Event) {
		if w.turn(r) {
			w.hangNext(1 + r.IntN(3))
			w.fault(r, "reset", (*conntest.Pipe).Reset)
		}
	}},
	{"rotate and go silent", 0, func(w *world, r *rand.Rand, e Event) {
		if w.turn(r) {
			w.goSilent(r)
		}
	}},
	{"rotate and drop", 0, func(w *world, r *rand.Rand, e Event) {
		if !w.turn(r) {
			return
		}
		for range 2 + r.IntN(4) {
			w.fault(r, "reset", (*conntest.Pipe).Reset)
			w.awaitReady(r)
			time.Sleep(upTo(r, 3*time.Second))
		}
	}},
	{"rotate twice", 0, func(w *world, r *rand.Rand, e Event) {
		if w.turn(r) {
			w.turn(r)
		}
	}},
	{"rotate often", 0, func(w *world, r *rand.Rand, e Event) {
		for range 8 + r.IntN(8) {
			w.turn(r)
		}
	}},
	{"kick a dial", 0, func(w *world, r *rand.Rand, e Event) {
		if r.IntN(2) == 0 {
			w.turn(r)
		}
		w.kickDial(r)
	}},
	{"go silent", 0, func(w *world, r *rand.Rand, e Event) { w.goSilent(r) }},
	{"refuse each login", 0, func(w *world, r *rand.Rand, e Event) {
		answers := []loginRefusal{
			{1013, "redial/1 wait=2s spread=1s"}, {4429, "redial/1 wait=5s"}, {1008, "policy"}, {4403, "no entry"},
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refuses = &answers[r.IntN(len(answers))]
	}},
	{"wrong in each session", 0, func(w *world, r *rand.Rand, e Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wrongEach = r
	}},
}

// loginRefusal is the close frame by which a server answers each login.
type loginRefusal struct {
	code   int
	reason string
}

// refusesLogin closes a connection that has logged in, if the server refuses each login.
func (w *world) refusesLogin(p *conntest.Pipe, end func(int, string) error) bool {
	w.mu.Lock()
	answer := w.refuses
	w.mu.Unlock()
	if answer == nil || p == nil || w.calmed.Load() {
		return false
	}
	w.note(p, "close "+itoa(answer.code))
	end(answer.code, answer.reason)
	return true
}

// turn rotates the present session, and reports whether another one has replaced it.
func (w *world) turn(r *rand.Rand) bool {
	if !w.awaitReady(r) {
		return false
	}
	n := w.conn.Status().Session
	w.pushRotation()
	w.mu.Lock()
	w.meddled[n] = true
	w.mu.Unlock()
	w.conn.Rotate(n, reconnect.Advice{})
	for range 100 {
		time.Sleep(50*time.Millisecond + upTo(r, 50*time.Millisecond))
		w.mu.Lock()
		over := w.ended["rotate start"] > 0 && !w.rotating()
		w.mu.Unlock()
		if now := w.conn.Status(); over && now.State == reconnect.StateReady && now.Session > n {
			w.counted("has turned")
			return !w.calmed.Load()
		}
		if w.calmed.Load() || w.hasEnded() {
			return false
		}
	}
	return false
}

// counted counts an event, besides those of the plan.
func (w *world) counted(kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.result.Events["("+kind+")"]++
}

// awaitReady waits for a session, and for what follows when it is ready. It reports whether there
// is one.
func (w *world) awaitReady(r *rand.Rand) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := w.conn.Await(ctx, reconnect.StateReady)
	time.Sleep(time.Millisecond + upTo(r, 20*time.Millisecond))
	return err == nil && !w.calmed.Load() && !w.ending()
}

// hangNext lets the next n handshakes hang.
func (w *world) hangNext(n int) {
	if w.set.Framing == 0 {
		w.server.Next(append(slices.Repeat([]conntest.Answer{conntest.Hang}, n), nil)...)
		return
	}
	w.network.Fault(address, append(slices.Repeat([]conntest.Fault{{Hang: true}}, n), conntest.Fault{})...)
}

// goSilent stalls a connection, and checks that a ready session is given up when its peer was
// silent for Liveness.Limit, or for 8 times that after silent sessions, until a probe is answered soon.
func (w *world) goSilent(r *rand.Rand) {
	p := w.pipe(r, "stall")
	if p == nil {
		return
	}
	w.mu.Lock()
	s := w.sessions[w.piped(p).session]
	now := w.now()
	grown := w.grown
	counts := s != nil && s.ready && !s.done && w.late == 0 && w.set.Pace == 0 && !w.set.Unlimited &&
		w.readsFrom(now) && len(w.piped(p).faults) == 1
	w.mu.Unlock()
	p.Stall(conntest.Both)
	if !counts {
		return
	}
	within := w.silence() + 2*w.set.Lag + time.Second
	if w.set.ProbeEvery > 0 { // a probe that was sent before the first third is over holds up the others
		within += w.silence() / 3
	}
	if grown > 0 { // doubled after each silent session, up to three times
		within += (w.silence() + w.silence()/3) * 7
	}
	w.pause(within)
	w.mu.Lock()
	defer w.mu.Unlock()
	steady := w.readsFrom(s.readyAt) && w.readPause <= s.readyAt && w.grown <= grown+1 &&
		!w.slowProbe && !w.blocked && !w.acted
	if s.done || w.closedOrMay() || !steady || len(w.piped(p).faults) > 1 || w.jumps > s.jumps {
		w.check(SilentInTime, true, "")
		return
	}
	w.check(SilentInTime, false, "session %d was silent from %v on", s.number, now)
}

// kickDial ends a session, lets the next handshake hang and kicks, and checks that another dial
// begins at once.
func (w *world) kickDial(r *rand.Rand) {
	if !w.awaitReady(r) {
		return
	}
	before := w.begun()
	w.hangNext(2)
	w.fault(r, "reset", (*conntest.Pipe).Reset)
	for range 50 {
		if w.begun() > before {
			break
		}
		time.Sleep(100*time.Millisecond + upTo(r, 100*time.Millisecond))
	}
	time.Sleep(upTo(r, 8*time.Second))
	w.mu.Lock()
	one := w.ended["dial start"] == w.ended["dial done"]+1 && !w.unserved
	budgets := w.set.Gate || w.set.Logins > 0 // for which the dial may have to wait
	free := max(w.notBefore, w.askedUntil) < w.now() && !w.turning && !w.set.OneConnection && !budgets
	dials, hung := w.ended["dial start"], w.ended["dial hung"]
	w.mu.Unlock()
	connecting := w.conn.State() == reconnect.StateConnecting
	w.push()
	w.conn.Kick()
	time.Sleep(time.Microsecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !one || !free || !connecting || hung > 0 || w.closedOrMay() || w.blocked || w.acted || w.calmed.Load() {
		return
	}
	w.check(KickBeside, w.ended["dial start"] > dials, "no dial beside another one after a kick")
}

// begun returns how many dials have begun.
func (w *world) begun() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended["dial start"]
}

// hangsInTime checks that a dial which begins now has ended, or is known to hang, when its limits
// are over. The policies whose cap is known set none. The caller holds w.mu.
func (w *world) hangsInTime(try int) {
	w.dialing[try] = w.now()
	if w.cap() == 0 || w.set.Blocks {
		return
	}
	limit := backoff.DefaultConnect + 10*time.Second
	if w.set.OneConnection || w.turning {
		limit = backoff.DefaultConnect + backoff.DefaultHandshake
	}
	at := w.now()
	w.users.Go(func() {
		select {
		case <-time.After(limit + 5*time.Second): // for a dial that ignores its context, and a slow hook
		case <-w.over:
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.acted || w.closedOrMay() {
			return
		}
		since, ok := w.dialing[try]
		w.check(HungInTime, !ok || since > at, "dial %d has begun at %v, and neither ends nor hangs", try, at)
	})
}

// rotationPace checks that no more rotations begin than the pace allows: ten in a row, and then one
// in 2 s. The caller holds w.mu.
func (w *world) rotationPace() {
	const burst, every = 10, 2 * time.Second
	w.rotations = append(w.rotations, w.now())
	full := time.Duration(0) // when ten may begin again
	for _, at := range w.rotations {
		full = max(full, at) + every
	}
	w.check(RotationPace, full-w.now() <= burst*every, "%d rotations at %v", len(w.rotations), w.rotations)
}

// replacedInTime checks that a session which has its age was to be replaced. A rotation before that
// may hold it up, and so may the pace. The caller holds w.mu.
func (w *world) replacedInTime(s *session) {
	if w.set.RotateAfter == 0 || !s.ready || w.meddled[s.number] {
		return
	}
	age := w.now() - s.readyAt
	reader := w.set.Reader == readPush || w.set.Reader != readLate && w.readPause == 0
	held := w.held || !reader || w.blocked || w.acted || w.set.Logins > 0 || w.mayEnd != ""
	since := max(s.readyAt+w.set.RotateAfter, w.rotateDone) // no two rotations at a time
	until := w.now()
	if w.closing > 0 {
		until = w.closing
	}
	late := until > since+3*time.Second && !w.rotating()
	w.check(ReplacedInTime, held || !late, "session %d has an age of %v, and was not to be replaced", s.number, age)
}

// past checks what is over when a session has ended. The caller holds w.mu.
func (w *world) past(s *session, e reconnect.SessionDone) {
	for _, ctx := range s.contexts {
		w.check(ContextOfPast, ctx.Err() != nil, "a context of session %d is not done", s.number)
	}
	if w.set.Reader == readPush && s.ready && !w.set.Resumable && w.closing == 0 && !w.exited {
		w.check(SeamBeforeDone, s.seam, "session %d has ended without a seam", s.number)
	}
	c, ok := errors.AsType[*conn.CloseError](e.Cause)
	if ok && strings.HasPrefix(c.Reason, "redial/1 wait=") && !w.acted && !w.blocked && !w.rotating() {
		var seconds int
		fmt.Sscanf(c.Reason, "redial/1 wait=%d", &seconds)
		w.advisedAt = max(w.advisedAt, w.now()+time.Duration(seconds)*time.Second)
	}
}

// exitIsNamed checks the error of a Conn that a callback has ended. The caller holds w.mu.
func (w *world) exitIsNamed(err error) {
	end, ok := errors.AsType[*reconnect.EndError](err)
	if !ok || len(w.exits) == 0 || !errors.Is(err, xsync.ErrNotReturned) {
		return
	}
	named := slices.ContainsFunc(w.exits, func(name string) bool { return strings.Contains(end.Error(), name) })
	w.check(ExitIsNamed, named, "%v, and these have ended their goroutine: %q", end, w.exits)
}

// expiresInTime checks that the receipt of a message that has expired comes at its deadline. The
// caller holds w.mu.
func (w *world) expiresInTime(m *message, got reconnect.Receipt) {
	if !errors.Is(got.Err, reconnect.ErrExpired) || m.sentAt == 0 || w.acted || w.blocked || w.set.Torn {
		return
	}
	for _, p := range w.pipes { // a batch that is stuck expires when its session ends
		if len(p.faults) > 0 {
			return
		}
	}
	at, age := m.due, w.set.OutboxAge
	if age == 0 {
		age = 5 * time.Minute
	}
	if age > 0 && (at == 0 || m.sentAt+age < at) {
		at = m.sentAt + age
	}
	w.check(ExpiresInTime, at <= w.now() && w.now() <= at+time.Millisecond,
		"%s expired at %v, and the receipt comes now", m.id, at)
}

// sendLast sends a message when nothing happens, and checks that its receipt comes.
func (w *world) sendLast() {
	if !w.set.Turns || w.set.NoReceipts || w.set.RotateAfter > 0 || w.conn.State() != reconnect.StateReady {
		return
	}
	m := &message{id: "sent.last", size: 10}
	m.out.Message = conn.TextMessage(m.id + " " + strings.Repeat("x", m.size))
	w.mu.Lock()
	w.messages[m.id] = m
	w.mu.Unlock()
	w.sendMessage(w.plan.stream(25), m, 0)
	w.pause(2*time.Second + 4*w.set.Lag)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(SentInTime, len(m.fates) == 1 && m.fates[0] == reconnect.FateWritten || w.closedOrMay(),
		"fates %v, arrivals %v, %v", m.fates, m.arrivals, m.err)
}

// The invariants that are checked here.
const (
	SilentInTime   Invariant = "8: a session whose peer is silent ends after Liveness.Limit"
	KickBeside     Invariant = "1: a kick during a dial begins another dial at once"
	HungInTime     Invariant = "1: a dial ends, or its handshake is known to hang, when its limits are over"
	RotationPace   Invariant = "3: ten rotations may begin in a row, and then one in 2 s"
	ReplacedInTime Invariant = "a session that has its age is replaced"
	SentInTime     Invariant = "6: without faults what is sent has its fate soon"
	CutBeforeLogin Invariant = "1: no dial is in progress beside the one that was answered when OnSession runs"
	SeamBeforeDone Invariant = "5: the seam of a session comes when it ends, before any other event"
	ContextOfPast  Invariant = "11: the context of a callback ends with its session"
	ExitIsNamed    Invariant = "14: the error of a Conn that a callback has ended names the callback"
	AdviceKept     Invariant = "9: no dial comes before the time that a close frame asked for"
	ExpiresInTime  Invariant = "6: a message is dropped at its deadline"
)
