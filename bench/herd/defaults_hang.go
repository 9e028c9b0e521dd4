package herd

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lone"
	"github.com/redial-go/redial/reconnect/backoff"
)

// row is the circumstance of a name.
func row(name string) lone.Circumstance {
	for _, r := range lone.Circumstances() {
		if r.Name == name {
			return r
		}
	}
	panic("there is no circumstance " + name)
}

// lone shows some circumstances for a lone client.
func (m *tableMaker) lone(c fleet.Client, names ...string) (cells []string) {
	for _, name := range names {
		if m.err != nil {
			return nil
		}
		r := row(name)
		o, err := r.Run(m.ctx, c, 20, 1)
		if err != nil {
			m.err = err
			return nil
		}
		cells = append(cells, r.Show(o))
	}
	return cells
}

// loneDefaults is the table of "bench lone".
func loneDefaults(m *tableMaker) cli.Table {
	var clients []fleet.Client
	for name := range strings.SplitSeq(lonePolicies, ",") {
		c, err := fleet.Find(name)
		if err != nil {
			panic(err)
		}
		clients = append(clients, c)
	}
	all, err := lone.RunAll(m.ctx, lone.Circumstances(), clients, 40, 1, m.workers, func() {})
	if err != nil {
		m.err = err
		return nil
	}
	return lone.Table(lone.Circumstances(), clients, all)
}

// at is a herd of n clients before a server, after an outage.
func at(n int, q fleet.Queue, down fleet.Down, away time.Duration) fleet.Herd {
	h := fleet.Herd{N: n, Outage: fleet.Outage{Down: down, Length: away}, Server: fleet.Server{Capacity: capacity, Queue: q}}
	if q == fleet.Reject || q == fleet.Busy {
		h.Server.Backlog = capacity / 10
	}
	h.Watch = away + 10*time.Minute + 20*h.Ideal()
	return h
}

// ratio is t99 over the ideal of one run, and the handshakes in vain per client.
func (m *tableMaker) ratio(h fleet.Herd, c fleet.Client) string {
	if h.N > m.largest {
		return "-"
	}
	h.Client = c
	s := m.average(h)
	text := overIdeal(s)
	if s.T99 == fleet.Never {
		text = "never"
	}
	return text + inVain(s.Wasted)
}

// inVain is the part of a cell about handshakes in vain per client; empty if they are few.
func inVain(perClient float64) string {
	if perClient < 0.05 {
		return ""
	}
	return fmt.Sprintf("; %.1f in vain", perClient)
}

// herdRow is a herd in herdsTable, and at most what its figure should be.
type herdRow struct {
	name, wanted string
	cell         func(c fleet.Client) string
}

// herdsTable is what else a herd may meet, beside what was wished.
func herdsTable(m *tableMaker) cli.Table {
	t := cli.Table{{"herd", "wanted", "redial", "paced", "v2"}}
	for _, r := range m.herdRows() {
		t.Row(r.name, r.wanted, r.cell(client("redial")), r.cell(client("paced")), r.cell(client("v2")))
	}
	return t
}

func (m *tableMaker) herdRows() (rows []herdRow) {
	const second = time.Second
	each := func(name, wanted string, cell func(c fleet.Client) string) {
		rows = append(rows, herdRow{name, wanted, cell})
	}
	add := func(name, wanted string, h fleet.Herd) {
		each(name, wanted, func(c fleet.Client) string { return m.ratio(h, c) })
	}
	add("503 with a Retry-After of its own for each client, N = 10,000", "1.15", booked(10_000, 0))
	add("N = 50,000", "1.25", booked(50_000, 0))
	add("the same after 600 s of refusals, N = 10,000", "1.15", booked(10_000, 600*second))
	add("N = 50,000", "1.25", booked(50_000, 600*second))
	told := at(10_000, fleet.Busy, fleet.Refused, 0)
	told.Server.RetryAfter = 10 * second
	add("503 with Retry-After: 10 for all clients, N = 10,000", "2.4", told)
	told.Server.RetryAfter = 60 * second
	add("60 s", "8", told)
	for _, n := range []int{10_000, 50_000} {
		size := fmt.Sprintf(", N = %d", n)
		add("hung for 60 s, places lost, then a backlog of 4,096"+size, "2.1", at(n, fleet.Drop, fleet.Swallowed, 60*second))
		add("then 503"+size, "1.1", at(n, fleet.Busy, fleet.Swallowed, 60*second))
		add("then an unbounded queue"+size, "", at(n, fleet.Unbounded, fleet.Swallowed, 60*second))
		add("hung for 5 s, then an unbounded queue"+size, "", at(n, fleet.Unbounded, fleet.Swallowed, 5*second))
		add("hung for 60 s, places kept, a backlog of 4,096"+size, "", at(n, fleet.Drop, fleet.Stopped, 60*second))
		add("unbounded queue, served at random"+size, "", at(n, fleet.Random, fleet.Refused, 0))
		add("cold caches: 2 to 100 % of C in a minute, a backlog of 4,096"+size, "", cold(n))
	}
	slow := at(10_000, fleet.Drop, fleet.Refused, 5*second)
	slow.Server.Capacity, slow.Watch = 50, 2*time.Hour
	add("C = 50: a backlog of 82 s, N = 10,000", "1.95", slow)
	for _, n := range []int{10_000, 20_000, 50_000} {
		for _, q := range []fleet.Queue{fleet.Drop, fleet.Unbounded} {
			add(fmt.Sprintf("restart, two of four servers hang, C = 125 each, %v, N = %d", q, n), "", halfHung(n, q, 0))
		}
	}
	for _, q := range []fleet.Queue{fleet.Drop, fleet.Unbounded} {
		each(fmt.Sprintf("half notice 30 s late, %v, N = 50,000", q), "", func(c fleet.Client) string { return m.ratio(late(50_000, q, c), c) })
		each(fmt.Sprintf("half are 200 ms away, %v, N = 50,000", q), "", func(c fleet.Client) string { return m.ratio(far(50_000, q, c), c) })
	}
	each("ten servers restarted 30 s apart, each away for 5 s, N = 50,000: mean / p99 / most away, s", "", func(c fleet.Client) string { return m.rolling(50_000, capacity, c) })
	each("the same with C = 50: backlogs of 82 s", "", func(c fleet.Client) string { return m.rolling(50_000, capacity/10, c) })
	for _, share := range []float64{0.3, 0.6} {
		for _, q := range []fleet.Queue{fleet.Drop, fleet.Unbounded} {
			wanted := map[fleet.Queue]string{fleet.Drop: "300 s", fleet.Unbounded: "100 s"}[q]
			if share < 0.5 {
				wanted = ""
			}
			each(fmt.Sprintf("%.0f %% of 50,000 are naive (full jitter, 2 s a dial), %v: 99 %% of the others", 100*share, q), wanted,
				func(c fleet.Client) string { return m.among(50_000, share, q, c) })
		}
	}
	return rows
}

// among is when 99 % of the clients that share a server with naive ones are back.
func (m *tableMaker) among(n int, share float64, q fleet.Queue, c fleet.Client) string {
	h := at(n, q, fleet.Refused, 5*time.Second)
	h.Groups = []fleet.Group{{Client: c, Share: 1 - share}, {Client: client("full-1-30s"), Share: share}}
	r := m.one(h)
	if r == nil {
		return "-"
	}
	if late := fleet.Quantile(r.Groups[0], 0.99); late != fleet.Never {
		return lone.Figure(late) + " s"
	}
	return "never"
}

// shareTable is the frontier between a lone client after a long hang and herds at an
// unbounded queue.
func shareTable(m *tableMaker) cli.Table {
	const second = time.Second
	t := cli.Table{{"share of the hang's age", "lone, hung 300 s", "hung 1 h", "hung 60 s, then unbounded, N = 10,000", "N = 50,000", "restart, unbounded, N = 50,000", "hung 60 s, then a backlog, N = 50,000", "hung 60 s, then 503, N = 50,000"}}
	for _, n := range []int{60, 30, 20, 10, 5, 2, 1} {
		c := prompt(backoff.Adaptive{HangShare: 1 / float64(n)})
		t.Row(append(append([]string{fmt.Sprintf("1/%d", n)}, m.lone(c, "hung for 5m0s, places lost", "hung for 1h0m0s, places lost")...),
			m.ratio(at(10_000, fleet.Unbounded, fleet.Swallowed, 60*second), c),
			m.ratio(at(50_000, fleet.Unbounded, fleet.Swallowed, 60*second), c),
			m.ratio(at(50_000, fleet.Unbounded, fleet.Refused, 0), c),
			m.ratio(at(50_000, fleet.Drop, fleet.Swallowed, 60*second), c),
			m.ratio(at(50_000, fleet.Busy, fleet.Swallowed, 60*second), c))...)
	}
	return t
}

// hangTable is the frontier between a lone client after a short hang, or among backends
// that hang, and herds at a backlog.
func hangTable(m *tableMaker) cli.Table {
	const second = time.Second
	t := cli.Table{{"a handshake hangs after", "lone, hung 5 s", "20 s", "60 s", "half of the backends", "two thirds", "backlog of 8.2 s, 5 s away, N = 50,000", "backlog of 82 s (C = 50), N = 10,000", "restart, unbounded, N = 50,000"}}
	for _, hang := range []time.Duration{3, 5, 7, 10, 15, 30} {
		c := prompt(backoff.Adaptive{Hang: hang * second})
		slow := at(10_000, fleet.Drop, fleet.Refused, 5*second)
		slow.Server.Capacity, slow.Watch = 50, 2*time.Hour
		t.Row(append(append([]string{fmt.Sprintf("%d s", hang)},
			m.lone(c, "hung for 5s, places lost", "hung for 20s, places lost", "hung for 1m0s, places lost", "half of the backends hang", "two thirds of the backends hang")...),
			m.ratio(at(50_000, fleet.Drop, fleet.Refused, 5*second), c), m.ratio(slow, c), m.ratio(at(50_000, fleet.Unbounded, fleet.Refused, 0), c))...)
	}
	return t
}

// swapTable is what the second connection and the swap buy.
func swapTable(m *tableMaker) cli.Table {
	const second = time.Second
	one := fleet.Client{Policy: &backoff.Adaptive{}, OneConnection: true}
	patient := fleet.Client{Policy: &backoff.Adaptive{HangShare: 1}, OneConnection: true}
	t := cli.Table{{"", "lone, hung 60 s", "hung 300 s", "hung 60 s, places kept", "restart, unbounded, N = 10,000", "N = 50,000", "hung 5 s, then unbounded, N = 10,000", "N = 50,000", "hung 60 s, then a backlog, N = 50,000"}}
	for _, c := range []named{{"two dials, as chosen", client("redial")}, {"no swap", fleet.Client{Policy: still{&backoff.Adaptive{}}}}, {"one dial (OneConnection)", one}, {"one dial, HangShare 1", patient}, {"paced", client("paced")}} {
		cells := append([]string{c.name}, m.lone(c.Client, "hung for 1m0s, places lost", "hung for 5m0s, places lost", "hung for 1m0s, places kept")...)
		for _, h := range []fleet.Herd{
			at(10_000, fleet.Unbounded, fleet.Refused, 0), at(50_000, fleet.Unbounded, fleet.Refused, 0),
			at(10_000, fleet.Unbounded, fleet.Swallowed, 5*second), at(50_000, fleet.Unbounded, fleet.Swallowed, 5*second),
			at(50_000, fleet.Drop, fleet.Swallowed, 60*second),
		} {
			cells = append(cells, m.ratio(h, c.Client))
		}
		t.Row(cells...)
	}
	return t
}

// toldTable is the frontier between a Retry-After that is booked for each client and one
// that is the same for all.
func toldTable(m *tableMaker) cli.Table {
	const second = time.Second
	t := cli.Table{{"share that is spread", "booked, N = 10,000", "N = 50,000", "Retry-After: 1 for all, N = 10,000", "10 s", "60 s"}}
	for _, n := range []int{8, 4, 2, 1} {
		c := prompt(backoff.Adaptive{RetryAfterShare: 1 / float64(n)})
		cells := []string{fmt.Sprintf("1/%d", n), m.ratio(booked(10_000, 0), c), m.ratio(booked(50_000, 0), c)}
		for _, told := range []time.Duration{1, 10, 60} {
			h := at(10_000, fleet.Busy, fleet.Refused, 0)
			h.Server.RetryAfter = told * second
			cells = append(cells, m.ratio(h, c))
		}
		t.Row(cells...)
	}
	return t
}

// capsTable is what the longest waits cost and save.
func capsTable(m *tableMaker) cli.Table {
	const second = time.Second
	t := cli.Table{{"longest waits: after a refusal, after an overload", "lone, refused 1 to 60 min", "503 for an hour", "black hole for 5 min", "dials in 5 min of refusals", "dials of 100,000, reject 50", "503 50"}}
	for _, caps := range [][2]time.Duration{{5, 5}, {8, 10}, {10, 15}, {10, 30}, {15, 30}, {30, 60}} {
		c := prompt(backoff.Adaptive{Cap: caps[0] * second, OverloadCap: caps[1] * second})
		cells := append([]string{fmt.Sprintf("%d s, %d s", caps[0], caps[1])}, m.lone(c, "refused for 1 to 60 min", "503 for an hour", "black hole for 5 min")...)
		refused := lone.After("", "", fleet.Spell{Down: fleet.Refused, Length: 300 * second})
		o, err := refused.Run(m.ctx, c, 4, 1)
		if err != nil {
			m.err = err
			return nil
		}
		cells = append(cells, fmt.Sprintf("%.0f", 300*o.Rate))
		for _, q := range []fleet.Queue{fleet.Reject, fleet.Busy} {
			h := at(100_000, q, fleet.Refused, 0)
			if h.N > m.largest {
				cells = append(cells, "-")
				continue
			}
			h.Client = c
			cells = append(cells, fmt.Sprintf("%.0f", m.average(h).Dials))
		}
		t.Row(cells...)
	}
	return t
}

// lengthsTable shows herds that take hours, at an unbounded queue.
func lengthsTable(m *tableMaker) cli.Table {
	const second = time.Second
	ideals := []time.Duration{20 * second, 200 * second, 2000 * second, 10_000 * second}
	t := cli.Table{{"10,000 at an unbounded queue, restart"}}
	for _, ideal := range ideals {
		t[0] = append(t[0], fmt.Sprintf("N/C = %.0f s", ideal.Seconds()))
	}
	for _, c := range []named{{"redial", client("redial")}, {"paced", client("paced")}, {"full jitter, handshake 30 s x 2^n, at most 5 min", fullJitter()}, {"grpc", client("grpc")}} {
		cells := []string{c.name}
		for _, ideal := range ideals {
			h := worlds()[4].herd(10_000, c.Client)
			h.Server.Capacity = float64(h.N) / ideal.Seconds()
			cells = append(cells, overIdeal(m.average(h)))
		}
		t.Row(cells...)
	}
	return t
}

// still is a policy that never gives up a place for a later one.
type still struct{ backoff.Policy }

func (s still) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	step, ok := s.Policy.Next(a, r)
	step.Swap = false
	return step, ok
}
