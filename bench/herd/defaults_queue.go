package herd

import (
	"fmt"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/table"
	"github.com/redial-go/redial/reconnect/backoff"
)

// before is a herd of 10,000 before a backlog of so many seconds, with N/C as given.
func before(backlog, ideal float64, spells ...fleet.Spell) fleet.Herd {
	h := fleet.Herd{N: 10_000, Outage: fleet.Outage{Spells: spells}, Server: fleet.Server{Queue: fleet.Drop}}
	h.Server.Capacity = float64(h.N) / ideal
	h.Server.Backlog = int(backlog * h.Server.Capacity)
	h.Watch = h.Return() + 10*time.Minute + 6*h.Ideal()
	return h
}

// queueTable shows herds before a backlog that is longer than the limit on a handshake, and what the
// rule for a full backlog does for them.
func queueTable(m *tableMaker) table.Table {
	spell := func(down fleet.Down, seconds time.Duration) fleet.Spell {
		return fleet.Spell{Down: down, Length: seconds * time.Second}
	}
	hang, up := spell(fleet.Swallowed, 60), spell(fleet.Up, 20)
	columns := []named{
		{"as chosen", client("redial")},
		{"a full backlog is not looked at", fleet.Client{Policy: changed(noQueue)}},
	}
	t := table.Table{{"", "backlog, s", "N/C, s"}}
	for _, c := range columns {
		t[0] = append(t[0], c.name)
	}
	for _, r := range []struct {
		name   string
		queues [][2]float64
		spells []fleet.Spell
	}{
		{"hung for 60 s", [][2]float64{{10, 40}, {12, 40}, {20, 40}, {40, 100}, {82, 200}, {205, 500}}, []fleet.Spell{hang}},
		{"refused for 5 s, then hung for 60 s", [][2]float64{{20, 40}, {82, 200}}, []fleet.Spell{spell(fleet.Refused, 5), hang}},
		{"hung for 60 s, up for 20 s, hung for 60 s", [][2]float64{{20, 40}, {40, 100}, {82, 200}, {205, 500}}, []fleet.Spell{hang, up, hang}},
		{"hung for 300 s", [][2]float64{{20, 40}, {82, 200}}, []fleet.Spell{spell(fleet.Swallowed, 300)}},
		{"hung for 1 h", [][2]float64{{20, 40}, {40, 100}, {82, 200}}, []fleet.Spell{spell(fleet.Swallowed, 3600)}},
		{"restart", [][2]float64{{20, 40}, {82, 200}, {205, 500}, {205, 100}, {820, 400}}, []fleet.Spell{spell(fleet.Refused, 1)}},
	} {
		for _, q := range r.queues {
			row := []string{r.name, fmt.Sprint(q[0]), fmt.Sprint(q[1])}
			for _, c := range columns {
				row = append(row, m.single(before(q[0], q[1], r.spells...), c.Client))
			}
			m.row(&t, row...)
		}
	}
	return t
}

// single is ratio of one run, however small the herd.
func (m *tableMaker) single(h fleet.Herd, c fleet.Client) string {
	h.Client = c
	r := m.one(h)
	if r == nil {
		return "-"
	}
	if r.T99 == fleet.Never {
		return "never" + inVain(r.Wasted)
	}
	return fmt.Sprintf("%.2f", r.T99.Seconds()/r.Ideal.Seconds()) + inVain(r.Wasted)
}

// noQueue does not ask whether the backlog is full.
func noQueue(_ func(backoff.History) backoff.Step, _ backoff.History, s *backoff.Step) {
	s.SwapIfFull = false
}
