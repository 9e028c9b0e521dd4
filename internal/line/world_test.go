package line

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/walk"
	"github.com/redial-go/redial/reconnect/backoff"
)

// world is what the walk visits: a Queue, the gate around it, its dials, and what was promised. The gate does
// what budget.Gate does, in the same order: after each event it admits dials until Admit returns nil, and it
// has one timer. A dial that waits may leave, and comes again at some time.
type world struct {
	m     frozen
	timer moment // when the gate calls Admit again; never: it is not set

	// What has happened so far promises this:
	order  [tickets]int8 // the dials that wait, the first one first
	tokens int8          // in halves
	down   bool
	window int8
	fails  int8   // failures that have counted since the host went down, up to mostWaits
	hold   moment // no dial may begin before
	probes pace
	dialed moment

	limit    int8   // longest hold by a RetryAfter, in units up to mostHold, or 0 before the first success
	refusals moment // when no refusal of a caller counts any more

	wrong string
}

// config is one kind of Queue.
type config struct {
	Options
	halves int8 // halves of a token that come in a unit; 0: there is no rate
	tired  bool // the policy of the probes gives up
	told   int8 // how long a server tells us to wait; default 3
	long   int8 // how long it tells us at most; default 5
}

// pause is how long the policy waits before a probe, after that many waits. The second wait is divided
// by the number of dials that wait; of the third they leave the least.
func (c *config) pause(n int8) int8 {
	if c.tired {
		return int8(time.Minute / unit)
	}
	return [mostWaits]int8{2, 6, 2}[min(n, mostWaits-1)]
}

// pacer is the policy of the probes.
type pacer struct{ c *config }

func (p pacer) Next(h backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: units(p.c.pause(int8(h.N)))}, !p.c.tired
}

// rules are the methods of Queue; a mistake replaces one.
type rules struct {
	join  func(*Queue, *Ticket)
	leave func(*Queue, *Ticket) bool
	admit func(*Queue, time.Time) (*Ticket, time.Time)
	done  func(*Queue, *Ticket, backoff.Verdict, time.Time) (down bool)
	idle  func(*Queue, time.Time) bool
}

var trueRules = rules{nil, (*Queue).Leave, (*Queue).Admit, (*Queue).Done, (*Queue).Idle}

// walker makes the steps of one config.
type walker struct {
	c    *config
	r    rules
	most int8 // Concurrent, or the largest number that makes a difference

	// Of the present step.
	w      *world
	q      *thawed
	places [tickets]place
	list   []walk.Step[world]
}

func newWalker(c config, r rules) *walker {
	c.Probe = pacer{&c}
	c.Rate, c.told, c.long = -1, cmp.Or(c.told, 3), cmp.Or(c.long, 5)
	if c.halves > 0 {
		c.Rate = float64(c.halves) / 2
	}
	q := New(c.Options, nil)
	return &walker{c: &c, r: r, most: windowOf(q, q.window)}
}

func (x *walker) first() world {
	w := world{
		timer: never, order: [tickets]int8{-1, -1, -1}, window: x.most, hold: never, probes: pace{from: never},
		dialed: never, refusals: never,
	}
	q := &thawed{Queue: New(x.c.Options, nil)}
	w.m, w.wrong = freeze(q, w.m.places)
	w.tokens = w.m.tokens
	return w
}

// add adds what happens at the present moment, and what the gate does then.
func (x *walker) add(event string, from world, happen func(w *world)) {
	w := from
	x.w, x.q, x.places = &w, w.m.thaw(x.c.Options), w.m.places
	happen(&w)
	x.settle()
	x.list = append(x.list, walk.Step[world]{Event: event, State: w})
}

func (x *walker) act(event string, from world, happen func(w *world)) {
	x.add(event, from, happen)
	x.list[len(x.list)-1].Free = true
}

func (x *walker) must(holds bool, wrong string) {
	if !holds && x.w.wrong == "" {
		x.w.wrong = wrong
	}
}

// steps returns all that can happen in w.
func (x *walker) steps(w world) []walk.Step[world] {
	x.list = nil
	if w.timer > -1 || w.timer == never {
		x.list = append(x.list, walk.Step[world]{Event: "tick", Free: true, State: w.later(x.c)})
	}
	if w.timer != never && w.timer <= 0 {
		x.act("timer", w, func(w *world) { w.timer = never })
	}
	if w.m.waiting == 0 && w.m.under == 0 && w.dialed == 0 {
		forgets := w
		forgets.dialed, forgets.m.dialed = forgotten, forgotten
		for range 120 {
			forgets = forgets.later(x.c)
		}
		x.add("hours pass", forgets, func(*world) {})
	}
	for i, p := range w.m.places {
		name := [tickets]string{"a: ", "b: ", "c: "}[i]
		switch p {
		case out:
			x.add(name+"joins", w, func(w *world) { x.join(i) })
		case waiting:
			x.add(name+"leaves", w, func(w *world) {
				x.must(x.r.leave(x.q.Queue, x.q.tickets[i]), "a dial leaves the line, and was not there")
				w.order = without(w.order, int8(i))
				x.places[i] = out
			})
		case dialing, probing:
			x.add(name+"leaves too late", w, func(*world) {
				x.must(!x.r.leave(x.q.Queue, x.q.tickets[i]), "a dial was admitted, and is in the line")
				x.done(i, backoff.Verdict{Class: backoff.ClassStop})
			})
			for _, v := range verdicts {
				if v.told {
					v.RetryAfter = units(x.c.told)
				}
				if v.long {
					v.RetryAfter = units(x.c.long)
				}
				x.add(name+v.name, w, func(*world) { x.done(i, v.Verdict) })
			}
		}
	}
	return x.list
}

// verdicts are how dials end. The server asks for a wait of one of the two lengths that the config has.
var verdicts = []struct {
	name string
	backoff.Verdict
	told, long bool
}{
	{"ok", backoff.Verdict{}, false, false},
	{"ok, and is told to wait", backoff.Verdict{}, true, false},
	{"fails", failure, false, false},
	{"fails, and is told to wait", backoff.Verdict{Class: backoff.ClassOverload}, true, false},
	{"fails, and is told to wait shortly", backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: unit}, false, false},
	{"fails, and is told to wait long", backoff.Verdict{Class: backoff.ClassOverload}, false, true},
	{"is refused", backoff.Verdict{Class: backoff.ClassSlow}, false, false},
	{"is refused, and told to wait", backoff.Verdict{Class: backoff.ClassRefresh}, true, false},
	{"is refused as a caller", backoff.Verdict{Class: backoff.ClassOverload, Caller: true}, false, true},
	{"is cancelled", backoff.Verdict{Class: backoff.ClassStop}, false, false},
}

// later returns w when a unit has passed.
func (w world) later(c *config) world {
	w.m.tick(c.Burst)
	w.timer, w.hold, w.probes = w.timer.later(-1), w.hold.later(0), w.probes.later(1)
	if w.hold == 0 {
		w.hold = never
	}
	w.tokens = min(w.tokens+c.halves, int8(2*c.Burst))
	if w.refusals = w.refusals.later(0); w.refusals == 0 {
		w.refusals = never
	}
	return w
}

// join puts a dial into the line. Its ticket is one that has waited for some time.
func (x *walker) join(i int) {
	t := x.q.Join(epoch.Add(-waitOf(i)))
	t.Value = i
	if x.q.tickets[i] = t; x.r.join != nil {
		x.r.join(x.q.Queue, t)
	}
	x.places[i] = waiting
	for n := range x.w.order {
		if x.w.order[n] < 0 {
			x.w.order[n] = int8(i)
			break
		}
	}
}

func without(order [tickets]int8, ticket int8) [tickets]int8 {
	left, n := [tickets]int8{-1, -1, -1}, 0
	for _, i := range order {
		if i != ticket {
			left[n] = i
			n++
		}
	}
	return left
}

// paused is how long a refusal of a caller counts.
const paused = 2

// done ends a dial that was admitted.
func (x *walker) done(i int, v backoff.Verdict) {
	w, probe := x.w, x.places[i] == probing
	x.places[i] = out
	w.dialed = 0
	told := moment(v.RetryAfter / unit)
	if v.Caller {
		told = 0
	}
	if told > 0 {
		if w.limit > 0 {
			told = min(told, moment(w.limit))
			w.limit = min(2*w.limit, mostHold)
		}
		w.hold = max(w.hold, told)
	}
	if v.Class == backoff.ClassOK {
		w.limit = int8(small.successHold / unit)
		if w.refusals = max(w.refusals, 0) - paused; w.refusals <= 0 {
			w.refusals = never
		}
		if end := moment(w.limit); w.hold > end {
			w.hold = end
			if w.down {
				w.probes = pace{0, min(w.probes.alone, w.limit), min(w.probes.least, w.limit)}
			}
		}
	}
	switch {
	case v.Caller:
		if w.down && w.hold == never {
			w.down = false
		}
		if w.refusals = max(w.refusals, 0) + paused; w.refusals > moment(small.refusalBurst)*paused {
			w.refusals = moment(small.refusalBurst+1) * paused
			w.window, w.hold = 1, max(w.hold, paused)
		}
	case v.Class == backoff.ClassStop:
	case v.Class == backoff.ClassRetry || v.Class == backoff.ClassOverload:
		switch {
		case !w.down || probe:
			if !w.down {
				w.fails = 0
			}
			alone := x.c.pause(w.fails)
			w.down, w.window, w.probes = true, 1, pace{told, alone, alone}
			if w.fails > 0 && told == 0 && !x.c.tired {
				w.probes.least = 1
			}
			w.fails = min(w.fails+1, mostWaits)
		case w.hold > w.probes.of(w.waiting()):
			w.probes = pace{w.hold, w.probes.alone, w.probes.alone}
		}
	default:
		if w.down && w.hold == never {
			w.down = false
		}
		if v.Class == backoff.ClassOK && !w.down {
			if w.window = min(w.window+1, x.most); w.window < x.most {
				w.window = min(w.window, tickets+1)
			}
		}
	}
	if !w.down {
		w.probes, w.fails = pace{from: never}, 0
	}
	if down := x.r.done(x.q.Queue, x.q.tickets[i], v, epoch); down != x.q.down {
		w.wrong = "Done reports another state of the host"
	}
}

// waiting is how many dials wait.
func (w *world) waiting() (n int8) {
	for _, i := range w.order {
		if i >= 0 {
			n++
		}
	}
	return n
}

// under is how many dials are under way.
func (x *walker) under() (n int8) {
	for _, p := range x.places {
		if p == dialing || p == probing {
			n++
		}
	}
	return n
}

// settle is what the gate does after each event, and checks all that can be seen of the Queue.
func (x *walker) settle() {
	w, q := x.w, x.q
	for n := 0; x.open(); n++ {
		if n == tickets {
			x.must(false, "more dials are admitted than wait")
			break
		}
	}
	if w.order[0] < 0 {
		w.timer = never // no dial waits for the timer
	}
	s := q.Status(epoch)
	x.must(s.Dialing == int(x.under()), "the permits are not those of the dials under way")
	x.must(s.Down == w.down, "the host is taken to be down, or up, and is not")
	x.must(windowOf(q.Queue, s.Limit) == w.window, "the limit on dials under way")
	x.must(s.Limit >= 1 && s.Limit <= q.o.Concurrent, "the limit is beyond its bounds")
	x.must(momentOf(s.Held, 0) == w.hold || w.hold == never && momentOf(s.Held, 0) <= 0, "the time that the server told us")
	longest := time.Duration(0)
	if w.order[0] >= 0 {
		longest = waitOf(int(w.order[0]))
	}
	x.must(s.Longest == longest, "the longest wait")
	idle := x.q.under == 0 && w.order[0] < 0 && w.hold == never && (!w.down || w.probes.of(0) == never) &&
		(w.dialed != 0 || !w.down && w.limit == 0 && w.refusals == never && w.window == x.most &&
			(x.c.halves == 0 || w.tokens == int8(2*x.c.Burst)))
	wrong := ""
	if w.m, wrong = freeze(q, x.places); wrong != "" {
		x.must(false, wrong)
	}
	x.must(w.m.maxHold == w.limit, "the longest hold")
	x.must(w.m.refusals == w.refusals, "the refusals of callers")
	x.must(x.r.idle(w.m.thaw(x.c.Options).Queue, epoch) == idle, "it is said to be idle and has something to remember, or the other way round")
	if w.order[0] < 0 || x.under() >= w.window {
		return
	}
	x.must(w.timer != never, "a dial is forgotten")
	x.must(w.m.order == w.order, "the order of the line")
}

// open admits one dial, if one may begin now. If not, it sets the timer.
func (x *walker) open() (admitted bool) {
	w, q := x.w, x.q
	before := q.Status(epoch)
	t, next := x.r.admit(q.Queue, epoch)
	due := x.due()
	switch {
	case t == nil && next.IsZero():
		x.must(due == never, "a dial is forgotten")
		return false
	case t == nil:
		at := momentOf(next, -1)
		x.must(at > 0, "the next dial is due, and is not admitted")
		x.must(at == due, "the time of the next dial")
		again := w.m // what follows is a look into the future
		again, _ = freeze(q, x.places)
		if one, _ := x.r.admit(again.thaw(x.c.Options).Queue, next); one == nil {
			x.must(false, "no dial is admitted at the time that was named")
		}
		if w.timer == never || at < w.timer {
			w.timer = at
		}
		return false
	}
	i := t.Value.(int)
	x.must(int8(i) == w.order[0], "a dial overtakes another")
	x.must(due == 0, "a dial is admitted too early, or beyond the limit")
	x.must(x.places[i] == waiting && t.next == nil, "a dial is admitted that is not in the line, or stays there")
	after := q.Status(epoch)
	x.must(after.Granted == before.Granted+1, "what is counted of a dial")
	x.must(t.Probe == w.down, "a dial is not said to be a probe, or is and is none")
	x.places[i] = dialing
	if w.down {
		x.places[i] = probing
		x.must(x.under() == 1, "two probes, or a probe beside a dial")
	}
	if x.c.halves > 0 {
		w.tokens -= 2
	}
	w.order = without(w.order, int8(i))
	return true
}

// due returns when the first in the line may begin: 0 for now, never if that does not depend on time.
func (x *walker) due() moment {
	w := x.w
	if w.order[0] < 0 || x.under() >= w.window {
		return never
	}
	at := max(w.hold, 0)
	if x.c.halves > 0 && w.tokens < 2 {
		at = max(at, moment((2-w.tokens+x.c.halves-1)/x.c.halves))
	}
	if w.down {
		at = max(at, w.probes.of(w.waiting()))
	}
	return at
}
