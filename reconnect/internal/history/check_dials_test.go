package history

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/history/yield"
)

// mirror is a schedule.Dials that gets what the hooks of a Conn report, and must return the same as
// the one inside. It has the options that should be in force: see dialOptions. It follows until
// something happens that no hook shows in full: a kick, a wait that the machine itself has drawn, a
// second dial beside a gate, or a session that is lost before the one that is to replace it is
// ready. A rotation begins with a new mirror. world.mu guards it.
type mirror struct {
	w        *world
	dials    schedule.Dials
	dead     bool
	asked    []asked                 // what the policy has said, and the machine has not used yet
	verdict  backoff.Verdict         // that of the last Classify
	pending  func(v backoff.Verdict) // reports the last failure, when the verdict on it is known
	since    time.Time               // when that was
	did      schedule.Action         // what the last call of Next has said before there was a hook for it
	which    map[int]int             // the dials under way, by the number of the try
	cut      map[int]bool            // those that are being cut
	answered bool                    // there is a session
	session  uint64                  // the last one
	moves    bool                    // a dial waits at the gate again, for another host
	replaces uint64                  // session being replaced, or 0 if it has ended
	aside    bool                    // the replaced session ends, and the other supervisor asks
	rotated  bool                    // it has begun with a rotation
	before   *mirror                 // the mirror of the session that is being replaced, or nil
}

// asked is one call of a policy.
type asked struct {
	h    backoff.History
	step backoff.Step
	ok   bool
}

// newMirror returns the mirror of a history, nil if there can be none.
func (w *world) newMirror() *mirror {
	if w.set.StartSpread > 0 || w.set.Policy == 0 { // that policy has limits on the first dial
		return nil
	}
	return w.mirrorFrom(w.start, false)
}

// mirrorFrom returns a mirror of a supervisor that has begun at a time, in a rotation or not.
func (w *world) mirrorFrom(at time.Time, rotation bool) *mirror {
	m := &mirror{w: w, which: make(map[int]int), cut: make(map[int]bool), rotated: rotation}
	m.dials = schedule.NewDials(m.dialOptions(rotation), rand.New(rand.NewPCG(0, 0)))
	m.dials.Start(at)
	return m
}

// dialOptions returns the options that should be in force: in a rotation there is one dial at a
// time, until a session of the supervisor was ready. Only the first dial of the Conn has a
// StartSpread.
func (m *mirror) dialOptions(rotation bool) *schedule.DialOptions {
	o := &schedule.DialOptions{
		Policy:        playback{m},
		OneConnection: m.w.set.OneConnection || rotation,
		StableAfter:   m.w.stableAfter(),
	}
	return o.WithDefaults()
}

// invariant returns what a mirror checks.
func (m *mirror) invariant() Invariant {
	if m.rotated {
		return RotatedDialsAccept
	}
	return DialsAccept
}

// rotates is called when the rotation of a session begins. If the session stays meanwhile, the
// supervisor that makes the next one has a mirror of its own. The caller holds w.mu.
func (w *world) rotates(session uint64) {
	if reconnect.Overlap(w.set.Overlap) == reconnect.OverlapBreakFirst || w.set.OneConnection || w.set.Policy == 0 {
		return
	}
	m := w.mirrorFrom(time.Now(), true)
	m.replaces, m.before = session, w.mirror
	m.dead = w.pending["RotateStart"] != nil // the supervisor begins when that has returned
	w.mirror = m
}

// hasRotated is called when a rotation has ended. If it has failed and the session stays, the
// mirror of that session goes on.
func (m *mirror) hasRotated(err error) {
	if m == nil {
		return
	}
	if err != nil && m.replaces != 0 {
		m.w.mirror = m.before
	}
	m.before = nil
}

// ends is called when a session ends, before the calls of the judge and the policy.
func (m *mirror) ends(session uint64) {
	switch {
	case m == nil:
	case session != m.replaces:
		m.dead = m.dead || m.aside
	case m.answered && m.w.of(m.session).ready:
		m.aside = true
	default: // which supervisor redials depends on whether the other one waits
		m.dead, m.before, m.replaces = true, nil, 0
	}
}

// hasEnded is called when a session has ended, after the calls of the judge and the policy. planned
// says that it was closed for the next one, which is dialed at once.
func (m *mirror) hasEnded(session uint64, planned bool) {
	switch {
	case m == nil:
	case session == m.replaces:
		m.aside, m.replaces = false, 0
	case m.follows() && planned:
		m.flush()
		m.dials.Kick(time.Now())
	}
}

// playback is the policy of the mirror: it says what that of the Conn has said.
type playback struct{ *mirror }

func (m playback) Next(h backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	if len(m.asked) == 0 {
		m.refuse("the machine asks the policy: %+v", h)
		return backoff.Step{}, true
	}
	a := m.asked[0]
	m.asked = m.asked[1:]
	if h != a.h {
		m.refuse("the policy was told %+v, and the machine tells it %+v", a.h, h)
	}
	return a.step, a.ok
}

// refuse notes that the machine does not accept the history.
func (m *mirror) refuse(format string, args ...any) {
	if !m.dead {
		m.w.check(m.invariant(), false, format, args...)
	}
	m.dead = true
}

// follows reports whether the mirror still follows. In the widened library it follows until a session is
// rotated: a session can be lost before SessionReady there, and the mirror cannot tell which supervisor asks.
// The caller holds w.mu.
func (m *mirror) follows() bool {
	if m == nil || m.dead || m.rotated && yield.Used() {
		return false
	}
	w := m.w
	held := w.blocked || w.set.Blocks && w.acted // by a callback
	return !m.aside && !w.closedOrMay() && !held
}

// flush reports the last failure, unless that was done.
func (m *mirror) flush() {
	if report := m.pending; report != nil {
		m.pending = nil
		report(m.verdict)
	}
}

// recorded is a policy whose steps the mirror gets.
type recorded struct {
	backoff.Policy
	w *world
}

func (p recorded) Next(h backoff.History, r *rand.Rand) (backoff.Step, bool) {
	step, ok := p.Policy.Next(h, r)
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	m := p.w.mirror
	if !m.follows() {
		return step, ok
	}
	if h.MinWait > 0 || h.Verdict.Class == backoff.ClassRefresh || !ok {
		m.dead = true
		return step, ok
	}
	// Keep has run since that failure, perhaps for long.
	if m.pending != nil && m.since.Before(time.Now()) && m.w.set.Keep {
		m.dead = true
		return step, ok
	}
	m.asked = append(m.asked, asked{h, step, ok})
	if m.pending != nil && !h.Hung { // it is asked because of that failure
		m.verdict.RetryAfter, m.verdict.NoCredit = h.Verdict.RetryAfter, h.Verdict.NoCredit // advice may have made it longer
		m.flush()
	} else {
		m.flush()
		m.did = m.dials.Next(time.Now())
	}
	if len(m.asked) > 0 {
		m.refuse("the policy was asked, and the machine does not ask: %+v", h)
	}
	return step, ok
}

// classify is Classify, and tells the mirror.
func (w *world) classify(err error) backoff.Verdict {
	v := w.judge(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judgedAt = w.now()
	if m := w.mirror; m.follows() {
		m.verdict = v
		if s := w.of(m.session); m.answered && s.ready {
			m.lost(w.now() - s.readyAt)
		} else if m.answered {
			m.lost(-1)
		}
	}
	return v
}

// begins is called when a dial begins, or its wait at the gate.
func (m *mirror) begins() {
	if !m.follows() {
		return
	}
	if m.moves {
		m.moves = false
		return
	}
	m.flush()
	a := m.dials.Next(time.Now())
	m.w.check(m.invariant(), a.Do == schedule.DoDial || m.dead, "a dial begins, and the machine says %+v", a)
	if m.dead = m.dead || a.Do != schedule.DoDial || m.w.set.Gate && len(m.which) > 0; !m.dead {
		m.which[a.Attempt.Number] = a.Which
	}
}

// tried is called with the number of a dial that begins.
func (m *mirror) tried(try int) {
	if m.follows() {
		_, ok := m.which[try]
		m.w.check(m.invariant(), ok, "dial %d begins, and the machine has none of that number", try)
		m.dead = !ok
	}
}

// connected is called when a dial is connected.
func (m *mirror) connected(try int) {
	if m.follows() {
		if which, ok := m.which[try]; ok {
			m.flush()
			m.dials.Connected(which, time.Now())
		}
	}
}

// hung is called when a handshake hangs.
func (m *mirror) hung(try int) {
	if m.follows() {
		m.w.check(m.invariant(), m.did.Do == schedule.DoKeep && m.did.Which == m.which[try],
			"dial %d hangs, and the machine says %+v", try, m.did)
		m.did = schedule.Action{}
	}
}

// ended is called when a dial has ended.
func (m *mirror) ended(e reconnect.DialDone) {
	if !m.follows() {
		return
	}
	if e.Err != nil && strings.Contains(e.Err.Error(), "has waited at the gate for another host") {
		m.moves = true
		return
	}
	m.flush()
	which := m.which[e.Try]
	delete(m.which, e.Try)
	if m.cut[e.Try] {
		delete(m.cut, e.Try)
		return
	}
	if e.Err == nil {
		m.dials.Answered(which, time.Now())
		m.answered = true
		for a := m.dials.Next(time.Now()); a.Do == schedule.DoCut; a = m.dials.Next(time.Now()) {
			for try, w := range m.which {
				m.cut[try] = m.cut[try] || w == a.Which
			}
		}
		return
	}
	if m.did.Do == schedule.DoWait {
		m.did = m.dials.Next(time.Now())
	}
	a := m.did
	m.did = schedule.Action{}
	if a.Do == schedule.DoCut && a.Which == which {
		return
	}
	if a.Do != schedule.DoWait { // two things at one instant
		m.dead = true
		return
	}
	at := time.Now()
	m.pending, m.since = func(v backoff.Verdict) { m.dials.Failed(which, v, at) }, at
}

// lost is called when the judge is asked about the end of a session.
func (m *mirror) lost(ready time.Duration) {
	if m.follows() && m.answered {
		at := time.Now()
		m.pending, m.since = func(v backoff.Verdict) {
			if ready >= 0 {
				m.dials.Use(m.dialOptions(false))
			}
			m.dials.Ended(v, ready, at)
		}, at
		m.answered = false
	}
}

// waits is called when a wait begins.
func (m *mirror) waits(e reconnect.WaitStart) {
	if m != nil && m.w.loginWait { // which the machine does not know
		m.dead = true
	}
	if m.follows() {
		m.flush()
		due := time.Until(m.dials.Due())
		m.w.check(m.invariant(), m.dead || max(due, 0) == e.Verdict.RetryAfter+e.Drawn && m.dials.Attempts()+1 == e.Try,
			"the wait before dial %d is %v and %v, and the machine says %v before dial %d",
			e.Try, e.Verdict.RetryAfter, e.Drawn, due, m.dials.Attempts()+1)
	}
}

// RotatedDialsAccept is DialsAccept for the supervisors that rotations have begun.
const RotatedDialsAccept Invariant = "3: the machine that decides about dials accepts the history since a rotation"
