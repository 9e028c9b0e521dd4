package herd

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lone"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/bench/internal/table"
	"github.com/redial-go/redial/reconnect/backoff"
)

// column is a figure of a client.
type column struct {
	name string
	cell func(c fleet.Client) string
}

// grid is a table of figures with a row for each client.
func grid(m *tableMaker, corner string, rows []named, columns ...column) table.Table {
	t := table.Table{append([]string{corner}, pick.Names(columns, func(c column) string { return c.name })...)}
	for _, r := range rows {
		cells := []string{r.name}
		for _, c := range columns {
			cells = append(cells, c.cell(r.Client))
		}
		m.row(&t, cells...)
	}
	return t
}

// clients are those of fleet.Clients.
func clients() (rows []named) {
	for _, c := range fleet.Clients() {
		rows = append(rows, named{c.Name, c})
	}
	return rows
}

// lone is a column with what a lone client meets in a circumstance.
func (m *tableMaker) lone(title, circumstance string) column {
	return column{title, func(c fleet.Client) string { return m.alone(circumstance, c) }}
}

// alone is the figure of a lone client in a circumstance.
func (m *tableMaker) alone(circumstance string, c fleet.Client) string {
	r, err := pick.One("circumstance", circumstance, lone.Circumstances(), func(r lone.Circumstance) string { return r.Name })
	if err != nil {
		panic(err)
	}
	if m.err != nil {
		return ""
	}
	o, err := r.Run(m.ctx, c, 20, 1)
	if m.err = err; err != nil {
		return ""
	}
	return r.Show(o)
}

// herd is a column with the ratio of a herd.
func (m *tableMaker) herd(title string, h fleet.Herd) column {
	return column{title, func(c fleet.Client) string { return m.ratio(h, c) }}
}

// loneDefaults is the table of "bench lone".
func loneDefaults(m *tableMaker) table.Table {
	clients, err := fleet.Parse("policy", lonePolicies)
	if err != nil {
		panic(err)
	}
	all, err := lone.RunAll(m.ctx, lone.Circumstances(), clients, 40, 1, m.workers, func() {})
	m.err = cmp.Or(m.err, err)
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
	text := s.Ratio()
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
func herdsTable(m *tableMaker) table.Table {
	t := table.Table{{"herd", "wanted", "redial", "paced"}}
	for _, r := range m.herdRows() {
		m.row(&t, r.name, r.wanted, r.cell(client("redial")), r.cell(client("paced")))
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
	add("503 with Retry-After: 10 for all clients, N = 10,000", "2.4", retryAfter(10))
	add("60 s", "8", retryAfter(60))
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
	add("C = 50: a backlog of 82 s, N = 10,000", "2.1", slow())
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
	naive := client("full:base=1s,limit=2s")
	herd := func(c fleet.Client) fleet.Herd {
		h := at(n, q, fleet.Refused, 5*time.Second)
		h.Groups = []fleet.Group{{Client: c, Share: 1 - share}, {Client: naive, Share: share}}
		return h
	}
	p99 := func(r *fleet.Result) time.Duration { return fleet.Quantile(r.Groups[0], 0.99) }
	byP99 := func(a, b *fleet.Result) int { return fleet.CompareTimes(p99(a), p99(b)) }
	r := m.best(c, herd, byP99)
	if r == nil {
		return "-"
	}
	if late := p99(r); late != fleet.Never {
		return lone.Figure(late) + " s"
	}
	return "never"
}

// shareTable is the frontier between a lone client after a long hang and herds at an
// unbounded queue.
func shareTable(m *tableMaker) table.Table {
	const second = time.Second
	var rows []named
	for _, n := range []int{60, 30, 20, 10, 5, 2, 1} {
		rows = append(rows, named{fmt.Sprintf("1/%d", n), prompt(backoff.Adaptive{HangShare: 1 / float64(n)})})
	}
	return grid(m, "share of the hang's age", rows,
		m.lone("lone, hung 300 s", "hung for 5m0s, places lost"), m.lone("hung 1 h", "hung for 1h0m0s, places lost"),
		m.herd("hung 60 s, then unbounded, N = 10,000", at(10_000, fleet.Unbounded, fleet.Swallowed, 60*second)),
		m.herd("N = 50,000", at(50_000, fleet.Unbounded, fleet.Swallowed, 60*second)),
		m.herd("restart, unbounded, N = 50,000", at(50_000, fleet.Unbounded, fleet.Refused, 0)),
		m.herd("hung 60 s, then a backlog, N = 50,000", at(50_000, fleet.Drop, fleet.Swallowed, 60*second)),
		m.herd("hung 60 s, then 503, N = 50,000", at(50_000, fleet.Busy, fleet.Swallowed, 60*second)))
}

// slow is a herd before a server whose backlog is 82 s long.
func slow() fleet.Herd {
	h := at(10_000, fleet.Drop, fleet.Refused, 5*time.Second)
	h.Server.Capacity, h.Watch = 50, 2*time.Hour
	return h
}

// hangTable is the frontier between a lone client after a short hang, or among backends
// that hang, and herds at a backlog.
func hangTable(m *tableMaker) table.Table {
	const second = time.Second
	var rows []named
	for _, hang := range []time.Duration{3, 5, 7, 10, 15, 30} {
		rows = append(rows, named{fmt.Sprintf("%d s", hang), prompt(backoff.Adaptive{Hang: hang * second})})
	}
	return grid(m, "a handshake hangs after", rows,
		m.lone("lone, hung 5 s", "hung for 5s, places lost"), m.lone("20 s", "hung for 20s, places lost"), m.lone("60 s", "hung for 1m0s, places lost"),
		m.lone("half of the backends", "half of the backends hang"), m.lone("two thirds", "two thirds of the backends hang"),
		m.herd("backlog of 8.2 s, 5 s away, N = 50,000", at(50_000, fleet.Drop, fleet.Refused, 5*second)),
		m.herd("backlog of 82 s (C = 50), N = 10,000", slow()),
		m.herd("restart, unbounded, N = 50,000", at(50_000, fleet.Unbounded, fleet.Refused, 0)))
}

// swapTable is what the second connection and the swap buy.
func swapTable(m *tableMaker) table.Table {
	const second = time.Second
	rows := []named{
		{"two dials, as chosen", client("redial")},
		{"no swap", fleet.Client{Policy: changed(still)}},
		{"one dial (OneConnection)", fleet.Client{Policy: &backoff.Adaptive{}, OneConnection: true}},
		{"one dial, HangShare 1", fleet.Client{Policy: &backoff.Adaptive{HangShare: 1}, OneConnection: true}},
		{"paced", client("paced")},
	}
	return grid(m, "", rows,
		m.lone("lone, hung 60 s", "hung for 1m0s, places lost"), m.lone("hung 300 s", "hung for 5m0s, places lost"),
		m.lone("hung 60 s, places kept", "hung for 1m0s, places kept"),
		m.herd("restart, unbounded, N = 10,000", at(10_000, fleet.Unbounded, fleet.Refused, 0)),
		m.herd("N = 50,000", at(50_000, fleet.Unbounded, fleet.Refused, 0)),
		m.herd("hung 5 s, then unbounded, N = 10,000", at(10_000, fleet.Unbounded, fleet.Swallowed, 5*second)),
		m.herd("N = 50,000", at(50_000, fleet.Unbounded, fleet.Swallowed, 5*second)),
		m.herd("hung 60 s, then a backlog, N = 50,000", at(50_000, fleet.Drop, fleet.Swallowed, 60*second)))
}

// retryAfter returns a herd whose server answers 503 with a Retry-After of so many seconds while it is full.
func retryAfter(seconds time.Duration) fleet.Herd {
	h := at(10_000, fleet.Busy, fleet.Refused, 0)
	h.Server.RetryAfter = seconds * time.Second
	return h
}

// toldTable is the frontier between a Retry-After that is booked for each client and one
// that is the same for all.
func toldTable(m *tableMaker) table.Table {
	var rows []named
	for _, n := range []int{8, 4, 2, 1} {
		rows = append(rows, named{fmt.Sprintf("1/%d", n), prompt(backoff.Adaptive{RetryAfterShare: 1 / float64(n)})})
	}
	return grid(m, "share that is spread", rows,
		m.herd("booked, N = 10,000", booked(10_000, 0)),
		m.herd("N = 50,000", booked(50_000, 0)),
		m.herd("Retry-After: 1 for all, N = 10,000", retryAfter(1)),
		m.herd("10 s", retryAfter(10)),
		m.herd("60 s", retryAfter(60)))
}

// capsTable is what the longest waits cost and save.
func capsTable(m *tableMaker) table.Table {
	const second = time.Second
	var rows []named
	for _, caps := range [][2]time.Duration{{5, 5}, {8, 10}, {10, 15}, {10, 30}, {15, 30}, {30, 60}} {
		rows = append(rows, named{fmt.Sprintf("%d s, %d s", caps[0], caps[1]), prompt(backoff.Adaptive{Cap: caps[0] * second, OverloadCap: caps[1] * second})})
	}
	dials := func(title string, q fleet.Queue) column {
		return column{title, func(c fleet.Client) string {
			h := at(100_000, q, fleet.Refused, 0)
			if h.Client = c; h.N > m.largest {
				return "-"
			}
			return fmt.Sprintf("%.0f", m.average(h).Dials)
		}}
	}
	refused := lone.After("", "", fleet.Spell{Down: fleet.Refused, Length: 300 * second})
	return grid(m, "longest waits: after a refusal, after an overload", rows,
		m.lone("lone, refused 1 to 60 min", "refused for 1 to 60 min"), m.lone("503 for an hour", "503 for an hour"), m.lone("black hole for 5 min", "black hole for 5 min"),
		column{"dials in 5 min of refusals", func(c fleet.Client) string {
			o, err := refused.Run(m.ctx, c, 4, 1)
			if err != nil {
				m.err = err
				return ""
			}
			return fmt.Sprintf("%.0f", 300*o.Rate)
		}},
		dials("dials of 100,000, reject 50", fleet.Reject), dials("503 50", fleet.Busy))
}

// lengthsTable shows herds that take hours, at an unbounded queue.
func lengthsTable(m *tableMaker) table.Table {
	rows := []named{{"redial", client("redial")}, {"paced", client("paced")}, {"full jitter, handshake 30 s x 2^n, at most 5 min", fullJitter()}, {"grpc", client("grpc")}}
	var columns []column
	for _, ideal := range []float64{20, 200, 2000, 10_000} {
		columns = append(columns, column{fmt.Sprintf("N/C = %.0f s", ideal), func(c fleet.Client) string {
			h := worlds()[4].herd(10_000, c)
			h.Server.Capacity = float64(h.N) / ideal
			s := m.average(h)
			return s.Ratio()
		}})
	}
	return grid(m, "10,000 at an unbounded queue, restart", rows, columns...)
}

// changed is the library's default with another rule, which changes a step.
type changed func(next func(backoff.History) backoff.Step, a backoff.History, s *backoff.Step)

func (c changed) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	next := func(a backoff.History) backoff.Step { s, _ := new(backoff.Adaptive).Next(a, r); return s }
	step := next(a)
	c(next, a, &step)
	return step, true
}

// still never gives up a place for a later one.
func still(_ func(backoff.History) backoff.Step, _ backoff.History, s *backoff.Step) {
	s.Swap, s.SwapIfFull = false, false
}
