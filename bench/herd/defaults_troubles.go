package herd

import (
	"fmt"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lone"
	"github.com/redial-go/redial/bench/internal/table"
)

// troublesTable compares all clients in herds that meet more than one simple outage.
func troublesTable(m *tableMaker) table.Table {
	const n, second = 10_000, time.Second
	return grid("client, N = 10,000", clients(), []column{
		{"hung for 60 s, places lost, then a backlog", func(c fleet.Client) string { return m.once(at(n, fleet.Drop, fleet.Swallowed, 60*second), c) }},
		{"then 503", func(c fleet.Client) string { return m.once(at(n, fleet.Busy, fleet.Swallowed, 60*second), c) }},
		{"cold caches", func(c fleet.Client) string { return m.once(cold(n), c) }},
		{"half notice 30 s late", func(c fleet.Client) string { return m.once(late(n, fleet.Drop, c), c) }},
		{"half are far", func(c fleet.Client) string { return m.once(far(n, fleet.Drop, c), c) }},
		{"30 % are naive: 99 % of the others", func(c fleet.Client) string { return m.among(n, 0.3, fleet.Drop, c) }},
		{"refused for 600 s, then booked Retry-After", func(c fleet.Client) string { return m.once(booked(n, 600*second), c) }},
		{"restart, two of four servers hang", func(c fleet.Client) string { return m.once(halfHung(n, fleet.Drop, 0), c) }},
		{"ten times 3 s up and 3 s away: time up", func(c fleet.Client) string { return m.flapping(n, c) }},
		{"rolling restart of 50,000: mean / p99 / most away, s", func(c fleet.Client) string { return m.rolling(50_000, capacity, c) }},
	}...)
}

// once is t99 over the ideal of a single run.
func (m *tableMaker) once(h fleet.Herd, c fleet.Client) string {
	h.Client = c
	r := m.one(h)
	switch {
	case r == nil:
		return "-"
	case r.T99 == fleet.Never:
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
	h.Client, h.Watch = c, 5*time.Minute
	for range 10 {
		h.Outage.Spells = append(h.Outage.Spells, fleet.Spell{Down: fleet.Refused, Length: 3 * time.Second}, fleet.Spell{Down: fleet.Up, Length: 3 * time.Second})
	}
	h.Outage.Spells = append(h.Outage.Spells, fleet.Spell{Down: fleet.Refused})
	r := m.one(h)
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
	h.Client, h.Watch = c, 30*time.Minute
	r := m.one(h)
	if r == nil {
		return "-"
	}
	return lone.HowLongAway(r.Away) + inVain(r.Wasted)
}
