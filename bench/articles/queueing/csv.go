package queueing

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redial-go/redial/bench/internal/table"
)

// CSV returns series with the columns of the calibration series in testdata, and those that it lacks
// after them: numbers to two digits, nothing for what is not defined.
func CSV(series []*Series) table.Table {
	t := table.Table{{
		"scenario", "strategy", "rps", "seeds", "t_s",
		"amplification_pct", "amplification_sd", "server_ok_pct", "client_done_pct", "client_ok_pct",
		"client_p50_ms", "client_p99_ms", "queue_avg", "queue_max", "cpu_pct",
		"first_ok_pct", "first_failed_pct", "retry_ok_pct", "retry_failed_pct", "offered_pct", "unmet",
		"refused_pct", "under_way", "ended_per_s", "in_system_ms", "little",
	}}
	for _, s := range series {
		digits := 2
		if s.Bucket%(10*time.Millisecond) != 0 {
			digits = 3
		}
		for _, r := range s.Rows {
			row := []string{s.Scenario.Name, s.Strategy, strconv.Itoa(s.RPS), strconv.Itoa(s.Seeds), fmt.Sprintf("%.*f", digits, r.T.Seconds())}
			for _, x := range []float64{
				r.Amplification, r.AmplificationSD, r.ServerOK, r.ClientDone, r.ClientOK,
				r.P50, r.P99, r.QueueAvg, r.QueueMax, r.CPU,
				r.FirstOK, r.FirstFailed, r.RetryOK, r.RetryFailed, r.Offered, r.Unmet,
				r.Refused, r.UnderWay, r.Rate, r.InSystem, r.Little(),
			} {
				row = append(row, number(x))
			}
			t.Row(row...)
		}
	}
	return t
}

func number(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(math.Round(100*x)/100, 'f', -1, 64)
}

// Table returns a table with the summary of each series.
func Table(series []*Series) table.Table {
	t := table.Table{{
		"strategy", "load in failure", "peak 20 ms", "sent, peak", "load back", "success back", "success in failure", "of all", "up, of the time",
		"server's successes", "median, worst", "p99, worst", "queue, longest", "requests",
	}}
	for _, s := range series {
		y := s.Summary()
		t.Row(s.Strategy, fmt.Sprintf("%.0f %%", y.Load), fmt.Sprintf("%.0f %%", y.Peak), fmt.Sprintf("%.0f %%", y.Offered),
			s.Scenario.When(y.Back, y.IsBack), s.Scenario.When(y.SuccessBack, y.SuccessIsBack),
			table.Percent(y.Success), table.Percent(s.Success), table.Percent(y.Up), table.Percent(y.ServerUp),
			fmt.Sprintf("%.0f ms", y.P50), fmt.Sprintf("%.0f ms", y.P99), fmt.Sprintf("%.0f", y.Queue), fmt.Sprintf("%.0f", s.Requests))
	}
	return t
}
