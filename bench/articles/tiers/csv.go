package tiers

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redial-go/redial/bench/internal/table"
)

// Series returns a row for each bucket and tier: numbers to two digits.
func Series(results []*Result) table.Table {
	t := table.Table{{
		"scenario", "strategy", "rps", "seed", "t_s", "let_in_pct", "arrived", "ended", "succeeded", "turned_away",
		"tier", "load_pct", "completed", "refused", "queue_max", "cpus",
	}}
	for _, r := range results {
		s, y := &r.Setup.Scenario, &r.Setup.Strategy
		for i, b := range r.Buckets {
			at := time.Duration(i) * s.Bucket
			for tier, x := range b.Tiers {
				t.Row(s.Name, y.Name, strconv.Itoa(r.Setup.RPS), strconv.FormatUint(r.Setup.Seed, 10), number(at.Seconds()), number(100*y.Admission.Admits(at)),
					strconv.Itoa(b.Arrived), strconv.Itoa(b.Ended), strconv.Itoa(b.Succeeded), strconv.Itoa(b.Turned),
					s.Tiers[tier].Name, number(r.Load(i, tier)), strconv.Itoa(x.Completed), strconv.Itoa(x.Refused), strconv.Itoa(x.Queue), strconv.Itoa(x.CPUs))
			}
		}
	}
	return t
}

func number(x float64) string { return strconv.FormatFloat(math.Round(100*x)/100, 'f', -1, 64) }

// Table returns a table with the summary of each result of a scenario.
func Table(results []*Result) table.Table {
	s := &results[0].Setup.Scenario
	head := []string{"strategy"}
	for _, one := range s.Tiers {
		head = append(head, one.Name+": in failure", "peak", "queue")
		if one.Scaling != nil {
			head = append(head, "CPUs, most", "CPUs, mean")
		}
	}
	t := table.Table{append(head, "load back", "success back", "up, of the time", "success of all", "calls lost", "as many arrive in")}
	for _, r := range results {
		y := r.Summary()
		row := []string{r.Setup.Strategy.Name}
		for i := range s.Tiers {
			row = append(row, fmt.Sprintf("%.0f %%", y.Load[i]), fmt.Sprintf("%.0f %%", y.Peak[i]), strconv.Itoa(y.Queue[i]))
			if s.Tiers[i].Scaling != nil {
				row = append(row, fmt.Sprintf("%.1f times", y.CPUs[i]), fmt.Sprintf("%.1f times", y.CPUsMean[i]))
			}
		}
		t.Row(append(row, s.When(y.LoadBack, y.LoadIsBack), s.When(y.SuccessBack, y.SuccessIsBack), table.Percent(y.Up), table.Percent(y.Success),
			strconv.Itoa(y.Lost), s.When(y.LostFor, true))...)
	}
	return t
}
