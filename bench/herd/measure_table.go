package herd

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/bench/internal/table"
)

// Show prints a line per policy, and what the table does not say.
func (o *realHerd) Show(w io.Writer) error {
	if len(o.results) == 0 {
		return nil
	}
	if backlog := o.results[0].Backlog; backlog > 0 {
		fmt.Fprintf(w, "backlog of the server: %d connections (net.core.somaxconn)\n", backlog)
	}
	all := lab.ByClient(o.results)
	err := o.times(all).Print(w)
	if err == nil && o.Scene != lab.Restart {
		err = o.away(all).Print(w)
	}
	o.remarks(w, o.results)
	return err
}

// times has a row per policy.
func (o *realHerd) times(all []lab.Rounds) table.Table {
	t := table.Table{
		{"policy", "t50", "t99", "t100", "t99/ideal", "peak dials", "arrivals", "dials", "refused", "timed out", "wasted", "recovered", "down at end"},
		{"", "", "", "", "", "per 100 ms", "per 100 ms", "per client", "per client", "per client", "per client", "", ""},
	}
	for _, rounds := range all {
		watched := rounds.Watched()
		moment := func(of func(*lab.Result) time.Duration) string {
			if d := rounds.Moment(of); d != fleet.Never {
				return reached(d)
			}
			return fleet.NotWithin(watched)
		}
		figure := func(digits int, of func(*lab.Result) float64) string {
			return fmt.Sprintf("%.*f", digits, rounds.Median(of))
		}
		t99 := func(r *lab.Result) time.Duration { return r.T99 }
		ratio := "-"
		if ideal := rounds[0].Ideal; ideal > 0 && rounds.Moment(t99) == fleet.Never {
			ratio = fleet.NotWithin(watched)
		} else if ideal > 0 {
			ratio = fmt.Sprintf("%.2f", float64(rounds.Moment(t99))/float64(ideal))
		}
		arrivals := figure(0, func(r *lab.Result) float64 { return float64(r.PeakIn) })
		late := figure(2, func(r *lab.Result) float64 { return r.TimedOut })
		wasted := figure(2, func(r *lab.Result) float64 { return r.Wasted })
		if o.URL != "" { // what that server sees is unknown
			arrivals, wasted = "-", "-"
		}
		if o.simulate { // which does not count these
			arrivals, late = "-", "-"
		}
		t.Row(rounds[0].Client, moment(func(r *lab.Result) time.Duration { return r.T50 }), moment(t99),
			moment(func(r *lab.Result) time.Duration { return r.T100 }), ratio,
			figure(0, func(r *lab.Result) float64 { return float64(r.Peak) }), arrivals,
			figure(2, func(r *lab.Result) float64 { return r.Dials }), figure(2, func(r *lab.Result) float64 { return r.Refused }), late, wasted,
			fmt.Sprintf("%d of %d", rounds.Recovered(), len(rounds)), figure(0, func(r *lab.Result) float64 { return float64(r.N - r.Up) }))
	}
	return t
}

// away has a row per policy for a scene in which clients may be away several times.
func (o *realHerd) away(all []lab.Rounds) table.Table {
	t := table.Table{{"policy", "up until the last return", "away in all: mean", "p99", "most"}}
	for _, rounds := range all {
		up := fmt.Sprintf("%.0f %%", 100*rounds.Median(func(r *lab.Result) float64 { return r.UpShare }))
		if o.Scene == lab.Half { // where the servers are back at once
			up = "-"
		}
		t.Row(rounds[0].Client, up, reached(rounds.Moment(func(r *lab.Result) time.Duration { return fleet.Mean(r.Away) })),
			reached(rounds.Moment(func(r *lab.Result) time.Duration { return fleet.Quantile(r.Away, 0.99) })),
			reached(rounds.Moment(func(r *lab.Result) time.Duration { return fleet.Quantile(r.Away, 1) })))
	}
	return t
}

// remarks prints what the table does not show: limits on a dial that we chose, runs that
// were cut, and what was no measurement.
func (o *realHerd) remarks(w io.Writer, results []*lab.Result) {
	var lent []string
	for _, c := range o.clients {
		if c.Lent {
			lent = append(lent, c.Name)
		}
	}
	if len(lent) > 0 {
		fmt.Fprintf(w, "no limit of their own on a dial, and %v here: %s\n", fleet.LentLimit, strings.Join(lent, ", "))
	}
	local := 0
	for _, r := range results {
		local += r.Local
		if r.Cut {
			fmt.Fprintf(w, "%s, cut after %v: %d of %d up, t50 %s, t99 %s, %.2f dials per client\n",
				r.Client, r.Watched.Round(100*time.Millisecond), r.Up, r.N, reached(r.T50), reached(r.T99), r.Dials)
		}
		if o.URL != "" {
			fmt.Fprintf(w, "%s: times count from when the first was back, %.2f s after the first loss\n", r.Client, r.Outage.Seconds())
		}
	}
	if local > 0 {
		fmt.Fprintf(w, "NO MEASUREMENT: for %d dials this machine had no socket or port\n", local)
	}
}

// reached returns a time as text.
func reached(d time.Duration) string {
	if d == fleet.Never {
		return "not reached"
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
