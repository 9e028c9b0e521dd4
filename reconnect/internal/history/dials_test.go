package history

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/schedule"
)

// mirror is a schedule.Dials that is told what the hooks of a Conn report, and must say the same as the one inside. It follows
// until something happens that no hook shows in full: a kick, a rotation, a wait that the machine itself has drawn, or a second
// dial beside a gate. world.mu guards it.
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
	m := &mirror{w: w, which: make(map[int]int), cut: make(map[int]bool)}
	o := &schedule.DialOptions{Policy: playback{m}, OneConnection: w.set.OneConnection, StableAfter: w.stableAfter()}
	m.dials = schedule.NewDials(o.WithDefaults(), rand.New(rand.NewPCG(0, 0)))
	m.dials.Start(w.start)
	return m
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
		m.w.check(DialsAccept, false, format, args...)
	}
	m.dead = true
}

// follows reports whether the mirror still follows. The caller holds w.mu.
func (m *mirror) follows() bool {
	return m != nil && !m.dead && len(m.w.pushes) == 0 && !m.w.rotated && m.w.closing == 0 && m.w.mayEnd == ""
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
	m.asked = append(m.asked, asked{h, step, ok})
	if m.pending != nil && m.since.Equal(time.Now()) { // it is asked because of that failure
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
	if m := w.mirror; m.follows() {
		m.verdict = v
		if s := w.of(w.started); m.answered && s.ready {
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
	m.flush()
	a := m.dials.Next(time.Now())
	m.w.check(DialsAccept, a.Do == schedule.DoDial || m.dead, "a dial begins, and the machine says %+v", a)
	if m.dead = m.dead || a.Do != schedule.DoDial || m.w.set.Gate && len(m.which) > 0; !m.dead {
		m.which[a.Attempt.Number] = a.Which
	}
}

// tried is called with the number of a dial that begins.
func (m *mirror) tried(try int) {
	if m.follows() {
		_, ok := m.which[try]
		m.w.check(DialsAccept, ok, "dial %d begins, and the machine has none of that number", try)
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
		m.w.check(DialsAccept, m.did.Do == schedule.DoKeep && m.did.Which == m.which[try], "dial %d hangs, and the machine says %+v", try, m.did)
		m.did = schedule.Action{}
	}
}

// ended is called when a dial has ended.
func (m *mirror) ended(e reconnect.DialDone) {
	if !m.follows() {
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
		m.pending, m.since = func(v backoff.Verdict) { m.dials.Ended(v, ready, at) }, at
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
		m.w.check(DialsAccept, m.dead || max(due, 0) == e.Verdict.RetryAfter+e.Drawn && m.dials.Attempts()+1 == e.Try,
			"the wait before dial %d is %v and %v, and the machine says %v before dial %d", e.Try, e.Verdict.RetryAfter, e.Drawn, due, m.dials.Attempts()+1)
	}
}
