package history

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/internal/line"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/history/yield"
)

// lineModel is a second queue for one host, written apart from line.Queue. The model sees each dial that asks for a permit, each
// dial that gives up, and the end of each dial. It says when the next permit is due. The model stops when two of these happen at
// one instant and their order matters. world.mu guards the model.
type lineModel struct {
	w       *world
	dead    bool
	last    time.Time // of the last event
	waiting []*place  // the first one first
	under   int
	window  int
	down    bool
	hold    time.Time
	began   time.Time     // when the host went down
	from    time.Time     // the next probe waits from then on
	alone   time.Duration // as long as a lone client would
	shared  bool          // or less, because the waits of all are taken together
	age     float64       // of the outage, in units of 10 minutes, when that was drawn
	fails   int           // that have counted since the host went down
	tokens  float64
	filled  time.Time

	asked    time.Duration // Retry-After of the last verdict, as far as it holds the host
	longest  time.Duration // that a Retry-After may hold the host, or 0 if no dial has succeeded
	refusals float64       // of callers, when the last permit was given back
	returned time.Time     // when the last permit was given back

	granted uint64

	mu    sync.Mutex // guards what follows; nothing else is locked under it
	steps []pause
}

// place is one dial in the line.
type place struct {
	joined  time.Time
	granted bool // the permit was seen
	in      bool // it is under way
	probe   bool
}

// pause is one answer of the policy of the probes.
type pause struct {
	n    int
	wait time.Duration
}

// lineSlack is for the rounding of the rate.
const lineSlack = time.Microsecond

func newLineModel(w *world) *lineModel {
	return &lineModel{w: w, last: w.start, tokens: gateBurst, filled: w.start}
}

// Next is the policy of the probes: the default one, whose waits the model hears.
func (m *lineModel) Next(h backoff.History, r *rand.Rand) (backoff.Step, bool) {
	step, ok := backoff.Default().Next(h, r)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps = append(m.steps, pause{h.N, step.Wait})
	return step, ok
}

// due returns when the first in the line may go, and when it must; false: that does not depend on time.
func (m *lineModel) due() (may, must time.Time, ok bool) {
	if len(m.waiting) == 0 || m.under >= m.window {
		return may, must, false
	}
	at := m.waiting[0].joined
	if missing := 1 - m.tokens; missing > 0 {
		at = later(at, m.filled.Add(time.Duration(missing/gateRate*float64(time.Second))))
	}
	at = later(at, m.hold)
	may, must = at, at
	if m.down {
		first, last := m.pace()
		may, must = later(at, first), later(at, last)
	}
	return may, must, true
}

// pace returns between which times the next probe may begin. The model does not see what the gate has drawn.
func (m *lineModel) pace() (first, last time.Time) {
	wait := func(least time.Duration) time.Time {
		if !m.shared {
			return m.from.Add(m.alone)
		}
		least = time.Duration(max(m.age, 1) * float64(least))
		return m.from.Add(min(m.alone, max(least, m.alone/time.Duration(max(len(m.waiting), 1)))))
	}
	return wait(time.Second), wait(1500 * time.Millisecond)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// at is called with the time of each event, before it. It reports whether the event is the first of its instant.
func (m *lineModel) at(now time.Time) (first bool) {
	if !now.After(m.last) {
		return false
	}
	for _, p := range m.waiting {
		m.w.check(LineAccepts, !p.granted, "a dial has overtaken another")
	}
	_, at, ok := m.due()
	m.w.check(LineAccepts, !ok || !at.Add(lineSlack).Before(now), "a permit is due since %v, and nobody has it", now.Sub(at))
	m.last = now
	return true
}

// follows reports whether the model still follows. It follows no widened library, where another dial comes
// between a call and what the model hears of it.
func (m *lineModel) follows() bool {
	m.dead = m.dead || yield.Used() || len(m.w.result.Violations) > 0
	return !m.dead
}

// compare compares the model with the Status of the gate, at an instant at which nothing has happened yet.
func (m *lineModel) compare(s line.Status, now time.Time) {
	if at, _, ok := m.due(); ok && !at.After(now.Add(lineSlack)) {
		return // a permit may be being given
	}
	if m.granted == 0 && s.Limit == 0 {
		return // no dial has asked yet, and so the host has no line
	}
	held, want := time.Time{}, time.Time{}
	if s.Held.After(now) {
		held = s.Held
	}
	if m.hold.After(now) {
		want = m.hold
	}
	ok := s.Waiting == len(m.waiting) && s.Dialing == m.under && s.Limit == m.window && s.Down == m.down && held.Equal(want) &&
		s.Granted == m.granted
	m.w.check(LineAccepts, ok,
		"the gate says %+v, and the line has %d, %d of %d under way, down %t, held %v, granted %d",
		s, len(m.waiting), m.under, m.window, m.down, want, m.granted)
	if first, last := m.pace(); m.down {
		ok = !s.Probe.Before(later(first, m.hold)) && !s.Probe.After(later(last, m.hold))
		m.w.check(LineAccepts, ok, "the gate says that the next probe is in %v, and not in %v to %v", s.Probe.Sub(now), first.Sub(now), last.Sub(now))
	}
}

// join is called before a dial joins the line. s is the Status of the gate before.
func (m *lineModel) join(s line.Status) *place {
	now := time.Now()
	p := &place{joined: now}
	if !m.follows() {
		return p
	}
	if m.at(now) {
		m.compare(s, now)
	} else if slices.ContainsFunc(m.waiting, func(o *place) bool { return o.joined.Equal(now) }) {
		m.dead = true // which of the two was first?
	}
	m.waiting = append(m.waiting, p)
	return p
}

// leave is called after a dial has left the line.
func (m *lineModel) leave(p *place) {
	if !m.follows() {
		return
	}
	now := time.Now()
	m.at(now)
	at, _, ok := m.due()
	if m.dead = ok && !at.After(now.Add(lineSlack)); !m.dead { // else the permit may have come at this very instant
		m.waiting = slices.DeleteFunc(m.waiting, func(o *place) bool { return o == p })
	}
}

// grant is called when a dial has its permit.
func (m *lineModel) grant(p *place) {
	if !m.follows() {
		return
	}
	now := time.Now()
	m.at(now)
	p.granted = true
	for len(m.waiting) > 0 && m.waiting[0].granted { // those that get a permit at one instant are seen in any order
		at, _, ok := m.due()
		m.w.check(LineAccepts, ok && !at.After(now.Add(lineSlack)), "a permit comes at %v, %d of %d are under way, and it is due: %t, in %v", now.Sub(m.w.start), m.under, m.window, ok, at.Sub(now))
		q := m.waiting[0]
		m.waiting = m.waiting[1:]
		q.in, q.probe = true, m.down
		m.fill(now)
		m.tokens--
		m.under++
		m.granted++
	}
}

// fill counts the tokens.
func (m *lineModel) fill(now time.Time) {
	m.tokens = min(m.tokens+now.Sub(m.filled).Seconds()*gateRate, gateBurst)
	m.filled = now
}

// done is called before a permit is given back. s is the Status of the gate before. done reports whether it is a failure that
// counts.
func (m *lineModel) done(p *place, v backoff.Verdict, s line.Status) (counts bool) {
	if !m.follows() {
		return false
	}
	now := time.Now()
	if m.at(now) {
		m.compare(s, now)
	}
	if m.dead = !p.in; m.dead {
		return false
	}
	m.under--
	if !m.returned.IsZero() {
		m.refusals = max(m.refusals-now.Sub(m.returned).Seconds()/5, 0)
	}
	m.returned = now
	if v.Caller && v.Class != backoff.ClassStop {
		m.refused(now)
		return false
	}
	m.hear(v, now)
	switch v.Class {
	case backoff.ClassStop:
	case backoff.ClassRetry, backoff.ClassOverload:
		switch {
		case !m.down || p.probe:
			if !m.down {
				m.fails, m.began = 0, now
			}
			m.down, m.window, m.from, m.alone, m.shared = true, 1, now, 1, false // until the policy has said more
			return true
		default:
			first, last := m.pace()
			if m.hold.After(last) {
				m.from, m.shared = m.hold, false
			} else if m.hold.After(first) {
				m.dead = true // that depends on what was drawn
			}
		}
	default:
		m.down = m.down && m.hold.After(now)
		if v.Class == backoff.ClassOK && !m.down {
			m.window = min(m.window+1, m.w.gate.limit)
		}
	}
	return false
}

// refused follows a refusal that is about its caller. Each beyond 20 costs all dials 5 s.
func (m *lineModel) refused(now time.Time) {
	m.down = m.down && m.hold.After(now)
	if m.refusals++; m.refusals > 20 {
		m.refusals, m.window = 21, 1
		m.hold = later(m.hold, now.Add(5*time.Second))
	}
}

// hear follows the Retry-After of any other verdict, and how a success shortens it.
func (m *lineModel) hear(v backoff.Verdict, now time.Time) {
	const first = 10 * time.Second
	if m.asked = min(v.RetryAfter, backoff.MaxRetryAfter); m.asked > 0 {
		if m.longest > 0 {
			m.asked, m.longest = min(m.asked, m.longest), min(2*m.longest, backoff.MaxRetryAfter)
		}
		m.hold = later(m.hold, now.Add(m.asked))
	}
	if v.Class != backoff.ClassOK {
		return
	}
	m.longest, m.refusals = first, max(m.refusals-1, 0)
	if m.hold.After(now.Add(first)) {
		m.hold, m.from, m.alone = now.Add(first), now, min(m.alone, first)
	}
}

// paced is called after a permit was given back at now. counts says that it was a failure that counts, so that the pace of the
// next probe was drawn.
func (m *lineModel) paced(counts bool, now time.Time) {
	m.mu.Lock()
	steps := m.steps
	m.steps = nil
	m.mu.Unlock()
	if m.dead {
		return
	}
	want := 0
	if counts {
		want = 1
	}
	m.w.check(LineAccepts, len(steps) == want, "the policy of the probes was asked %d times, and not %d times", len(steps), want)
	if m.dead = len(steps) != want; m.dead || want == 0 {
		return
	}
	m.w.check(LineAccepts, steps[0].n == m.fails, "the policy is asked after %d failures, and there were %d", steps[0].n, m.fails)
	m.from, m.alone = now.Add(m.asked), steps[0].wait
	m.shared, m.age = m.fails > 0 && m.asked <= 0, now.Sub(m.began).Minutes()/10
	m.fails++
}
