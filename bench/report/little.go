package report

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/redial-go/redial/bench/articles/queueing"
	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/table"
)

// littleScenario is the scenario of which the two sides of Little's law are drawn.
const littleScenario = "exponential_backoff_just_delays_problem_open_loop"

// The two sides of the law.
var (
	counted = chart.Style{Name: "calls under way, counted: L", Color: chart.Sky, Width: 3.2}
	derived = chart.Style{Name: "calls that end per second x their time in the system", Color: chart.Vermillion, Width: 1.4}
	rates   = chart.Style{Name: "calls that end per second", Color: chart.Green}
	stays   = chart.Style{Name: "their time in the system, from arrival to end", Color: chart.Purple}
)

// drawLittle draws calls under way, rate and time in the system side by side, for the first two
// strategies of a scenario.
func drawLittle(ctx context.Context, o Options, s queueing.Scenario) (*Figure, error) {
	pic := &chart.Picture{
		Name: "queueing_little", Columns: min(2, len(s.Strategies)), Height: 130,
		Title:  "Little's law: calls under way = rate x time in the system",
		Legend: []chart.Style{counted, derived, rates, stays, failing},
	}
	rows := table.Table{{"strategy", "at", "calls under way", "rate x time", "calls that end per second", "time in the system"}}
	var all []*queueing.Series
	var names []string
	for _, y := range s.Strategies[:pic.Columns] {
		series, err := queueing.Collect(ctx, queueing.Setup{Scenario: s, Strategy: y, RPS: o.RPS, Seed: o.Seed, Bucket: queueing.FineBucket}, o.Seeds, nil)
		if err != nil {
			return nil, err
		}
		all, names = append(all, series), append(names, y.Name)
		rows = append(rows, littleRows(s, series)...)
	}
	pic.Note = scenarioNote(s, all[0], s.Full(o.RPS))
	for i, q := range []struct {
		title, label string
		lines        []chart.Style
		of           []func(*queueing.Row) float64
	}{
		{"calls under way", "calls", []chart.Style{counted, derived}, []func(*queueing.Row) float64{func(r *queueing.Row) float64 { return r.UnderWay }, (*queueing.Row).Little}},
		{"rate", "calls that end per second", []chart.Style{rates}, []func(*queueing.Row) float64{func(r *queueing.Row) float64 { return r.Rate }}},
		{"time in the system", "ms", []chart.Style{stays}, []func(*queueing.Row) float64{func(r *queueing.Row) float64 { return r.InSystem }}},
	} {
		top := 0.0
		for _, y := range all {
			var lines []chart.Line
			for n, of := range q.of {
				lines = append(lines, scenarioLine(s, y, q.lines[n], of))
			}
			p := overTime(s.Length.Seconds(), s.Failure.From.Seconds(), s.Failure.To.Seconds(), lines)
			p.Title, p.Y.Label = y.Strategy+": "+q.title, q.label
			if p.X.Bare = i < 2; !p.X.Bare {
				p.X.Label = "time, s"
			}
			top = max(top, p.Y.Max)
			pic.Panels = append(pic.Panels, p)
		}
		for _, p := range pic.Panels[len(pic.Panels)-len(all):] {
			p.Y.Max = top
		}
	}
	return &Figure{
		Title: "Little's law",
		Text: []string{"In any system the calls under way are the rate at which calls come times the time that they stay, L = lambda W (J. D. C. Little, 1961). Here all three are counted on their own. " +
			"The two sides are one where as much comes as goes, in the failure too. They part while the calls under way become more, since the calls that end have come before, and the other way round while they become fewer. " +
			"Over a whole run, which begins and ends without calls, they are the same to the nanosecond."},
		Pictures: []*chart.Picture{pic},
		Tables:   []table.Table{rows},
		Commands: scenarioCommands(o, s, " -strategy "+strings.Join(names, ",")+" -csv -"),
	}, nil
}

// littleRows are the two sides before, in and after the failure.
func littleRows(s queueing.Scenario, y *queueing.Series) (rows table.Table) {
	last := s.Length - runOut(s.Length, y.RPS) - 2*y.Bucket
	for _, at := range []float64{s.Failure.From.Seconds() - 0.1, (s.Failure.From + s.Failure.To).Seconds() / 2, s.Failure.To.Seconds() - 0.02, s.Failure.To.Seconds() + 0.2, last.Seconds()} {
		i := int(math.Round(at / y.Bucket.Seconds()))
		if i < 0 || i >= len(y.Rows) {
			continue
		}
		r := &y.Rows[i]
		rows = append(rows, []string{y.Strategy, fmt.Sprintf("%.2f s", r.T.Seconds()), decimal(r.UnderWay, 0), decimal(r.Little(), 0), decimal(r.Rate, 0), decimal(r.InSystem, 1) + " ms"})
	}
	return rows
}
