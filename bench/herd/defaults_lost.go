package herd

import (
	"fmt"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/table"
	"github.com/redial-go/redial/reconnect/backoff"
)

// watchLost is for how long the herds of lostTable are watched, from the server's return on:
// for so long that "never" means that nobody waits for them.
const watchLost = 2 * time.Hour

// cure is a column of lostTable: what another client, server or process makes of a herd.
type cure struct {
	name  string
	apply func(h fleet.Herd) fleet.Herd
}

func cures() []cure {
	as := func(c fleet.Client) func(fleet.Herd) fleet.Herd {
		return func(h fleet.Herd) fleet.Herd { h.Client = c; return h }
	}
	gates := func(each int) func(fleet.Herd) fleet.Herd {
		return func(h fleet.Herd) fleet.Herd { h.Client, h.Processes = client("redial"), h.N/each; return h }
	}
	return []cure{
		{"redial", as(client("redial"))},
		{"a backlog of 4,096", func(h fleet.Herd) fleet.Herd { h.Client, h.Server.Queue = client("redial"), fleet.Drop; return h }},
		{"HangShare 1", as(fleet.Client{Policy: &backoff.Adaptive{HangShare: 1}, Addresses: true})},
		{"a Gate for 10 each", gates(10)},
		{"a Gate for 100 each", gates(100)},
		{"paced", as(client("paced"))},
		{"grpc", as(client("grpc"))},
	}
}

// lostTable shows the herds that the default does not bring back, or late: a hang has
// swallowed every first handshake, or half of the servers go on hanging, and the queue has
// no bound. Beside it is what helps.
func lostTable(m *tableMaker) table.Table {
	const second = time.Second
	t := table.Table{{"", "N", "N/C, s"}}
	for _, c := range cures() {
		t[0] = append(t[0], c.name)
	}
	add := func(name string, h fleet.Herd) {
		cells := []string{name, fmt.Sprint(h.N), fmt.Sprintf("%.0f", h.Ideal().Seconds())}
		for _, c := range cures() {
			cells = append(cells, m.range99(c.apply(h), 3))
		}
		m.row(&t, cells...)
	}
	for _, hung := range []time.Duration{10 * second, 12 * second, 60 * second} {
		for _, n := range []int{10_000, 12_000, 16_000, 20_000, 30_000, 50_000} {
			add(fmt.Sprintf("hung for %.0f s", hung.Seconds()), swallowed(n, hung))
		}
	}
	for _, down := range []fleet.Down{fleet.Refused, fleet.Silent, fleet.Unavailable} {
		h := swallowed(20_000, 80*second)
		h.Outage = fleet.Outage{Spells: []fleet.Spell{{Down: down, Length: 60 * second}, {Down: fleet.Swallowed, Length: 20 * second}}}
		add(fmt.Sprintf("%v for 60 s, then hung for 20 s", down), h)
	}
	for _, half := range []struct {
		name  string
		away  time.Duration
		apart bool
	}{{"two of four servers hang, restart", 0, false}, {"two of four servers hang, refused for 5 s", 5 * second, false}, {"the same, addresses known", 5 * second, true}} {
		for _, n := range []int{10_000, 20_000, 50_000} {
			h := halfHung(n, fleet.Unbounded, half.away)
			h.Server.Apart = half.apart
			add(half.name, h)
		}
	}
	return t
}

// range99 is t99 over the ideal, the least and the greatest of some runs that differ in
// their seed.
func (m *tableMaker) range99(h fleet.Herd, runs int) string {
	if h.N > m.largest {
		return "-"
	}
	var ratios []float64
	for seed := range runs {
		if m.err != nil {
			return ""
		}
		h.Seed = 1 + uint64(seed)
		r, err := fleet.Run(m.ctx, h)
		if m.err = err; err != nil {
			return ""
		}
		if r.T99 != fleet.Never {
			ratios = append(ratios, r.T99.Seconds()/r.Ideal.Seconds())
		}
	}
	return spread(ratios, runs)
}

// spread shows the least and the greatest of figures, of which there are fewer than runs if
// some have none.
func spread(figures []float64, runs int) string {
	if len(figures) == 0 {
		return "never"
	}
	low, high := figures[0], figures[0]
	for _, x := range figures {
		low, high = min(low, x), max(high, x)
	}
	text := fmt.Sprintf("%.2f", low)
	if last := fmt.Sprintf("%.2f", high); last != text {
		text += " to " + last
	}
	if lost := runs - len(figures); lost > 0 {
		text += fmt.Sprintf(", %d of %d never", lost, runs)
	}
	return text
}

// swallowed is a herd before an unbounded queue, whose handshakes of the time before are lost.
func swallowed(n int, hung time.Duration) fleet.Herd {
	h := at(n, fleet.Unbounded, fleet.Swallowed, hung)
	h.Watch = hung + watchLost
	return h
}

// halfHung is a herd before four servers of a quarter of the capacity each, behind one
// name, of which two accept and never answer. The others are away for a time.
func halfHung(n int, q fleet.Queue, away time.Duration) fleet.Herd {
	h := at(n, q, fleet.Refused, away)
	h.Server.Capacity, h.Server.Count, h.Server.Hung = capacity/4, 4, 2
	h.Watch = away + watchLost
	return h
}

// constantsTable shows what constants and rules of the default are for that no other table
// has.
func constantsTable(m *tableMaker) table.Table {
	const second = time.Second
	t := table.Table{{"constant or rule", "figure", "as chosen", "otherwise"}}
	up := func(credit time.Duration) string {
		c := client("redial")
		c.Credit = credit
		share, _, _ := strings.Cut(m.alone("50 times 3 s up and 3 s away: time up, dials", c), ",")
		return share
	}
	others := ""
	for _, credit := range []time.Duration{-1, 10 * second, 20 * second, 60 * second} {
		others += fmt.Sprintf("%v: %s; ", max(credit, 0), up(credit))
	}
	m.row(&t,
		"a session of 2 s to 10 s makes the outage younger by 30 s",
		"time up before a server that is up for 3 s and away for 3 s",
		up(30*second), strings.TrimSuffix(others, "; "))
	hangs := func(c fleet.Client) string {
		return m.alone("hung for 5m0s, places lost", c) + "; " + m.alone("half of them, addresses known", c)
	}
	known := func(p backoff.Policy) fleet.Client { return fleet.Client{Policy: p, Addresses: true} }
	m.row(&t,
		"the last sixth of the time after which a handshake hangs is jittered",
		"one client after a hang of 5 min; half of the backends hang, addresses known: median / p95, s",
		hangs(known(&backoff.Adaptive{})), hangs(known(changed(exact))))
	herd := func(rule, figure string, h fleet.Herd, otherwise string, other changed) {
		chosen := m.ratio(h, client("redial"))
		m.row(&t, rule, figure, chosen, otherwise+": "+m.ratio(h, fleet.Client{Policy: other}))
	}
	herd("the wait beside a handshake that hangs goes by HangShare",
		"hung for 60 s, then 503, N = 10,000: t99 over N/C",
		at(10_000, fleet.Busy, fleet.Swallowed, 60*second), "by Share", besideByShare)
	herd("no swap after a refusal",
		"refused for 5 s, then an unbounded queue, N = 50,000: t99 over N/C",
		at(50_000, fleet.Unbounded, fleet.Refused, 5*second), "swap", swapAlways)
	return t
}

// exact has the default limits on a handshake, without their jitter.
func exact(_ func(backoff.History) backoff.Step, a backoff.History, s *backoff.Step) {
	s.Handshake = max(10*time.Second, a.Hang/20)
}

// besideByShare waits beside a handshake that hangs as it does without one.
func besideByShare(next func(backoff.History) backoff.Step, a backoff.History, s *backoff.Step) {
	if a.Hang > 0 && !a.Hung {
		a.Hang = 0
		s.Wait = next(a).Wait
	}
}

// swapAlways lets the first dial beside take the place of the kept one also after a refusal.
func swapAlways(_ func(backoff.History) backoff.Step, a backoff.History, s *backoff.Step) {
	s.Swap = a.Hang > 0 && a.DialsBeside == 0
}
