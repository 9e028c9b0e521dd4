package report

import (
	"context"
	"fmt"

	"github.com/redial-go/redial/bench/articles/contention"
	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/table"
)

// The original's sizes.
const (
	contentionStep  = 10
	contentionSizes = 19
)

// contentionRuns is how many runs a point is the mean of: 100 as in the original, fewer if
// less than three seeds are wanted.
func contentionRuns(o Options) int { return min(100, 34*o.Seeds) }

// contentionPlan is the chapter of AWS's model.
func contentionPlan(o Options) plan {
	return plan{
		id: "aws", title: "AWS: clients that must each win one write on one row",
		text: []string{"N clients begin at once; each reads a row and writes it if nobody else has done so since, else it waits and begins again. A message takes about 10 ms; base 5 ms, cap 2 s."},
		figures: []drawing{func(ctx context.Context) (*Figure, error) {
			return drawContention(ctx, o)
		}},
	}
}

func drawContention(ctx context.Context, o Options) (*Figure, error) {
	limits := chart.Axis{Max: contentionStep * contentionSizes, Label: "clients, N"}
	calls := &chart.Panel{Title: "Calls: writes that reached the row", X: limits, Y: chart.Axis{Min: 10, Max: 10_000, Log: true, Label: "calls, log scale"}}
	times := &chart.Panel{Title: "Time until the last has won", X: limits, Y: chart.Axis{Min: 0.1, Max: 100, Log: true, Label: "seconds, log scale"}}
	pic := &chart.Picture{
		Name: "aws", Columns: 2, Height: 240, Panels: []*chart.Panel{calls, times},
		Title: "Jitter needs the fewest calls; without backoff all is done first, with the most calls",
		Note:  fmt.Sprintf("Mean of %d runs for each point. Simulated", contentionRuns(o)),
	}
	head := []string{"rule"}
	for _, n := range []int{50, 100, 190} {
		head = append(head, fmt.Sprintf("calls, N = %d", n), fmt.Sprintf("ms, N = %d", n))
	}
	rows := table.Table{head}
	for _, p := range contention.Policies() {
		style := styleOf(p.Name)
		c, t := chart.Line{Style: style}, chart.Line{Style: style}
		row := []string{p.Name}
		for i := range contentionSizes {
			n := contentionStep * (i + 1)
			y, err := contention.Mean(ctx, p.Policy, n, contentionRuns(o), o.Seed)
			if err != nil {
				return nil, err
			}
			c.Points = append(c.Points, chart.Point{X: float64(n), Y: y.Calls})
			t.Points = append(t.Points, chart.Point{X: float64(n), Y: y.Time.Seconds()})
			times.Y.Max = max(times.Y.Max, chart.RoundUp(y.Time.Seconds()))
			if n == 50 || n == 100 || n == 190 {
				row = append(row, decimal(y.Calls, 0), decimal(y.Time.Seconds()*1000, 0))
			}
		}
		calls.Layers, times.Layers = append(calls.Layers, c), append(times.Layers, t)
		pic.Legend = append(pic.Legend, style)
		rows.Row(row...)
	}
	return &Figure{Title: "Contention", Pictures: []*chart.Picture{pic}, Tables: []table.Table{rows}}, nil
}
