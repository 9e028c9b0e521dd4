package herd

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lab"
)

// Show prints a line per policy, and what the table does not say.
func (o *realHerd) Show(w io.Writer) error {
	if len(o.results) == 0 {
		return nil
	}
	if err := o.table(w, lab.Summarise(o.results), o.results[0].Backlog); err != nil {
		return err
	}
	o.remarks(w, o.results)
	return nil
}

// table prints a line per policy.
func (o *realHerd) table(w io.Writer, all []lab.Summary, backlog int) error {
	if backlog > 0 {
		fmt.Fprintf(w, "backlog of the server: %d connections (net.core.somaxconn)\n", backlog)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "t50\tt99\tt100\tt99/ideal\tpeak dials\tarrivals\tdials\trefused\ttimed out\twasted\trecovered\tdown at end\t  policy")
	fmt.Fprintln(t, "\t\t\t\tper 100 ms\tper 100 ms\tper client\tper client\tper client\tper client\t\t\t")
	for _, s := range all {
		ratio := "-"
		switch r := s.Ratio(); {
		case math.IsInf(r, 1):
			ratio = fleet.NotWithin(s.Watched)
		case !math.IsNaN(r):
			ratio = fmt.Sprintf("%.2f", r)
		}
		arrivals, late, wasted := fmt.Sprintf("%.0f", s.PeakIn), fmt.Sprintf("%.2f", s.TimedOut), fmt.Sprintf("%.2f", s.Wasted)
		if o.URL != "" { // what that server sees is unknown
			arrivals, wasted = "-", "-"
		}
		if o.simulate { // which does not count these
			arrivals, late = "-", "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.0f\t%s\t%.2f\t%.2f\t%s\t%s\t%d of %d\t%.0f\t  %s\n",
			moment(s.T50, s.Watched), moment(s.T99, s.Watched), moment(s.T100, s.Watched), ratio, s.Peak, arrivals, s.Dials, s.Refused, late, wasted,
			s.Recovered, s.Runs, s.Down, s.Client)
	}
	if err := t.Flush(); err != nil || o.Scene == lab.Restart {
		return err
	}
	fmt.Fprintln(t, "up until the\taway in all:\t\t\t")
	fmt.Fprintln(t, "last return\tmean\tp99\tmost\t  policy")
	for _, s := range all {
		up := fmt.Sprintf("%.0f %%", 100*s.UpShare)
		if o.Scene == lab.Half { // where the servers are back at once
			up = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t  %s\n", up, reached(s.AwayMean), reached(s.AwayP99), reached(s.AwayMost), s.Client)
	}
	return t.Flush()
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

// moment returns a time of runs, which were watched for so long, as text.
func moment(d, watched time.Duration) string {
	if d == fleet.Never {
		return fleet.NotWithin(watched)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// reached returns a time as text.
func reached(d time.Duration) string {
	if d == fleet.Never {
		return "not reached"
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
