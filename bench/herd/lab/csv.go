package lab

import (
	"fmt"
	"strconv"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/table"
)

// Runs returns a table with a row for each run. Its times are seconds from the server's return, and
// empty where they were not reached.
func Runs(results []*Result) table.Table {
	t := table.Table{{
		"policy", "round", "n", "ideal_s", "outage_s", "t50_s", "t99_s", "t100_s", "watched_s", "recovered", "cut", "up", "backlog",
		"peak_dials_100ms", "peak_arrivals_100ms", "dials", "refused", "timed_out", "wasted", "local_failures",
		"scene", "up_share", "away_mean_s", "away_p99_s", "away_most_s",
	}}
	for _, r := range results {
		t.Row(r.Client, strconv.Itoa(r.Round), strconv.Itoa(r.N), inSeconds(r.Ideal), inSeconds(r.Outage),
			inSeconds(r.T50), inSeconds(r.T99), inSeconds(r.T100), inSeconds(r.Watched),
			strconv.FormatBool(r.Recovered()), strconv.FormatBool(r.Cut), strconv.Itoa(r.Up), strconv.Itoa(r.Backlog),
			strconv.Itoa(r.Peak), strconv.Itoa(r.PeakIn), each(r.Dials), each(r.Refused), each(r.TimedOut), each(r.Wasted), strconv.Itoa(r.Local),
			r.Scene.String(), each(r.UpShare), inSeconds(fleet.Mean(r.Away)), inSeconds(fleet.Quantile(r.Away, 0.99)), inSeconds(fleet.Quantile(r.Away, 1)))
	}
	return t
}

// Series returns a table with a row for each run and [fleet.Bin]; t_s is the bin's beginning, in
// seconds from the loss.
func Series(results []*Result) table.Table {
	t := table.Table{{"policy", "round", "t_s", "dials", "admitted", "rejected", "waiting", "up"}}
	for _, r := range results {
		for i, b := range r.Bins {
			row := []string{r.Client, strconv.Itoa(r.Round), fmt.Sprintf("%.1f", (time.Duration(i) * fleet.Bin).Seconds())}
			for _, n := range []int{b.Dials, b.Admitted, b.Rejected, b.Waiting, b.Up} {
				row = append(row, strconv.Itoa(n))
			}
			t.Row(row...)
		}
	}
	return t
}

func inSeconds(d time.Duration) string {
	if d == fleet.Never {
		return ""
	}
	return fmt.Sprintf("%.3f", d.Seconds())
}

func each(x float64) string { return fmt.Sprintf("%.3f", x) }
