package schedule

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// unit is the step of the clock in a walk. Every limit and wait there is a number of units.
const unit = 30 * time.Second

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

// momentOf returns t as a moment, or earliest if t is before it: the code under test treats all times before
// earliest alike.
func momentOf(t time.Time, earliest moment) moment {
	if t.IsZero() {
		return never
	}
	return max(moment(inUnits(t.Sub(epoch))), earliest)
}

// later returns m when a unit has passed.
func (m moment) later(earliest moment) moment {
	if m == never {
		return never
	}
	return max(m-1, earliest)
}

func units(n int8) time.Duration { return time.Duration(n) * unit }

func inUnits(d time.Duration) int8 {
	if d%unit != 0 {
		panic(d.String() + " is not a number of units")
	}
	return int8(max(min(d/unit, 100), -100))
}

// frozen is a Dials as plain values. It has no History, because the next ask overwrites that.
type frozen struct {
	phase  phase
	gaveUp bool
	waited int8

	began     moment
	hang      moment // since when handshakes hang; never: none does
	full      bool
	beside    int8
	told      bool
	class     backoff.Class
	renew     bool
	refused   bool
	hung      bool
	waits     int8
	overloads int8
	slows     int8

	searching bool
	due       moment
	hold      moment
	wait      int8
	handshake int8
	swap      bool
	ifFull    bool
	dials     [2]frozenDial
	kept      int8
	kicked    bool
	cutBy     bool
}

type frozenDial struct {
	state  dialState
	swap   bool
	ifFull bool
	fresh  bool
	late   bool
	since  moment
	limit  int8
}

// baseTries is how many tries each state has made. The world checks how many a step adds.
const baseTries = 7

// These are the numbers beyond which a walk does not count.
const (
	mostBeside = 2
	mostSlows  = 1  // the second wait of a walker's SlowWait is the longest
	mostPast   = -3 // units since a handshake began, beyond its limit
)

// earliest is the earliest beginning of a dial that counts.
func earliest(s dialState, limit int8) moment {
	if s == connecting {
		return -1 // it is late
	}
	return mostPast - max(moment(limit), 0)
}

// thaw returns the Dials.
func (f *frozen) thaw(o *DialOptions) *Dials {
	d := &Dials{
		o: o, r: rand.New(lowest{}), phase: f.phase, gaveUp: f.gaveUp, waited: units(f.waited),
		outage: Outage{
			began: f.began.time(), waits: int32(f.waits), overloads: int32(f.overloads), slows: int32(f.slows), tries: baseTries, class: f.class,
			renew: f.renew, refused: f.refused, hung: f.hung,
		},
	}
	if f.hang != never {
		d.outage.hang = &hang{began: f.hang.time(), full: f.full, beside: int(f.beside)}
	}
	if f.told {
		d.outage.toldSince = epoch.Add(-unit)
	}
	if !f.searching {
		return d
	}
	d.search = &search{
		due: f.due.time(), hold: f.hold.time(), step: backoff.Step{Wait: units(f.wait), Handshake: units(f.handshake), Swap: f.swap, SwapIfFull: f.ifFull},
		kept: f.kept, kicked: f.kicked, cutBy: f.cutBy,
	}
	for i, x := range f.dials {
		d.dials[i] = dial{x.state, x.swap, x.ifFull, x.fresh, x.late, x.since.time(), units(x.limit)}
	}
	return d
}

// freeze returns d as plain values.
func freeze(d *Dials, c *config) frozen {
	f := frozen{
		phase: d.phase, gaveUp: d.gaveUp, waited: inUnits(d.waited),
		began: min(momentOf(d.outage.began, -c.oldest), c.oldest), hang: never, told: !d.outage.toldSince.IsZero(), class: d.outage.class,
		renew: d.outage.renew, refused: d.outage.refused, hung: d.outage.hung,
		waits: int8(min(d.outage.waits, int32(c.giveUp))), overloads: int8(min(d.outage.overloads, int32(c.giveUp))),
		slows: int8(min(d.outage.slows, mostSlows)),
	}
	if h := d.outage.hang; h != nil {
		f.hang, f.beside = momentOf(h.began, -1), int8(min(h.beside, mostBeside))
		if c.ifFull {
			f.full = h.full
		}
	}
	if d.search == nil {
		return f
	}
	f.searching = true
	f.due, f.hold = momentOf(d.due, -1), momentOf(d.hold, 0)
	if f.hold == 0 {
		f.hold = never // a hold that is over is as good as none
	}
	f.wait, f.handshake, f.swap, f.ifFull = inUnits(d.step.Wait), inUnits(d.step.Handshake), d.step.Swap, d.step.SwapIfFull
	f.kept, f.kicked, f.cutBy = d.kept, d.kicked, d.cutBy
	for i, x := range d.dials {
		if !c.ifFull { // what only SwapIfFull looks at does not count
			x.late = false
			if x.state == connecting {
				x.since = time.Time{}
			}
		}
		if x.state != free {
			f.dials[i] = frozenDial{x.state, x.swap, x.ifFull, x.fresh, x.late, momentOf(x.since, earliest(x.state, inUnits(x.limit))), inUnits(x.limit)}
		}
	}
	return f
}

// tick lets a unit pass.
func (f *frozen) tick(c *config) {
	f.began, f.hang = f.began.later(-c.oldest), f.hang.later(-1)
	f.due = f.due.later(-1)
	if f.hold = f.hold.later(0); f.hold == 0 {
		f.hold = never
	}
	for i := range f.dials {
		x := &f.dials[i]
		if x.state != free {
			x.since = x.since.later(earliest(x.state, x.limit))
		}
	}
}

// lowest draws the least number of each range.
type lowest struct{}

func (lowest) Uint64() uint64 { return 0 }
