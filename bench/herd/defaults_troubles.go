package herd

import (
	"cmp"
	"fmt"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lone"
	"github.com/redial-go/redial/bench/internal/table"
)

// troublesTable compares all clients in herds that meet more than one simple outage. A client without a limit of its
// own on a dial has in each cell the limit that is best there.
func troublesTable(m *tableMaker) table.Table {
	const n, second = 10_000, time.Second
	return grid(m, "client, N = 10,000", clients(), []column{
		m.once("hung for 60 s, places lost, then a backlog", sameHerd(at(n, fleet.Drop, fleet.Swallowed, 60*second))),
		m.once("then 503", sameHerd(at(n, fleet.Busy, fleet.Swallowed, 60*second))),
		m.once("cold caches", sameHerd(cold(n))),
		m.once("half notice 30 s late", func(c fleet.Client) fleet.Herd { return late(n, fleet.Drop, c) }),
		m.once("half are far", func(c fleet.Client) fleet.Herd { return far(n, fleet.Drop, c) }),
		{"30 % are naive: 99 % of the others", func(c fleet.Client) string { return m.among(n, 0.3, fleet.Drop, c) }},
		m.once("refused for 600 s, then booked Retry-After", sameHerd(booked(n, 600*second))),
		m.once("restart, two of four servers hang", sameHerd(halfHung(n, fleet.Drop, 0))),
		{"ten times 3 s up and 3 s away: time up", func(c fleet.Client) string { return m.flapping(n, c) }},
		{"rolling restart of 50,000: mean / p99 / most away, s", func(c fleet.Client) string {
			return m.rolling(50_000, capacity, c)
		}},
	}...)
}

// herdFunc returns the herd of a client.
type herdFunc func(fleet.Client) fleet.Herd

// sameHerd returns a herdFunc that returns h with its client set.
func sameHerd(h fleet.Herd) herdFunc {
	return func(c fleet.Client) fleet.Herd {
		h.Client = c
		return h
	}
}

// best makes a single run for each of c's Lendings, and returns the result that compare sorts first. It returns nil if
// a run fails or its herd is too large.
func (m *tableMaker) best(c fleet.Client, herd herdFunc, compare func(a, b *fleet.Result) int) (best *fleet.Result) {
	for i, l := range c.Lendings() {
		r := m.one(herd(l))
		if r == nil {
			return nil
		}
		if i == 0 || compare(r, best) < 0 {
			best = r
		}
	}
	return best
}

// once is a column with t99 over the ideal of a single run.
func (m *tableMaker) once(title string, herd herdFunc) column {
	return column{title, func(c fleet.Client) string { return m.ratioOfOne(herd, c) }}
}

// ratioOfOne is t99 over the ideal of a single run.
func (m *tableMaker) ratioOfOne(herd herdFunc, c fleet.Client) string {
	if m.err != nil || herd(c).N > m.largest {
		return "-"
	}
	seeded := func(c fleet.Client) fleet.Herd {
		h := herd(c)
		h.Seed = 1
		return h
	}
	all, _, err := fleet.Soonest(m.ctx, c, seeded, 1, 1, nil)
	if m.err = err; err != nil {
		return "-"
	}
	r := all[0]
	if r.T99 == fleet.Never {
		return "never"
	}
	return fmt.Sprintf("%.2f", r.T99.Seconds()/r.Ideal.Seconds())
}

// one is a single run, nil if it failed or the herd is too large.
func (m *tableMaker) one(h fleet.Herd) *fleet.Result {
	if m.err != nil || h.N > m.largest {
		return nil
	}
	h.Seed = 1
	r, err := fleet.Run(m.ctx, h)
	m.err = err
	return r
}

// cold is a herd before a server with cold caches: 2 to 100 % of its capacity in a minute.
func cold(n int) fleet.Herd {
	h := at(n, fleet.Drop, fleet.Refused, 5*time.Second)
	h.Server.Ramp = time.Minute
	return h
}

// late is a herd of which half notice the loss 30 s late.
func late(n int, q fleet.Queue, c fleet.Client) fleet.Herd {
	h := at(n, q, fleet.Refused, 0)
	h.Groups = []fleet.Group{{Client: c, Share: 0.5}, {Client: c, Share: 0.5, Late: 30 * time.Second}}
	return h
}

// far is a herd of which half are 200 ms away, there and back.
func far(n int, q fleet.Queue, c fleet.Client) fleet.Herd {
	h := at(n, q, fleet.Refused, 5*time.Second)
	h.Groups = []fleet.Group{{Client: c, Share: 0.5}, {Client: c, Share: 0.5, RTT: 200 * time.Millisecond}}
	return h
}

// booked is a herd whose 503s tell each client a time of its own.
func booked(n int, away time.Duration) fleet.Herd {
	h := at(n, fleet.Busy, fleet.Refused, away)
	h.Server.Booked = true
	h.Watch = away + max(time.Hour, h.Watch-away)
	return h
}

// flapping is the share of the time that clients of a server are up that is up for 3 s and
// away for 3 s, ten times, and can take all of them in 2 s.
func (m *tableMaker) flapping(n int, c fleet.Client) string {
	h := at(n, fleet.Drop, fleet.Refused, 0)
	h.Server.Capacity = float64(n) / 2
	h.Watch = 5 * time.Minute
	for range 10 {
		h.Outage.Spells = append(h.Outage.Spells, fleet.Spell{Down: fleet.Refused, Length: 3 * time.Second}, fleet.Spell{Down: fleet.Up, Length: 3 * time.Second})
	}
	h.Outage.Spells = append(h.Outage.Spells, fleet.Spell{Down: fleet.Refused})
	byUpShare := func(a, b *fleet.Result) int { return cmp.Compare(b.UpShare, a.UpShare) }
	r := m.best(c, sameHerd(h), byUpShare)
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*r.UpShare)
}

// rolling is for how long clients of ten servers are away, each with a capacity of its own,
// that are restarted 30 s apart and away for 5 s; and the handshakes in vain per client.
func (m *tableMaker) rolling(n int, each float64, c fleet.Client) string {
	h := at(n, fleet.Drop, fleet.Refused, 5*time.Second)
	h.Server.Count, h.Server.Rolling, h.Server.Capacity = 10, 30*time.Second, each
	h.Watch = 30 * time.Minute
	byMeanAway := func(a, b *fleet.Result) int {
		return fleet.CompareTimes(fleet.Mean(a.Away), fleet.Mean(b.Away))
	}
	r := m.best(c, sameHerd(h), byMeanAway)
	if r == nil {
		return "-"
	}
	return lone.HowLongAway(r.Away) + inVain(r.Wasted)
}
