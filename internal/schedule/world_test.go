package schedule

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/walk"
	"github.com/redial-go/redial/reconnect/backoff"
)

// world is what the walk visits: a Dials, the supervisor that does what it says, and what was promised. The
// supervisor does what the one of package reconnect does, in the same order: it reports what has happened,
// and then calls Next until there is nothing to do. Until the time that Next has named, and a unit longer,
// anything may happen first.
type world struct {
	m     frozen
	at    moment // when the supervisor calls Next again, if nothing happens; never: it does not
	slots [2]slot
	up    int8 // units that the session has lasted; -1: there is none
	done  end

	// What has happened so far promises this:
	next     moment // when the next dial begins; never: no such time is known
	hold     moment // a server told us not to dial before; never: no server did
	cut      bool   // a kick has cut the wait before the next dial
	swap     bool   // the handshake of the next dial may take the place of the handshake that is kept
	ifFull   bool   // so it may if that dial finds the backlog full
	kicked   bool   // a kick came while a dial was under way
	hangs    bool   // a handshake hangs
	full     bool   // the last dial was not connected, or was refused
	beside   int8   // dials that have begun beside the handshake that hangs
	class    backoff.Class
	slows    int8 // slow verdicts in a row
	renew    bool
	refused  bool
	waits    int8
	waited   int8
	stopping bool // no dial may follow
	gaveUp   bool

	wrong string
}

// slot is one of the two dials.
type slot struct {
	at     slotAt
	kept   bool
	swap   bool
	ifFull bool   // it may swap if it is late
	aged   bool   // it has taken a unit to connect
	late   bool   // it has found the backlog full
	since  moment // when its handshake began
}

type slotAt uint8

const (
	nowhere slotAt = iota
	atGate
	onWay // not connected yet
	shakes
)

// end is how the supervisor has ended.
type end uint8

const (
	goesOn end = iota
	stops      // after DoStop
	closed     // the Conn was closed
)

// config is one kind of Dials, with limits in units.
type config struct {
	one      bool // OneConnection
	swap     bool
	ifFull   bool // SwapIfFull
	gate     bool
	giveUp   int8   // the policy gives up when it has waited so often; 0: never, and waits are not counted
	oldest   moment // the age up to which an outage is counted
	verdicts []named
	sessions []named // how sessions end

	// These have a default.
	hang int8 // the limit on the handshake
	keep int8 // for how long one is kept
	told int8 // how long a server tells us to wait
}

// named is a verdict with a name. Its RetryAfter is set by the config, if told is set.
type named struct {
	name string
	backoff.Verdict
	told bool
}

// verdict returns what the supervisor reports.
func (c *config) verdict(n named) backoff.Verdict {
	v := n.Verdict
	if n.told {
		v.RetryAfter = units(c.told)
	}
	return v
}

const (
	policyWait  = 1
	stableAfter = 2
	credit      = 2
	slowMax     = 12 // units after which a ready session ends a row of slow verdicts
)

// slowWaits are the least waits after the first slow verdict in a row, and after a later one.
var slowWaits = [...]int8{5, 6}

// rules are the methods of Dials; a mistake replaces one.
type rules struct {
	next      func(*Dials, time.Time) Action
	began     func(*Dials, int, time.Time)
	connected func(*Dials, int, time.Time)
	failed    func(*Dials, int, backoff.Verdict, time.Time)
	withdrawn func(*Dials, int, time.Time)
	answered  func(*Dials, int, time.Time)
	ended     func(*Dials, backoff.Verdict, time.Duration, time.Time) bool
	kick      func(*Dials, time.Time) bool
}

var trueRules = rules{
	(*Dials).Next, (*Dials).Began, (*Dials).Connected, (*Dials).Failed, (*Dials).Withdrawn, (*Dials).Answered, (*Dials).Ended, (*Dials).Kick,
}

// walker makes the steps of one config. It is the policy too.
type walker struct {
	c *config
	r rules
	o *DialOptions

	// Of the present step.
	w       *world
	d       *Dials
	verdict backoff.Verdict // which was reported
	inNext  bool
	asked   bool
	tries   int    // how many there should be
	began   moment // when the outage should have begun
	list    []walk.Step[world]
}

func newWalker(o config, r rules) *walker {
	c := &o
	x := &walker{c: c, r: r}
	c.hang, c.keep, c.told = cmp.Or(c.hang, 2), cmp.Or(c.keep, 4), cmp.Or(c.told, 2)
	x.o = &DialOptions{Policy: x, OneConnection: c.one, StableAfter: units(stableAfter), Credit: units(credit), Keep: units(c.keep)}
	return x
}

// first is the state after Start.
func (x *walker) first() world {
	w := world{at: never, up: -1, next: 0, hold: never}
	d := NewDials(x.o, rand.New(lowest{}))
	d.Start(epoch)
	d.outage.tries = baseTries
	w.m = freeze(&d, x.c)
	x.begin(&w)
	x.settle()
	return w
}

// begin begins a step.
func (x *walker) begin(w *world) {
	x.w, x.d, x.tries, x.began = w, w.m.thaw(x.o), baseTries, w.m.began
}

// add adds what happens at the present moment, and what the supervisor does then.
func (x *walker) add(event string, from world, happen func(w *world)) {
	w := from
	x.begin(&w)
	happen(&w)
	if w.done == goesOn {
		x.settle()
	}
	x.list = append(x.list, walk.Step[world]{Event: event, State: w})
}

// act adds what happens by itself.
func (x *walker) act(event string, from world, happen func(w *world)) {
	x.add(event, from, happen)
	x.list[len(x.list)-1].Free = true
}

func (x *walker) broken(wrong string) {
	if x.w.wrong == "" {
		x.w.wrong = wrong
	}
}

func (x *walker) must(holds bool, wrong string) {
	if !holds {
		x.broken(wrong)
	}
}

// steps returns all that can happen in w.
func (x *walker) steps(w world) []walk.Step[world] {
	x.list = nil
	if w.done != goesOn {
		return nil
	}
	x.add("close", w, func(w *world) { *w = world{done: closed, at: never, up: -1} })
	if w.up >= 0 {
		x.session(w)
		return x.list
	}
	if w.at > -1 || w.at == never {
		x.list = append(x.list, walk.Step[world]{Event: "tick", Free: true, State: w.later(x.c)})
	}
	if w.at != never && w.at <= 0 {
		x.act("wake", w, func(*world) {})
	}
	for i := range w.slots {
		x.dial(w, i)
	}
	if w.slots[0].at != atGate && w.slots[1].at != atGate {
		x.add("kick", w, func(w *world) { x.kick() })
	}
	return x.list
}

// later returns w when a unit has passed.
func (w world) later(c *config) world {
	w.m.tick(c)
	w.at, w.next, w.hold = w.at.later(-1), w.next.later(-1), w.hold.later(0)
	if w.hold == 0 {
		w.hold = never
	}
	for i := range w.slots {
		switch s := &w.slots[i]; s.at {
		case onWay:
			s.aged = c.ifFull
		case shakes:
			s.since = s.since.later(mostPast - moment(c.limit(s.kept)))
		}
	}
	return w
}

// limit is how long a handshake may last.
func (c *config) limit(kept bool) int8 {
	if kept {
		return c.keep
	}
	return c.hang
}

// connects notes whether a dial that connects has found the backlog full.
func (x *walker) connects(i int) {
	w, s, other := x.w, &x.w.slots[i], x.w.slots[1-i]
	s.at, s.since = shakes, 0
	if !x.c.ifFull {
		return
	}
	s.late, s.aged = s.aged || w.full, false
	if !w.hangs {
		return
	}
	w.full = false
	if s.ifFull && !s.kept && other.kept && s.late && other.at == shakes && !other.late {
		s.swap = true
	}
}

// ends is the end of a hang.
func (w *world) ends() { w.hangs, w.full = false, false }

// dial adds what can happen to one dial.
func (x *walker) dial(w world, i int) {
	name := [...]string{"first: ", "second: "}[i]
	switch w.slots[i].at {
	case nowhere:
		return
	case atGate:
		x.act(name+"may begin", w, func(w *world) {
			w.slots[i].at = onWay
			x.r.began(x.d, i, epoch)
		})
		x.add(name+"gate fails", w, func(*world) { x.fail(i, backoff.Verdict{Class: backoff.ClassRetry}) })
		return
	case onWay:
		x.add(name+"connects", w, func(*world) {
			x.connects(i)
			x.r.connected(x.d, i, epoch)
		})
		x.act(name+"is not connected in time", w, func(*world) { x.fail(i, backoff.Verdict{Class: backoff.ClassOverload}) })
	}
	x.add(name+"answered", w, func(w *world) {
		w.slots[i] = slot{}
		w.up, w.next, w.hold, w.kicked, w.cut = 0, never, never, false, false
		w.ends()
		x.r.answered(x.d, i, epoch)
	})
	for _, v := range x.c.verdicts {
		x.add(name+v.name, w, func(*world) { x.fail(i, x.c.verdict(v)) })
	}
}

// fail is the end of a dial, as the supervisor reports it.
func (x *walker) fail(i int, v backoff.Verdict) {
	w, kept := x.w, x.w.slots[i].kept
	w.full = x.c.ifFull && w.hangs && (w.full || w.slots[i].at != shakes || v.Refused)
	w.slots[i] = slot{}
	if v.RetryAfter > 0 {
		for k := range w.slots {
			if w.slots[k].at == atGate {
				w.slots[k] = slot{}
				x.tries--
				x.r.withdrawn(x.d, k, epoch)
			}
		}
	}
	if kept || x.c.one {
		w.ends()
	}
	w.refused = w.refused || v.Refused
	asks := v.Class != backoff.ClassStop && x.alone() < 0 && (w.next == never || v.RetryAfter > 0)
	x.judge(v)
	x.r.failed(x.d, i, v, epoch)
	x.must(x.asked == asks, "the policy is not asked, or is asked while it need not be")
}

// judge notes what a verdict promises.
func (x *walker) judge(v backoff.Verdict) {
	x.verdict, x.inNext, x.asked = v, false, false
	w := x.w
	if v.Class == backoff.ClassStop {
		w.stopping = true
		return
	}
	if v.RetryAfter > 0 {
		w.hold = max(w.hold, moment(x.c.told))
		if w.next != never {
			w.next = max(w.next, w.hold)
		}
	}
}

// kick reports a kick.
func (x *walker) kick() {
	w, want := x.w, false
	switch {
	case w.stopping:
	case x.alone() >= 0:
		want, w.kicked = true, true
	case w.next > 0 && w.hold == never:
		want, w.next, w.cut = true, 0, true
	}
	x.must(x.r.kick(x.d, epoch) == want, "a kick does not say what it does")
}

// alone returns the dial that is under way and not kept, -1 if there is none.
func (x *walker) alone() int {
	for i, s := range x.w.slots {
		if s.at != nowhere && !s.kept {
			return i
		}
	}
	return -1
}

// session adds what can happen while there is a session.
func (x *walker) session(w world) {
	if w.up < x.c.told+slowWaits[1] {
		later := w
		later.m.tick(x.c)
		later.up++
		x.list = append(x.list, walk.Step[world]{Event: "tick", Free: true, State: later})
	}
	for _, n := range x.c.sessions {
		v, name := x.c.verdict(n), n.name
		x.add("session was never ready, "+name, w, func(*world) { x.endSession(v, -1) })
		x.add("session ends, "+name, w, func(w *world) { x.endSession(v, units(w.up)) })
		x.add("session ends after an hour, "+name, w, func(*world) { x.endSession(v, longSession) })
		x.add("session ends, and the next is to come at once, "+name, w, func(w *world) {
			x.endSession(v, units(w.up))
			x.kick()
		})
	}
}

// endSession ends a session that was ready for so long.
func (x *walker) endSession(v backoff.Verdict, ready time.Duration) {
	w := x.w
	stable := ready >= units(max(stableAfter, w.waited)) && (!v.NoCredit || ready == longSession)
	w.up = -1
	if ready >= units(slowMax) {
		w.slows = 0
	}
	switch {
	case stable:
		w.class, w.renew, w.refused, w.waits = backoff.ClassOK, false, false, 0
		x.tries, x.began = 0, 0
	case ready < 0:
	case v.NoCredit || ready < BriefSession:
		x.began += moment(inUnits(ready))
	default:
		x.began = min(x.began, 0) + credit
		if x.began >= 0 {
			w.refused, w.waits = false, 0
		}
	}
	x.judge(v)
	x.must(x.r.ended(x.d, v, ready, epoch) == stable, "a session is not said to be what it was, stable or not")
}
