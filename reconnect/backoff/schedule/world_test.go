package schedule

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/walk"
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

	// What was promised, by what has happened.
	next     moment // when the next dial begins; never: no such time is known
	hold     moment // no dial before; never: nobody has told us
	cut      bool   // a kick has cut the wait for it
	swap     bool   // the handshake of that dial may take the place of the one that is kept
	kicked   bool   // a kick came while a dial was under way
	hangs    bool   // a handshake hangs
	beside   int8   // dials that have begun beside it
	class    backoff.Class
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
	at    slotAt
	kept  bool
	swap  bool
	since moment // when its handshake began
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
	slowWait    = int8(SlowMin / unit)
)

// rules are the methods of Dials; a mistake replaces one.
type rules struct {
	next      func(*Dials, time.Time) Action
	connected func(*Dials, int, time.Time)
	failed    func(*Dials, int, backoff.Verdict, time.Time)
	withdrawn func(*Dials, int)
	answered  func(*Dials, int, time.Time)
	ended     func(*Dials, backoff.Verdict, time.Duration, time.Time) bool
	kick      func(*Dials, time.Time) bool
}

var trueRules = rules{
	(*Dials).Next, (*Dials).Connected, (*Dials).Failed, (*Dials).Withdrawn, (*Dials).Answered, (*Dials).Ended, (*Dials).Kick,
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
	x.o = &DialOptions{Policy: x, OneConnection: c.one, StableAfter: units(stableAfter), Credit: unit, Keep: units(c.keep)}
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
		if s := &w.slots[i]; s.at == shakes {
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

// dial adds what can happen to one dial.
func (x *walker) dial(w world, i int) {
	name := [...]string{"first: ", "second: "}[i]
	switch w.slots[i].at {
	case nowhere:
		return
	case atGate:
		x.act(name+"may begin", w, func(w *world) { w.slots[i].at = onWay })
		x.add(name+"gate fails", w, func(*world) { x.fail(i, backoff.Verdict{Class: backoff.ClassRetry}) })
		return
	case onWay:
		x.add(name+"connects", w, func(w *world) {
			w.slots[i].at, w.slots[i].since = shakes, 0
			x.r.connected(x.d, i, epoch)
		})
		x.act(name+"is not connected in time", w, func(*world) { x.fail(i, backoff.Verdict{Class: backoff.ClassOverload}) })
	}
	x.add(name+"answered", w, func(w *world) {
		w.slots[i] = slot{}
		w.up, w.next, w.hold, w.kicked, w.hangs, w.cut = 0, never, never, false, false, false
		x.r.answered(x.d, i, epoch)
	})
	for _, v := range x.c.verdicts {
		x.add(name+v.name, w, func(*world) { x.fail(i, x.c.verdict(v)) })
	}
}

// fail is the end of a dial, as the supervisor reports it.
func (x *walker) fail(i int, v backoff.Verdict) {
	w, kept := x.w, x.w.slots[i].kept
	w.slots[i] = slot{}
	if v.RetryAfter > 0 {
		for k := range w.slots {
			if w.slots[k].at == atGate {
				w.slots[k] = slot{}
				x.tries--
				x.r.withdrawn(x.d, k)
			}
		}
	}
	if kept || x.c.one {
		w.hangs = false
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
	if w.up < x.c.told+slowWait {
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
	switch {
	case stable:
		w.class, w.renew, w.refused, w.waits = backoff.ClassOK, false, false, 0
		x.tries, x.began = 0, 0
	case ready < 0:
	case v.NoCredit || ready < BriefSession:
		x.began += moment(inUnits(ready))
	default:
		x.began = min(x.began, 0) + 1
		if x.began >= 0 {
			w.refused, w.waits = false, 0
		}
	}
	x.judge(v)
	x.must(x.r.ended(x.d, v, ready, epoch) == stable, "a session is not said to be what it was, stable or not")
}

// Next is the policy of every walk. It checks what it is told.
func (x *walker) Next(h backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	w, v := x.w, x.verdict
	x.asked = true
	if x.inNext {
		v = backoff.Verdict{Class: backoff.ClassOverload}
	}
	x.must(!w.stopping, "the policy is asked, and no dial may follow")
	x.must(w.next == never || !x.inNext && v.RetryAfter > 0, "the policy is asked, and the time of the next dial is known")
	x.must(h.Hung == x.inNext, "the policy is told that a handshake hangs, and that one has failed")
	again := v.Class == w.class
	w.class, w.renew = v.Class, v.Class == backoff.ClassRefresh || w.renew && x.inNext
	switch {
	case v.Class == backoff.ClassRefresh && again:
		v.Class = backoff.ClassSlow
	case v.Class == backoff.ClassSlow && v.Lenient && !again:
		v.Class = backoff.ClassRetry
	}
	x.must(h.Verdict.Class == v.Class, "the verdict of the second in a row")
	x.must(h.Verdict.RetryAfter == v.RetryAfter, "the policy is not told what the server told us")
	x.must(h.Refused == w.refused, "the policy is not told whether a dial was refused")
	x.must(h.Elapsed == units(int8(max(-x.began, 0))), "the age of the outage")
	x.must(x.inNext || h.Hang > 0 == w.hangs, "the policy is not told whether a handshake hangs")
	if h.Hang > 0 && w.hangs {
		x.must(int8(min(h.DialsBeside, mostBeside)) == w.beside, "the number of dials beside")
	}
	x.must(x.c.giveUp == 0 || min(int8(h.N), x.c.giveUp) == w.waits, "the number of waits")
	if w.waits = min(w.waits+1, x.c.giveUp); x.c.giveUp > 0 && h.N >= int(x.c.giveUp) {
		w.stopping, w.gaveUp = true, true
		return backoff.Step{}, false
	}
	step := backoff.Step{Wait: units(policyWait), Handshake: units(x.c.hang), Swap: x.c.swap && h.Hang > 0 && h.DialsBeside == 0}
	if h.Hung {
		step.Wait = 0
	}
	x.wait(v.Class, step)
	return step, true
}

// Start has the limits on the first dial.
func (x *walker) Start(*rand.Rand) backoff.Step { return backoff.Step{Handshake: units(x.c.hang)} }

// wait notes what a step promises after a verdict of class c.
func (x *walker) wait(c backoff.Class, step backoff.Step) {
	w, wait := x.w, inUnits(step.Wait)
	switch c {
	case backoff.ClassRefresh:
		wait = 0
	case backoff.ClassSlow:
		wait = max(wait, slowWait)
	}
	w.next, w.swap = max(w.hold, 0), step.Swap
	if w.cut = w.kicked && w.hold == never; !w.cut {
		w.next += moment(wait)
	}
	w.kicked, w.waited = false, int8(w.next)
}

// settle does what Next says until there is nothing to do.
func (x *walker) settle() {
	w, d := x.w, x.d
	x.inNext = true
	for n := 0; ; n++ {
		switch a := x.r.next(d, epoch); a.Do {
		case DoDial:
			x.begins(a)
		case DoKeep:
			x.keeps(a)
		case DoCut:
			x.cuts(a.Which)
		case DoStop:
			x.must(w.stopping, "it stops without a reason")
			x.must(w.slots == [2]slot{}, "a dial is left after the end")
			x.must(d.GaveUp() == w.gaveUp, "it does not say whether the policy gave up")
			*w = world{done: stops, at: never, up: -1, wrong: w.wrong}
			return
		case DoWait:
			x.waitsUntil(a.At)
			w.m = freeze(d, x.c)
			return
		}
		if n > 8 {
			x.broken("there is always something to do")
			return
		}
	}
}

// begins is DoDial.
func (x *walker) begins(a Action) {
	w := x.w
	x.tries++
	other := w.slots[1-a.Which]
	x.must(w.slots[a.Which].at == nowhere, "a dial begins in the place of another")
	x.must(other.at == nowhere || !x.c.one, "two dials at a time")
	x.must(other.at == nowhere || other.kept, "a dial begins beside one that does not hang")
	x.must(w.up < 0, "a dial begins during a session")
	x.must(!w.stopping, "a dial begins after the end")
	x.must(w.hold == never, "a dial begins before the time that the server told us is over")
	x.must(w.next != never && w.next <= 0, "a dial begins before its wait is over")
	x.must(a.Kicked == w.cut, "a dial does not say whether a kick has cut the wait")
	x.must(a.Attempt.Number == x.tries, "the number of a try")
	x.must(a.Attempt.Refresh == w.renew, "a try does not say whether the credentials were refused")
	x.must(a.Attempt.Handshake == units(x.c.hang), "the limit on the handshake")
	if w.hangs {
		w.beside = min(w.beside+1, mostBeside)
	}
	w.slots[a.Which] = slot{at: onWay, swap: w.swap}
	if x.c.gate {
		w.slots[a.Which].at = atGate
	}
	w.next, w.cut, w.swap = never, false, false
}

// over reports whether the handshake of a dial has taken as long as it may.
func (x *walker) over(s slot) bool {
	return s.at == shakes && s.since+moment(x.c.limit(s.kept)) <= 0
}

// keeps is DoKeep.
func (x *walker) keeps(a Action) {
	w := x.w
	s := &w.slots[a.Which]
	x.must(s.at != nowhere && !s.kept, "a dial is kept that is not under way, or is kept already")
	x.must(!w.slots[1-a.Which].kept, "two dials are kept")
	x.must(!x.c.one, "a dial is kept where there is one connection")
	if a.Kicked {
		x.must(w.kicked, "a dial is kept for a kick that was not")
		w.kicked, w.next, w.swap = false, max(w.hold, 0), false
		w.hangs = false
	} else {
		x.must(x.over(*s), "a dial is kept although its handshake does not hang")
	}
	if !w.hangs {
		w.hangs, w.beside = true, 0
	}
	s.kept, s.swap = true, false
}

// cuts is DoCut.
func (x *walker) cuts(which int) {
	w := x.w
	s, other := w.slots[which], w.slots[1-which]
	switch {
	case s.at == nowhere:
		x.broken("a dial is cut that is not under way")
	case w.up >= 0 || w.stopping:
	case s.kept && x.over(s):
		w.hangs = x.over(other) && other.swap && x.d.outage.hang != nil // at one instant either may come first
	case s.kept:
		x.must(x.over(other) && other.swap, "the dial that is kept is cut too early")
	case x.c.one && x.over(s):
		if !w.hangs {
			w.hangs, w.beside = true, 0
		}
	default:
		x.must(x.over(s) && other.kept && !s.swap, "a dial is cut without a reason")
	}
	w.slots[which] = slot{}
}

// waitsUntil is DoWait.
func (x *walker) waitsUntil(at time.Time) {
	w := x.w
	w.at = momentOf(at, -1)
	if w.at != never {
		x.must(w.at > 0, "it waits for a time that is past")
	}
	x.must(x.d.Attempts() == x.tries, "the number of tries")
	x.must(momentOf(x.d.outage.began, -x.c.oldest) == max(x.began, -x.c.oldest) || x.c.oldest == 0, "the beginning of the outage")
	x.must(!w.stopping, "it goes on after the end")
	x.must(momentOf(x.d.Due(), never) == w.next, "the time of the next dial")
	if w.up >= 0 {
		x.must(w.slots == [2]slot{}, "a dial is left beside a session")
		x.must(x.d.History() == backoff.History{}, "there is a history during a session")
	} else {
		x.must(x.alone() >= 0 != (w.next != never), "nobody dials, or two do")
	}
	want := w.next
	for _, s := range w.slots {
		if until := s.since + moment(x.c.limit(s.kept)); s.at == shakes && (want == never || until < want) {
			want = until
		}
	}
	x.must(w.at == want, "it waits for another time than that of the next dial, or of a handshake that hangs")
}
