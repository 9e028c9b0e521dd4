package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/articles/queueing"
	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/table"
)

// queueingPlan is the chapter of package queueing: a figure per scenario.
func queueingPlan(o Options) plan {
	scenarios := slices.Concat(queueing.Scenarios(), queueing.MoreScenarios())
	if o.Scenario != "" {
		s, _ := queueing.Find(o.Scenario) // Validate has found it, or nothing of this chapter is drawn
		scenarios = []queueing.Scenario{s}
	}
	p := plan{id: "queueing", title: "Retries before one server with a queue", text: []string{
		fmt.Sprintf("The scenarios of \"Good Retry, Bad Retry: An Incident Story\" (D. Isaev, 2024). %s calls per second come to a server with one queue, which fails for a while. What a caller does about a failed request is the strategy. "+
			"Load counts the requests that the server ends, so it cannot exceed what the CPUs can do, but for requests that it drops unserved (deadline propagation); the tables have what was sent as well. "+
			"Success counts the calls that end at that time: callers who still wait, for a retry or for a permit, are in the panel beside the CPUs. The server's successes count what it has done well, also for callers who have given up. The time of a call counts from its first request, so that a wait for a permit is not in it. "+
			"Errors are gone when at least 95 %% of the calls that end succeed, and stay so; a service is up in a step of 20 ms in which that is so. "+
			"The second picture parts the load: first tries and retries, and of each those that succeeded while their caller waited from those that failed or came too late. "+
			"The last scenarios are not the article's: they compare its budget with those of gRPC, AWS and Envoy, limits at the callers and at the server, and a breaker with the ejection of a host. "+
			"Steps of 20 ms, mean of %s; the lines end where the calls, whose number is fixed, may have run out.", chart.Number(float64(o.RPS)), cli.Plural(o.Seeds, "seed")),
	}}
	for _, s := range scenarios {
		p.figures = append(p.figures, func(ctx context.Context) (*Figure, error) { return drawScenario(ctx, o, s) })
		if o.Scenario != "" || s.Name == littleScenario {
			p.figures = append(p.figures, func(ctx context.Context) (*Figure, error) { return drawLittle(ctx, o, s) })
		}
	}
	return p
}

func drawScenario(ctx context.Context, o Options, s queueing.Scenario) (*Figure, error) {
	var all []*queueing.Series
	for _, y := range s.Strategies {
		one := queueing.Setup{Scenario: s, Strategy: y, RPS: o.RPS, Seed: o.Seed, Bucket: queueing.FineBucket}
		series, err := queueing.Collect(ctx, one, o.Seeds, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, series)
	}
	f := &Figure{
		Title:    s.Name,
		Pictures: []*chart.Picture{scenarioPicture(s, all), triesPicture(s, all)},
		Tables:   []table.Table{queueing.Table(all)},
		Commands: scenarioCommands(o, s, ""),
	}
	if s.Claim != "" {
		f.Text = append(f.Text, "The article's claim: "+s.Claim)
	}
	return f, nil
}

// scenarioCommands are the commands that print the table of a scenario, with more flags, and that draw it.
func scenarioCommands(o Options, s queueing.Scenario, more string) []string {
	flags := fmt.Sprintf("-scenario %s -rps %d -seeds %d -seed %d", cmp.Or(o.Scenario, s.Name), o.RPS, o.Seeds, o.Seed)
	return []string{fmt.Sprintf("go run . sim %s -bucket %v%s", flags, queueing.FineBucket, more), "go run . report " + flags + " -out DIR"}
}

// scenarioPicture is load, success, latency, the queue, busy CPUs and unmet calls over time.
func scenarioPicture(s queueing.Scenario, all []*queueing.Series) *chart.Picture {
	full := s.Full(all[0].RPS)
	pic := &chart.Picture{
		Name:    "queueing_" + fileName(s.Name),
		Title:   cmp.Or(s.Title, s.Name),
		Note:    scenarioNote(s, all[0], full),
		Columns: 2, Height: 120,
	}
	styles := stylesOf(all)
	pic.Legend = append(pic.Legend, styles...)
	pic.Legend = append(pic.Legend, failing, normal, capacity)

	for i, q := range []struct {
		title, label string
		most         float64 // of the Y axis; 0: as much as there is
		levels       []chart.Layer
		of           func(*queueing.Row) float64
	}{
		{"Load on the server", "% of normal", 0, []chart.Layer{chart.Level{Style: normal, Y: 100}, chart.Level{Style: capacity, Y: full}},
			func(r *queueing.Row) float64 { return r.Amplification }},
		{"Calls that end with success", "% of those that end", 100, nil, func(r *queueing.Row) float64 { return r.ClientOK }},
		{"The server's successes", "% of what it ends", 100, nil, func(r *queueing.Row) float64 { return r.ServerOK }},
		{"The server's queue", "requests", 0, nil, func(r *queueing.Row) float64 { return r.QueueMax }},
		{"Median time of a call", "ms, retries included", 0, nil, func(r *queueing.Row) float64 { return r.P50 }},
		{"99th percentile of it", "ms", 0, nil, func(r *queueing.Row) float64 { return r.P99 }},
		{"Busy CPUs", "% of all", 100, []chart.Layer{chart.Level{Style: capacity, Y: 100}}, func(r *queueing.Row) float64 { return r.CPU }},
		{"Calls that have come and not ended", "calls", 0, nil, func(r *queueing.Row) float64 { return r.Unmet }},
	} {
		var lines []chart.Line
		for n, y := range all {
			lines = append(lines, scenarioLine(s, y, styles[n], q.of))
		}
		p := overTime(s.Length.Seconds(), s.Failure.From.Seconds(), s.Failure.To.Seconds(), lines, q.levels...)
		p.Title, p.Y.Label = q.title, q.label
		p.Y.Max = cmp.Or(q.most, p.Y.Max)
		if i == 0 {
			p.Y.Max = max(p.Y.Max, chart.RoundUp(1.02*full))
		}
		if p.X.Bare = i < 6; !p.X.Bare {
			p.X.Label = "time, s"
		}
		pic.Panels = append(pic.Panels, p)
	}
	return pic
}

// stylesOf are the styles of the strategies of a picture. Those of a user's own may be of one family: the
// second of them is dashed, the third dotted, and so on with less of a difference.
func stylesOf(all []*queueing.Series) (styles []chart.Style) {
	seen := map[string]int{}
	for _, y := range all {
		s := styleOf(y.Strategy)
		look := fmt.Sprint(s.Color, s.Dash)
		switch n := seen[look]; n {
		case 0:
		case 1:
			s.Dash = chart.Long
		case 2:
			s.Dash = chart.Dots
		default:
			s.Width = 1.2 + 0.6*float64(n)
		}
		seen[look]++
		styles = append(styles, s)
	}
	return styles
}

// scenarioLine is a figure of one strategy over time.
func scenarioLine(s queueing.Scenario, y *queueing.Series, style chart.Style, of func(*queueing.Row) float64) chart.Line {
	line := chart.Line{Style: style}
	for i := range y.Rows {
		r := &y.Rows[i]
		if r.T+y.Bucket > s.Length-runOut(s.Length, y.RPS) {
			break
		}
		line.Points = append(line.Points, chart.Point{X: (r.T + y.Bucket/2).Seconds(), Y: of(r)})
	}
	return line
}

// overTime is a panel with lines and levels, and a failure behind them.
func overTime(length, from, to float64, lines []chart.Line, levels ...chart.Layer) *chart.Panel {
	layers := append([]chart.Layer{chart.Shade{Style: failing, From: from, To: to}}, levels...)
	top := 0.0
	for _, line := range lines {
		for _, p := range line.Points {
			if !math.IsNaN(p.Y) {
				top = max(top, p.Y)
			}
		}
		layers = append(layers, line)
	}
	return &chart.Panel{X: chart.Axis{Max: length}, Y: chart.Axis{Max: chart.RoundUp(1.02 * top)}, Layers: layers}
}

// runOut is how long before the end of a run the last call may come: the calls of a run are
// length times rps, their gaps are exponential, and this is three standard deviations.
func runOut(length time.Duration, rps int) time.Duration {
	return time.Duration(3 * math.Sqrt(length.Seconds()/float64(rps)) * float64(time.Second))
}

// scenarioNote says what happens in a scenario.
func scenarioNote(s queueing.Scenario, y *queueing.Series, full float64) string {
	who := fmt.Sprintf("%.0f %% of the requests fail", 100*s.Failure.Share)
	switch {
	case s.Failure.ByUser:
		who = fmt.Sprintf("all requests of %.0f %% of the users fail", 100*s.Failure.Share)
	case s.Failure.ByHost:
		who = fmt.Sprintf("all requests to %.0f %% of the hosts fail", 100*s.Failure.Share)
	}
	limit := ""
	if s.Limit > 0 {
		limit = fmt.Sprintf("; at most %s calls at once", chart.Number(float64(s.Permits(y.RPS))))
	}
	var timeouts []string
	for _, t := range s.Timeouts {
		timeouts = append(timeouts, fmt.Sprint(t.Milliseconds()))
	}
	return fmt.Sprintf("%s calls/s, %d CPUs = %.2f times the normal load; %s from %g to %g s; timeout %s ms%s; %s",
		chart.Number(float64(y.RPS)), y.CPUs, full/100, who, s.Failure.From.Seconds(), s.Failure.To.Seconds(),
		strings.Join(timeouts, ", "), limit, cli.Plural(y.Seeds, "seed"))
}
