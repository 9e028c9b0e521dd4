package herd

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/bench/internal/table"
	"github.com/redial-go/redial/internal/line"
	"github.com/redial-go/redial/reconnect/backoff"
)

// defaultTable is one table of DEFAULTS.md.
type defaultTable struct {
	name string
	make func(m *tableMaker) table.Table
}

var defaultTables []defaultTable

func init() {
	defaultTables = []defaultTable{
		{"lone", loneDefaults},
		{"aims", func(m *tableMaker) table.Table { return aims(m, client("redial"), 1_000_000) }},
		{"aims-paced", func(m *tableMaker) table.Table { return aims(m, client("paced"), 100_000) }},
		{"herds", herdsTable},
		{"lost", lostTable},
		{"queue", queueTable},
		{"outages", outagesTable},
		{"troubles", troublesTable},
		{"others", others},
		{"waits", waitsTable},
		{"first", firstTable},
		{"share", shareTable},
		{"hang", hangTable},
		{"swap", swapTable},
		{"told", toldTable},
		{"constants", constantsTable},
		{"caps", capsTable},
		{"lengths", lengthsTable},
		{"gates", gatesTable},
	}
}

func nameOfTable(t defaultTable) string { return t.name }

// capacity is that of the server of all tables, in handshakes per second.
const capacity = 500

// world is one of the servers and outages that a policy has to stand.
type world struct {
	name    string
	queue   fleet.Queue
	backlog int
	outage  time.Duration
}

func worlds() (all []world) {
	for _, outage := range []time.Duration{0, 5 * time.Second} {
		for _, w := range []world{
			{"drop 4096", fleet.Drop, 4096, outage},
			{"reject 4096", fleet.Reject, 4096, outage},
			{"reject 50", fleet.Reject, capacity / 10, outage},
			{"503 50", fleet.Busy, capacity / 10, outage},
			{"unbounded", fleet.Unbounded, 0, outage},
		} {
			w.name = fmt.Sprintf("%v, %s", outage, w.name)
			all = append(all, w)
		}
	}
	return all
}

// client is that of a name, which fleet.Clients has.
func client(name string) fleet.Client {
	c, err := fleet.Find(name)
	if err != nil {
		panic(err)
	}
	return c
}

// prompt is the library with other numbers.
func prompt(p backoff.Adaptive) fleet.Client { return fleet.Client{Policy: &p} }

// herd is n clients in w.
func (w world) herd(n int, c fleet.Client) fleet.Herd {
	return fleet.Herd{N: n, Client: c, Outage: fleet.Outage{Length: w.outage}, Server: fleet.Server{Capacity: capacity, Queue: w.queue, Backlog: w.backlog}}
}

// limit is the aim for t99.
func limit(s fleet.Summary) time.Duration { return s.Ideal*5/4 + 2*time.Second }

// aims shows t99 in seconds, dials per client and the peak, for herds of all sizes up to
// one.
func aims(m *tableMaker, c fleet.Client, largest int) table.Table {
	sizes := []int{1, 10, 100, 1000, 10_000, 100_000, 1_000_000}
	t := table.Table{{"outage, server"}}
	for _, n := range sizes {
		if n <= min(largest, m.largest) {
			t[0] = append(t[0], fmt.Sprintf("N = %d (at most %.2f s)", n, 1.25*float64(n)/capacity+2))
		}
	}
	for _, w := range worlds() {
		row := []string{w.name}
		for _, n := range sizes {
			if n <= min(largest, m.largest) {
				row = append(row, aim(m.average(w.herd(n, c)), n))
			}
		}
		m.row(&t, row...)
	}
	return t
}

// aim is one cell: t99, bold if it is too late; dials per client; the peak in
// percent of the herd.
func aim(s fleet.Summary, n int) string {
	cell := fleet.Seconds(s.T99, s.Watch, 2)
	if s.T99 == fleet.Never || s.T99 > limit(s) {
		cell = "**" + cell + "**"
	}
	cell += fmt.Sprintf("; %.1f", s.Dials)
	if n >= 1000 {
		cell += fmt.Sprintf("; %.1f %%", 100*s.Peak/float64(n))
	}
	return cell
}

// outagesTable shows what other outages do, before a server with Linux's backlog.
func outagesTable(m *tableMaker) table.Table {
	sizes := []int{1, 100, 10_000}
	t := table.Table{{"outage, drop 4096"}}
	for _, n := range sizes {
		t[0] = append(t[0], fmt.Sprintf("N = %d (at most %.2f s)", n, 1.25*float64(n)/capacity+2))
	}
	for _, o := range []fleet.Outage{
		{Down: fleet.Refused, Length: time.Second}, {Down: fleet.Refused, Length: 30 * time.Second}, {Down: fleet.Refused, Length: 5 * time.Minute},
		{Down: fleet.Silent, Length: 5 * time.Second}, {Down: fleet.Silent, Length: time.Minute},
		{Down: fleet.Stopped, Length: 5 * time.Second}, {Down: fleet.Stopped, Length: time.Minute},
		{Down: fleet.Swallowed, Length: 5 * time.Second}, {Down: fleet.Swallowed, Length: time.Minute},
		{Down: fleet.Unavailable, Length: 5 * time.Second}, {Down: fleet.Unavailable, Length: time.Minute},
	} {
		row := []string{fmt.Sprintf("%v, %v", o.Length, o.Down)}
		for _, n := range sizes {
			h := worlds()[0].herd(n, client("redial"))
			h.Outage = o
			row = append(row, aim(m.average(h), n))
		}
		m.row(&t, row...)
	}
	return t
}

// others compares clients: t99 over ideal and dials, with 10,000.
func others(m *tableMaker) table.Table {
	var columns []column
	for _, w := range worlds()[5:] {
		_, name, _ := strings.Cut(w.name, ", ")
		columns = append(columns, column{name, func(c fleet.Client) string {
			s := m.average(w.herd(10_000, c))
			return fmt.Sprintf("%s; %.1f", s.Ratio(), s.Dials)
		}})
	}
	return grid(m, "client, N = 10,000, outage 5 s", clients(), columns...)
}

// named is a client in a table.
type named struct {
	name string
	fleet.Client
}

// single is p with limits that grow with the outage, one dial at a time.
func single(p backoff.Policy) fleet.Client {
	return fleet.Client{Policy: fleet.Paced(p), OneConnection: true, Credit: -1}
}

// fullJitter is what most would write.
func fullJitter() fleet.Client {
	p := backoff.First(2*time.Second, &backoff.Exponential{OverloadCap: 5 * time.Minute})
	return fleet.Client{
		Policy:        backoff.WithTimeouts(p, backoff.Timeout{Base: 15 * time.Second}, backoff.Timeout{}),
		OneConnection: true,
		Credit:        -1,
	}
}

// waitsTable is the frontier between coming back soon and dialing little.
func waitsTable(m *tableMaker) table.Table {
	const second = time.Second
	var policies []named
	for _, base := range []time.Duration{2 * second, 2400 * time.Millisecond, 3 * second} {
		for _, share := range []float64{0.3, 0.4, 0.5, 0.6, 0.8, 1} {
			policies = append(policies, named{fmt.Sprintf("base %v, share %v", base, share), prompt(backoff.Adaptive{Base: base, Share: share})})
		}
	}
	for _, jitter := range []struct {
		name string
		backoff.Jitter
	}{{"full", backoff.JitterFull}, {"equal", backoff.JitterEqual}} {
		for _, base := range []time.Duration{second, 2400 * time.Millisecond} {
			for _, factor := range []float64{1.25, 1.5, 2} {
				policies = append(policies, named{fmt.Sprintf("%s jitter, base %v, x %v", jitter.name, base, factor),
					single(backoff.First(2*second, &backoff.Exponential{Base: base, Factor: factor, OverloadCap: time.Minute, Jitter: jitter.Jitter}))})
			}
		}
	}
	policies = append(policies, named{"decorrelated 1-30 s", single(backoff.First(2*second, &classic.Decorrelated{NoAtom: true}))})
	t := table.Table{{"waits", "worst t99 over the limit, N <= 10,000", "dials, restart, N = 10,000, reject 4096", "reject 50", "dials, 5 s, N = 1000", "N = 10,000, drop", "reject 4096", "reject 50"}}
	for _, p := range policies {
		worst, lost := 0.0, false
		dials := map[string]float64{}
		for _, w := range worlds() {
			if w.queue == fleet.Unbounded {
				continue
			}
			for _, n := range []int{1, 10, 100, 1000, 10_000} {
				s := m.average(w.herd(n, p.Client))
				worst = max(worst, s.T99.Seconds()/limit(s).Seconds())
				lost = lost || s.T99 == fleet.Never
				dials[fmt.Sprint(n, w.name)] = s.Dials
			}
		}
		at := func(n int, name string) string { return fmt.Sprintf("%.1f", dials[fmt.Sprint(n, name)]) }
		late := fmt.Sprintf("%.2f", worst)
		if lost {
			late = "a herd is not back in time"
		}
		m.row(&t, p.name, late, at(10_000, "0s, reject 4096"), at(10_000, "0s, reject 50"),
			at(1000, "5s, drop 4096"), at(10_000, "5s, drop 4096"), at(10_000, "5s, reject 4096"), at(10_000, "5s, reject 50"))
	}
	return t
}

// firstTable is the frontier between a lone client's blip and the peak.
func firstTable(m *tableMaker) table.Table {
	ms := time.Millisecond
	policies := []named{{"full jitter after [0, 2s)", fullJitter()}}
	for _, spread := range []time.Duration{1500 * ms, 1800 * ms, 2000 * ms, 2200 * ms, 2500 * ms, 3000 * ms, 5000 * ms} {
		policies = append(policies, named{fmt.Sprintf("[0, %v), again in its second half", spread), prompt(backoff.Adaptive{Spread: spread})})
	}
	policies = append(policies,
		named{"as the default was: the second dial not a tenth later", client("paced")},
		named{"[0, 2s), then [0.5s, 1s)", single(backoff.First(2*time.Second, &backoff.Exponential{Jitter: backoff.JitterEqual}))},
		named{"[0, 2s), then [1.2s, 2.4s)", single(backoff.First(2*time.Second, &backoff.Exponential{Base: 2400 * ms, Factor: 1.25, Jitter: backoff.JitterEqual}))})
	peak := func(title string, world, n int) column {
		return column{title, func(c fleet.Client) string {
			return fmt.Sprintf("%.1f %%", 100*m.average(worlds()[world].herd(n, c)).Peak/float64(n))
		}}
	}
	return grid(m, "first waits", policies,
		column{"lone client, 1 s away: back after (median)", func(c fleet.Client) string {
			blip := fleet.Herd{N: 1, Client: c, Outage: fleet.Outage{Length: time.Second}, Server: fleet.Server{Capacity: capacity}, Watch: time.Minute, Seed: 1}
			s, err := fleet.Average(m.ctx, blip, 5000, m.workers, nil)
			m.err = cmp.Or(m.err, err)
			return fmt.Sprintf("%.2f s", 1+s.Median.Seconds())
		}},
		peak("peak, restart, N = 1000", 0, 1000), peak("N = 10,000", 0, 10_000), peak("peak, 5 s refused, N = 1000", 5, 1000), peak("N = 10,000", 5, 10_000),
		column{"server dies twice: second peak", func(c fleet.Client) string {
			twice := fleet.Herd{N: 1000, Client: c, Outage: fleet.Outage{Again: 4 * time.Second}, Server: fleet.Server{Capacity: 5000}}
			return fmt.Sprintf("%.1f %%", m.average(twice).PeakAgain/10)
		}})
}

// gatesTable shows what it changes when connections share a process and its gate.
func gatesTable(m *tableMaker) table.Table {
	t := table.Table{{"N = 10,000"}}
	var served []world
	for _, w := range worlds() {
		if w.queue == fleet.Unbounded || w.queue == fleet.Reject && w.backlog > capacity {
			continue
		}
		served = append(served, w)
		t[0] = append(t[0], w.name)
	}
	full := world{"", fleet.Busy, capacity / 10, 0}
	var rejecting []fleet.Server
	for _, wait := range []time.Duration{3 * time.Second, 120 * time.Second, 0} {
		s := full.herd(1, fleet.Client{}).Server
		s.RetryAfter, s.Status429 = wait, wait == 0
		rejecting = append(rejecting, s)
	}
	t[0] = append(t[0], "0s, 503 50, told 3 s", "told 120 s", "0s, 429 50")
	for _, g := range []struct {
		name      string
		processes int
		options   line.Options
	}{
		{"no gate", 0, line.Options{}},
		{"1000 processes of 10", 1000, line.Options{}},
		{"100 of 100", 100, line.Options{}},
		{"10 of 1000", 10, line.Options{}},
		{"1 of 10,000", 1, line.Options{}},
		{"1 of 10,000, Rate 50", 1, line.Options{Rate: 50}},
		{"1 of 10,000, no Rate", 1, line.Options{Rate: -1}},
		{"1 of 10,000, no Rate, Concurrent 256", 1, line.Options{Rate: -1, Concurrent: 256}},
		{"1 of 10,000, no Rate, no Concurrent", 1, line.Options{Rate: -1, Concurrent: -1}},
	} {
		row := []string{g.name}
		for _, w := range served {
			h := w.herd(10_000, client("redial"))
			h.Processes, h.Gate = g.processes, g.options
			row = append(row, aim(m.average(h), h.N))
		}
		for _, s := range rejecting {
			h := full.herd(10_000, client("redial"))
			h.Server, h.Processes, h.Gate = s, g.processes, g.options
			row = append(row, aim(m.average(h), h.N))
		}
		m.row(&t, row...)
	}
	return t
}
