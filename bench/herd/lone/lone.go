// Package lone shows how late a single client is back, by circumstance and by policy. It
// drives package fleet with a server that has room for everybody at once, so that clients
// do not meet.
package lone

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/parallel"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/bench/internal/table"
)

// Circumstance is a row of the table: what happens to a client, and what is shown of it.
type Circumstance struct {
	Name   string
	Wanted string // median / p95 in s, as far as there is a wish
	Herd   fleet.Herd
	Show   func(o *Result) string // the text of a cell
}

// Result is what came of the runs of a [Circumstance] with one kind of client.
type Result struct {
	Late, Away []time.Duration // of all clients of all runs, sorted; fleet.Never is last
	Up, Rate   float64         // means: share of the time up, and dials per second
}

// Side is how many clients share a run. They do not meet, because the server has room for
// all at once: each is a lone client.
const Side = 25

// Run simulates lone clients of a kind that meet the circumstance, [Side] of them for each seed. The
// seeds count up from first. For a client without a limit of its own on a dial, Run tries each of its
// Lendings, and returns the result of the one that is back the soonest.
func (r *Circumstance) Run(ctx context.Context, c fleet.Client, seeds int, first uint64) (best *Result, err error) {
	for _, l := range c.Lendings() {
		o, err := r.run(ctx, l, seeds, first)
		if err != nil {
			return nil, err
		}
		if best == nil || o.compare(best) < 0 {
			best = o
		}
	}
	return best, nil
}

// compare returns a negative number if o is back before b. It compares the median of Late, then its p95, the mean of
// Away, and Rate.
func (o *Result) compare(b *Result) int {
	return cmp.Or(
		fleet.CompareTimes(fleet.Quantile(o.Late, 0.5), fleet.Quantile(b.Late, 0.5)),
		fleet.CompareTimes(fleet.Quantile(o.Late, 0.95), fleet.Quantile(b.Late, 0.95)),
		fleet.CompareTimes(fleet.Mean(o.Away), fleet.Mean(b.Away)),
		cmp.Compare(o.Rate, b.Rate),
	)
}

// run is like Run, but simulates c with the limit that it has.
func (r *Circumstance) run(ctx context.Context, c fleet.Client, seeds int, first uint64) (*Result, error) {
	h := r.Herd
	h.Client = c
	h.N = cmp.Or(h.N, Side)
	h.Server.Capacity, h.Server.Answers = cmp.Or(h.Server.Capacity, 1e9), 1e9
	var o Result
	for seed := range seeds {
		h.Seed = first + uint64(seed)
		one, err := fleet.Run(ctx, h)
		if err != nil {
			return nil, err
		}
		o.Late = append(o.Late, one.Late...)
		o.Away = append(o.Away, one.Away...)
		o.Up += one.UpShare / float64(seeds)
		o.Rate += one.DialRate / float64(seeds)
	}
	fleet.SortTimes(o.Late)
	fleet.SortTimes(o.Away)
	return &o, nil
}

// RunAll returns the result of each circumstance (first index) with each client, several at a time.
// It calls each after every one of them, several at a time. What it returns does not depend on
// workers. If it returns an error, the results that are missing are nil.
func RunAll(ctx context.Context, rows []Circumstance, clients []fleet.Client, seeds int, first uint64, workers int, each func()) ([][]*Result, error) {
	all := make([][]*Result, len(rows))
	for i := range all {
		all[i] = make([]*Result, len(clients))
	}
	err := parallel.Do(ctx, len(rows)*len(clients), workers, func(n int) (err error) {
		i, j := n/len(clients), n%len(clients)
		all[i][j], err = rows[i].Run(ctx, clients[j], seeds, first)
		each()
		return err
	})
	return all, err
}

// Table returns the results as a table of circumstance by client. A nil result is a dash, and a row of such
// is left out.
func Table(rows []Circumstance, clients []fleet.Client, all [][]*Result) table.Table {
	t := table.Table{append([]string{"circumstance", "wanted"}, pick.Names(clients, fleet.NameOf)...)}
	for i, r := range rows {
		if !slices.ContainsFunc(all[i], func(o *Result) bool { return o != nil }) {
			continue
		}
		t.Row(append([]string{r.Name, r.Wanted}, pick.Names(all[i], func(o *Result) string {
			if o == nil {
				return "-"
			}
			return r.Show(o)
		})...)...)
	}
	return t
}

// Figure returns a time in s with as many digits as say something, or "never".
func Figure(d time.Duration) string {
	switch s := d.Seconds(); {
	case d == fleet.Never:
		return "never"
	case s < 9.95:
		return fmt.Sprintf("%.1f", s)
	default:
		return fmt.Sprintf("%.0f", s)
	}
}

// Quantiles returns some of times that are sorted, as text.
func Quantiles(times []time.Duration, shares ...float64) (text string) {
	for i, share := range shares {
		if i > 0 {
			text += " / "
		}
		text += Figure(fleet.Quantile(times, share))
	}
	return text
}

// HowLate returns the median and the p95 of how late a client is back.
func HowLate(o *Result) string { return Quantiles(o.Late, 0.5, 0.95) }

// HowLongAway returns the mean, the p99 and the longest of the times for which clients were
// away, which are sorted.
func HowLongAway(away []time.Duration) string {
	return Figure(fleet.Mean(away)) + " / " + Quantiles(away, 0.99, 1)
}

// howOften returns for how much of the time a client was up, and how often it dialed.
func howOften(o *Result) string { return fmt.Sprintf("%.0f %%, %.2f/s", 100*o.Up, o.Rate) }
