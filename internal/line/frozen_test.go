package line

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// unit is the step of the clock in a walk. Every wait there is a number of units.
const unit = time.Second

// epoch is the present of every state.
var epoch = time.Unix(1_000_000, 0)

// moment is a time in units from the present on.
type moment int8

// never is the zero time.
const never moment = -128

func (m moment) time() time.Time {
	if m == never {
		return time.Time{}
	}
	return epoch.Add(units(int8(m)))
}

func units(n int8) time.Duration { return time.Duration(n) * unit }

// slack is the nanosecond by which a Queue waits longer than its rate says, and one for rounding.
const slack = 2

// momentOf returns t as a moment, or earliest if t is before it: the code under test treats all times before
// earliest alike.
func momentOf(t time.Time, earliest moment) moment {
	if t.IsZero() {
		return never
	}
	d := max(t.Sub(epoch), units(int8(earliest)))
	if off := d - d.Round(unit); off.Abs() > slack {
		panic(d.String() + " is not a number of units")
	}
	return moment(min(d.Round(unit)/unit, 120))
}

// later returns m when a unit has passed.
func (m moment) later(earliest moment) moment {
	if m == never {
		return never
	}
	return max(m-1, earliest)
}

// tickets is how many dials there are in a walk.
const tickets = 3

// place is where a dial is.
type place uint8

const (
	out     place = iota
	waiting       // in the line
	dialing       // admitted
	probing       // admitted as a probe
)

// frozen is a Queue, and the tickets of its dials, as plain values.
type frozen struct {
	places  [tickets]place
	order   [tickets]int8 // of those that wait, the first one first; -1: no more
	waiting int8
	tokens  int8 // in halves
	filled  moment
	under   int8
	window  int8
	down    bool
	waits   int8 // of the last outage, up to mostWaits
	hold    moment
	probes  pace
	dialed  moment // the last Done: never, 0 for lately, or forgotten

	maxHold  int8   // up to mostHold
	refusals moment // when none counts any more
}

// pace says when the next probe may begin: the wait depends on how many dials wait.
type pace struct {
	from  moment // never: the wait is over, however few wait
	alone int8   // for one dial
	least int8
}

// of returns when a probe may begin while n dials wait: never for a wait that is over.
func (p pace) of(n int8) moment {
	if p.from == never {
		return never
	}
	at := p.from + moment(min(max(p.alone/max(n, 1), p.least), p.alone))
	if at <= 0 {
		return never
	}
	return at
}

// later returns p when n units have passed.
func (p pace) later(n moment) pace {
	if p.from == never || p.from-n <= -moment(p.alone) {
		return pace{never, p.alone, p.least}
	}
	p.from -= n
	return p
}

const (
	mostWaits        = 3
	mostHold         = 8   // units, no shorter than any RetryAfter of a walk
	noLimit          = 100 // of dials under way
	forgotten moment = -1  // longer ago than a Queue remembers
)

// thawed is a Queue and its tickets.
type thawed struct {
	*Queue
	tickets [tickets]*Ticket
}

// waitOf is how long a ticket has waited in every state, so that a walk sees what a Queue makes of it.
func waitOf(ticket int) time.Duration { return units(int8(ticket + 1)) }

// small are the limits of a Queue in a walk.
var small = limits{refusalBurst: 1, refusalPause: paused * unit, successHold: 2 * unit}

// thaw returns the Queue.
func (f *frozen) thaw(o Options) *thawed {
	q := &thawed{Queue: New(o, rand.New(lowest{}))}
	q.limits = small
	for i := range q.tickets {
		q.tickets[i] = &Ticket{Value: i, joined: epoch.Add(-waitOf(i)), Probe: f.places[i] == probing}
	}
	for n, i := range f.order {
		if i < 0 {
			break
		}
		t, next := q.tickets[i], q.tickets[f.order[0]]
		if n == 0 {
			q.first, t.prev, t.next = t, t, t
			continue
		}
		t.prev, t.next = next.prev, next
		t.prev.next, next.prev = t, t
	}
	q.waiting, q.under, q.window, q.down = int(f.waiting), int(f.under), int(f.window), f.down
	if f.window == noLimit {
		q.window = unlimited
	}
	q.tokens, q.filled = float64(f.tokens)/2, f.filled.time()
	q.hold, q.failed, q.alone, q.least = f.hold.time(), f.probes.from.time(), units(f.probes.alone), units(f.probes.least)
	if q.lastDone = f.dialed.time(); f.dialed == forgotten {
		q.lastDone = epoch.Add(-stale)
	}
	q.maxHold, q.refusals = units(f.maxHold), f.refusals.time()
	for range f.waits {
		q.outage.Next(o.Probe, failure, epoch, q.rand)
	}
	return q
}

// windowOf returns how many dials may be under way: noLimit, or up to as many as make a difference.
func windowOf(q *Queue, n int) int8 {
	if n == unlimited {
		return noLimit
	}
	return int8(min(n, tickets+1))
}

// lowest draws the lowest number of each range, so that all waits are numbers of units.
type lowest struct{}

func (lowest) Uint64() uint64 { return 0 }

// failure is a verdict that counts against the host.
var failure = backoff.Verdict{Class: backoff.ClassRetry}

// freeze returns q as plain values, and what is wrong with its ring.
func freeze(q *thawed, places [tickets]place) (f frozen, wrong string) {
	f = frozen{
		places: places, order: [tickets]int8{-1, -1, -1}, waiting: int8(q.waiting), tokens: int8(math.Round(q.tokens * 2)),
		filled: momentOf(q.filled, -2*moment(min(q.o.Burst, 10))), under: int8(q.under), window: windowOf(q.Queue, q.window), down: q.down,
		hold: momentOf(q.hold, 0), probes: pace{momentOf(q.failed, -120), int8(q.alone / unit), int8(q.least / unit)},
		dialed: momentOf(q.lastDone, forgotten), maxHold: int8(min(q.maxHold/unit, mostHold)),
		refusals: momentOf(q.refusals, 0),
	}
	if f.refusals == 0 {
		f.refusals = never
	}
	if math.Abs(q.tokens*2-float64(f.tokens)) > 1e-6 {
		panic("the tokens are not a number of halves")
	}
	f.probes = f.probes.later(0)
	if !f.down { // a Queue looks at the pace only while the host is down
		f.probes = pace{from: never}
	}
	if h := q.outage.History(); h.Verdict.Class != backoff.ClassOK {
		f.waits = min(int8(h.N+1), mostWaits)
	}
	if f.hold == 0 {
		f.hold = never // a time that is over is as good as none
	}
	t, n := q.first, 0
	for ; t != nil && n < tickets; n++ {
		if t.next == nil || t.next.prev != t {
			return f, "the ring is broken"
		}
		f.order[n] = int8(t.Value.(int))
		if t = t.next; t == q.first {
			n++
			break
		}
	}
	if n != q.waiting || t != q.first {
		return f, "the ring has not those that wait"
	}
	return f, ""
}

// tick lets a unit pass.
func (f *frozen) tick(burst int) {
	f.filled = f.filled.later(-2 * moment(min(burst, 10)))
	f.probes = f.probes.later(1)
	if f.refusals = f.refusals.later(0); f.refusals == 0 {
		f.refusals = never
	}
	if f.hold = f.hold.later(0); f.hold == 0 {
		f.hold = never
	}
}
