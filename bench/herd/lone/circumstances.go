package lone

import (
	"fmt"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// After returns a circumstance in which the server is back after some spells.
func After(name, wanted string, spells ...fleet.Spell) Circumstance {
	watch := 5 * time.Hour
	for _, s := range spells {
		watch += s.Length + s.Spread
	}
	return Circumstance{name, wanted, fleet.Herd{Outage: fleet.Outage{Spells: spells}, Watch: watch}, HowLate}
}

// hanging is a circumstance in which some of several servers never answer.
func hanging(name, wanted string, servers fleet.Server) Circumstance {
	h := fleet.Herd{Outage: fleet.Outage{Spells: []fleet.Spell{{Down: fleet.Refused}}}, Server: servers, Watch: 24 * time.Hour}
	return Circumstance{name, wanted, h, HowLate}
}

// flapping is up and away in turn, fifty times.
func flapping(name, wanted string, up, away time.Duration) Circumstance {
	var spells []fleet.Spell
	for range 50 {
		spells = append(spells, fleet.Spell{Down: fleet.Refused, Length: away}, fleet.Spell{Down: fleet.Up, Length: up})
	}
	r := After(name, wanted, append(spells, fleet.Spell{Down: fleet.Refused})...)
	r.Show = howOften
	return r
}

// dropping is a server that is always there, and drops each session soon.
func dropping(name, wanted string, ready time.Duration) Circumstance {
	const while = 20 * time.Minute
	r := After(name, wanted, fleet.Spell{Down: fleet.Refused}, fleet.Spell{Down: fleet.Up, Length: while}, fleet.Spell{Down: fleet.Refused})
	r.Herd.Server.Ends, r.Herd.Watch = ready, while+time.Minute
	r.Show = func(o *Result) string { return fmt.Sprintf("%.2f/s", o.Rate) }
	return r
}

// denying is a server that refuses each dial for a day.
func denying() Circumstance {
	const day = 24 * time.Hour
	r := After("401 for a day: dials", "<= 760 a day", fleet.Spell{Down: fleet.Denied, Length: day})
	r.Herd.N = 1 // because some policies dial each second
	r.Show = func(o *Result) string { return fmt.Sprintf("%.0f a day", o.Rate*day.Seconds()) }
	return r
}

// killed is a server that dies five times and is back at once.
func killed() Circumstance {
	spells := []fleet.Spell{{Down: fleet.Refused}}
	for range 4 {
		spells = append(spells, fleet.Spell{Down: fleet.Up, Length: 2 * time.Second, Spread: 3 * time.Second}, fleet.Spell{Down: fleet.Refused})
	}
	r := After("killed five times, 2 to 5 s of service between: min / median / max", "0.5 / 1.5 / 5", spells...)
	r.Show = func(o *Result) string { return Quantiles(o.Late, 0, 0.5, 1) }
	return r
}

// rolling is a restart of ten servers, one after the other: a small herd.
func rolling() Circumstance {
	h := fleet.Herd{
		N:      1000,
		Outage: fleet.Outage{Length: 2 * time.Second},
		Server: fleet.Server{Capacity: 500, Queue: fleet.Drop, Count: 10, Rolling: 10 * time.Second},
		Watch:  time.Hour,
	}
	return Circumstance{"ten servers restarted 10 s apart, each away for 2 s: mean / p99 / most away", "3.5 / 11 / 18", h, func(o *Result) string { return HowLongAway(o.Away) }}
}

// slow is a well server that needs 25 s for each handshake, however many are under way: each dial meets one of sixty that
// do one at a time.
func slow() Circumstance {
	r := After("each handshake takes 25 s, and the server is well", "34", fleet.Spell{Down: fleet.Refused})
	r.Herd.N, r.Herd.Server = 1, fleet.Server{Count: 60, Capacity: 1.0 / 25}
	return r
}

// Circumstances returns the rows of the table.
func Circumstances() []Circumstance {
	const second, hour = time.Second, time.Hour
	spell := func(d fleet.Down, length time.Duration) fleet.Spell { return fleet.Spell{Down: d, Length: length} }
	within := func(d fleet.Down, length, spread time.Duration) fleet.Spell {
		return fleet.Spell{Down: d, Length: length, Spread: spread}
	}
	half, most := fleet.Server{Count: 10, Hung: 5}, fleet.Server{Count: 9, Hung: 6}
	halfApart, mostApart, family := half, most, fleet.Server{Count: 2, Hung: 1, Apart: true, First: true}
	halfApart.Apart, mostApart.Apart = true, true
	rows := []Circumstance{After("refused for 1 s", "0.5 / 1.0", spell(fleet.Refused, second))}
	for _, r := range []struct {
		length time.Duration
		wanted string
	}{{5 * second, "6 / 15"}, {10 * second, "12 / 20"}, {20 * second, "12 / 20"}, {60 * second, "6 / 12"}, {300 * second, "7 / 15"}, {hour, "90 / 160"}} {
		rows = append(rows, After(fmt.Sprintf("hung for %v, places lost", r.length), r.wanted, spell(fleet.Swallowed, r.length)))
	}
	return append(rows,
		After("hung for 1m0s, places kept", "0", spell(fleet.Stopped, 60*second)),
		After("503 for 5 min, then hung for 20 s", "8 / 18", spell(fleet.Unavailable, 300*second), spell(fleet.Swallowed, 20*second)),
		After("503 for 1 h, then hung for 60 s", "8 / 15", spell(fleet.Unavailable, hour), spell(fleet.Swallowed, 60*second)),
		After("silent for 5 min, then hung for 20 s", "8 / 18", spell(fleet.Silent, 300*second), spell(fleet.Swallowed, 20*second)),
		After("silent for 1 h, then hung for 60 s", "8 / 15", spell(fleet.Silent, hour), spell(fleet.Swallowed, 60*second)),
		After("refused for 1 to 60 min", "3.8 / 8.5", within(fleet.Refused, 60*second, 59*60*second)),
		After("503 for a minute", "6 / 14", within(fleet.Unavailable, 60*second, 10*second)),
		After("503 for an hour", "6 / 14", within(fleet.Unavailable, hour, 60*second)),
		After("401 for 30 s", "12 / 20", spell(fleet.Denied, 30*second)),
		After("401 for an hour", "70 / 150", spell(fleet.Denied, hour)),
		denying(),
		After("no such host for 30 s", "12 / 20", spell(fleet.Nameless, 30*second)),
		After("black hole for 5 min", "5 / 15", within(fleet.Silent, 300*second, 30*second)),
		After("black hole for an hour", "5 / 15", within(fleet.Silent, hour, 30*second)),
		flapping("50 times 3 s up and 3 s away: time up, dials", ">= 35 %, <= 1/s", 3*second, 3*second),
		flapping("50 times 12 s up and 3 s away", ">= 74 %", 12*second, 3*second),
		dropping("dropped 0.5 s after each dial, for 20 min: dials", "<= 0.15/s", second/2),
		dropping("dropped 1 s after each", "<= 0.15/s", second),
		dropping("dropped 3 s after each", "<= 0.27/s", 3*second),
		slow(),
		killed(),
		rolling(),
		hanging("half of the backends hang", "p95 45", half),
		hanging("two thirds of the backends hang", "p95 75", most),
		hanging("half of them, addresses known", "p95 30", halfApart),
		hanging("two thirds of them, addresses known", "p95 60", mostApart),
		hanging("of two addresses the first hangs", "p95 10", family),
	)
}
