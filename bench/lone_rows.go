package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/fleet"
)

// circumstance is a row of the table of lone clients: what happens to one, and what is
// shown of it.
type circumstance struct {
	name   string
	wanted string // median / p95 in s, as far as there is a wish
	herd   fleet.Herd
	show   func(o *alone) string
}

// alone is what came of the runs of a circumstance with one client.
type alone struct {
	late, away []time.Duration // of all clients of all runs, sorted
	up, rate   float64         // means: share of the time up, and dials per second
}

// side is how many clients share a run. They do not meet, because the server has room for
// all at once: each is a lone client.
const side = 25

// run lets lone clients of a kind meet the circumstance, side of them for each seed.
func (r *circumstance) run(ctx context.Context, c fleet.Client, seeds int) (*alone, error) {
	h := r.herd
	h.Client = c
	h.N = cmp.Or(h.N, side)
	h.Server.Capacity, h.Server.Answers = cmp.Or(h.Server.Capacity, 1e9), 1e9
	var o alone
	for seed := range seeds {
		h.Seed = uint64(1 + seed)
		one, err := fleet.Run(ctx, h)
		if err != nil {
			return nil, err
		}
		o.late = append(o.late, one.Late...)
		o.away = append(o.away, one.Away...)
		o.up += one.UpShare / float64(seeds)
		o.rate += one.DialRate / float64(seeds)
	}
	never := func(x, y time.Duration) int { return cmp.Compare(uint64(x), uint64(y)) } // is the greatest
	slices.SortFunc(o.late, never)
	slices.SortFunc(o.away, never)
	return &o, nil
}

// figure is a time in s with as many digits as say something.
func figure(d time.Duration) string {
	switch s := d.Seconds(); {
	case d == fleet.Never:
		return "never"
	case s < 9.95:
		return fmt.Sprintf("%.1f", s)
	default:
		return fmt.Sprintf("%.0f", s)
	}
}

// quantiles shows some of times that are sorted.
func quantiles(times []time.Duration, shares ...float64) (text string) {
	for i, share := range shares {
		if i > 0 {
			text += " / "
		}
		text += figure(fleet.Quantile(times, share))
	}
	return text
}

func howLate(o *alone) string { return quantiles(o.late, 0.5, 0.95) }

func howOften(o *alone) string { return fmt.Sprintf("%.0f %%, %.2f/s", 100*o.up, o.rate) }

// after is a circumstance in which the server is back after some spells.
func after(name, wanted string, spells ...fleet.Spell) circumstance {
	watch := 5 * time.Hour
	for _, s := range spells {
		watch += s.Length + s.Spread
	}
	return circumstance{name, wanted, fleet.Herd{Outage: fleet.Outage{Spells: spells}, Watch: watch}, howLate}
}

// hanging is a circumstance in which some of several servers never answer.
func hanging(name, wanted string, servers fleet.Server) circumstance {
	h := fleet.Herd{Outage: fleet.Outage{Spells: []fleet.Spell{{Down: fleet.Refused}}}, Server: servers, Watch: 24 * time.Hour}
	return circumstance{name, wanted, h, howLate}
}

// flapping is up and away in turn, fifty times.
func flapping(name, wanted string, up, away time.Duration) circumstance {
	var spells []fleet.Spell
	for range 50 {
		spells = append(spells, fleet.Spell{Down: fleet.Refused, Length: away}, fleet.Spell{Down: fleet.Up, Length: up})
	}
	r := after(name, wanted, append(spells, fleet.Spell{Down: fleet.Refused})...)
	r.show = howOften
	return r
}

// killed is a server that dies five times and is back at once.
func killed() circumstance {
	spells := []fleet.Spell{{Down: fleet.Refused}}
	for range 4 {
		spells = append(spells, fleet.Spell{Down: fleet.Up, Length: 2 * time.Second, Spread: 3 * time.Second}, fleet.Spell{Down: fleet.Refused})
	}
	r := after("killed five times, 2 to 5 s of service between: min / median / max", "0.5 / 1.5 / 2.5", spells...)
	r.show = func(o *alone) string { return quantiles(o.late, 0, 0.5, 1) }
	return r
}

// rolling is a restart of ten servers, one after the other: a small herd.
func rolling() circumstance {
	h := fleet.Herd{
		N:      1000,
		Outage: fleet.Outage{Length: 2 * time.Second},
		Server: fleet.Server{Capacity: 500, Queue: fleet.Drop, Count: 10, Rolling: 10 * time.Second},
		Watch:  time.Hour,
	}
	return circumstance{"ten servers restarted 10 s apart, each away for 2 s: mean / p99 / most away", "3.5 / 11 / 18", h, func(o *alone) string {
		sum := time.Duration(0)
		for _, d := range o.away {
			sum += d
		}
		return figure(sum/time.Duration(max(len(o.away), 1))) + " / " + quantiles(o.away, 0.99, 1)
	}}
}

// circumstances are the rows of the table.
func circumstances() []circumstance {
	const second, hour = time.Second, time.Hour
	spell := func(d fleet.Down, length time.Duration) fleet.Spell { return fleet.Spell{Down: d, Length: length} }
	within := func(d fleet.Down, length, spread time.Duration) fleet.Spell {
		return fleet.Spell{Down: d, Length: length, Spread: spread}
	}
	half, most := fleet.Server{Count: 10, Hung: 5}, fleet.Server{Count: 9, Hung: 6}
	halfApart, mostApart, family := half, most, fleet.Server{Count: 2, Hung: 1, Apart: true, First: true}
	halfApart.Apart, mostApart.Apart = true, true
	rows := []circumstance{after("refused for 1 s", "0.5 / 1.0", spell(fleet.Refused, second))}
	for _, r := range []struct {
		length time.Duration
		wanted string
	}{{5 * second, "6 / 15"}, {10 * second, "12 / 20"}, {20 * second, "12 / 20"}, {60 * second, "6 / 12"}, {300 * second, "7 / 15"}, {hour, "90 / 160"}} {
		rows = append(rows, after(fmt.Sprintf("hung for %v, places lost", r.length), r.wanted, spell(fleet.Swallowed, r.length)))
	}
	return append(rows,
		after("hung for 1m0s, places kept", "0", spell(fleet.Stopped, 60*second)),
		after("503 for 5 min, then hung for 20 s", "8 / 18", spell(fleet.Unavailable, 300*second), spell(fleet.Swallowed, 20*second)),
		after("503 for 1 h, then hung for 60 s", "8 / 15", spell(fleet.Unavailable, hour), spell(fleet.Swallowed, 60*second)),
		after("silent for 5 min, then hung for 20 s", "8 / 18", spell(fleet.Silent, 300*second), spell(fleet.Swallowed, 20*second)),
		after("silent for 1 h, then hung for 60 s", "8 / 15", spell(fleet.Silent, hour), spell(fleet.Swallowed, 60*second)),
		after("refused for 1 to 60 min", "3.8 / 8.5", within(fleet.Refused, 60*second, 59*60*second)),
		after("503 for a minute", "6 / 14", within(fleet.Unavailable, 60*second, 10*second)),
		after("503 for an hour", "6 / 14", within(fleet.Unavailable, hour, 60*second)),
		after("black hole for 5 min", "5 / 15", within(fleet.Silent, 300*second, 30*second)),
		after("black hole for an hour", "5 / 15", within(fleet.Silent, hour, 30*second)),
		flapping("50 times 3 s up and 3 s away: time up, dials", ">= 35 %, <= 1/s", 3*second, 3*second),
		flapping("50 times 12 s up and 3 s away", ">= 74 %", 12*second, 3*second),
		killed(),
		rolling(),
		hanging("half of the backends hang", "p95 45", half),
		hanging("two thirds of the backends hang", "p95 75", most),
		hanging("half of them, addresses known", "p95 30", halfApart),
		hanging("two thirds of them, addresses known", "p95 60", mostApart),
		hanging("of two addresses the first hangs", "p95 10", family),
	)
}
