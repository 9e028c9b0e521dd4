package report

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/articles/queueing"
	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/cli"
)

// meanServe is the mean service time in s: 10 ms x e^(0.25^2/2).
const meanServe = 0.010317

// queueingPlan is the chapter of package queueing: a figure per scenario.
func queueingPlan(o Options) plan {
	p := plan{id: "queueing", title: "Retries before one server with a queue", text: []string{
		fmt.Sprintf("The scenarios of \"Good Retry, Bad Retry: An Incident Story\" (D. Isaev, 2024). %s calls per second come to a server with one queue, which fails for a while. What a caller does about a failed request is the strategy. "+
			"Load counts the requests that the server ends, so it cannot exceed what the CPUs can do, but for requests that it drops unserved (deadline propagation); the tables have what was sent as well. "+
			"Success counts the calls that end at that time: callers who still wait, for a retry or for a permit, are in the panel beside the CPUs. The server's successes count what it has done well, also for callers who have given up. The time of a call counts from its first request, so that a wait for a permit is not in it. "+
			"Errors are gone when at least 95 %% of the calls that end succeed, and stay so; a service is up in a step of 20 ms in which that is so. "+
			"The second picture parts the load: first tries and retries, and of each those that succeeded while their caller waited from those that failed or came too late. "+
			"The last scenarios are not the article's: they compare its budget with those of gRPC and of AWS. "+
			"Steps of 20 ms, mean of %s; the lines end where the calls, whose number is fixed, may have run out.", chart.Number(float64(o.RPS)), cli.Plural(o.Seeds, "seed")),
	}}
	for _, s := range slices.Concat(queueing.Scenarios(), queueing.PresetScenarios()) {
		p.figures = append(p.figures, func(ctx context.Context) (*Figure, error) { return drawScenario(ctx, o, s) })
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
		Tables:   []Table{scenarioTable(s, all)},
	}
	if claim := scenarioTexts[s.Name].claim; claim != "" {
		f.Text = append(f.Text, "The article's claim: "+claim)
	}
	return f, nil
}

// scenarioPicture is load, success, latency, the queue, busy CPUs and unmet calls over time.
func scenarioPicture(s queueing.Scenario, all []*queueing.Series) *chart.Picture {
	full := 100 * float64(all[0].CPUs) / (float64(all[0].RPS) * meanServe)
	pic := &chart.Picture{
		Name:    "queueing_" + fileName(s.Name),
		Title:   scenarioTexts[s.Name].title,
		Note:    scenarioNote(s, all[0], full),
		Columns: 2, Height: 120,
	}
	for _, y := range all {
		pic.Legend = append(pic.Legend, styleOf(y.Strategy))
	}
	pic.Legend = append(pic.Legend, failing, normal, capacity)

	load := overTime(s, all, func(r *queueing.Row) float64 { return r.Amplification })
	load.Title, load.Y.Label = "Load on the server", "% of normal"
	load.Y.Max = max(load.Y.Max, chart.RoundUp(1.02*full))
	load.Layers = slices.Insert[[]chart.Layer, chart.Layer](load.Layers, 1, chart.Level{Style: normal, Y: 100}, chart.Level{Style: capacity, Y: full})
	success := overTime(s, all, func(r *queueing.Row) float64 { return r.ClientOK })
	success.Title, success.Y.Label = "Calls that end with success", "% of those that end"
	server := overTime(s, all, func(r *queueing.Row) float64 { return r.ServerOK })
	server.Title, server.Y.Label = "The server's successes", "% of what it ends"
	queue := overTime(s, all, func(r *queueing.Row) float64 { return r.QueueMax })
	queue.Title, queue.Y.Label = "The server's queue", "requests"
	p50 := overTime(s, all, func(r *queueing.Row) float64 { return r.P50 })
	p50.Title, p50.Y.Label = "Median time of a call", "ms, retries included"
	p99 := overTime(s, all, func(r *queueing.Row) float64 { return r.P99 })
	p99.Title, p99.Y.Label = "99th percentile of it", "ms"
	cpu := overTime(s, all, func(r *queueing.Row) float64 { return r.CPU })
	cpu.Title, cpu.Y.Label = "Busy CPUs", "% of all"
	unmet := overTime(s, all, func(r *queueing.Row) float64 { return r.Unmet })
	unmet.Title, unmet.Y.Label = "Calls that have come and not ended", "calls"
	cpu.Layers = slices.Insert[[]chart.Layer, chart.Layer](cpu.Layers, 1, chart.Level{Style: capacity, Y: 100})
	success.Y.Max, server.Y.Max, cpu.Y.Max = 100, 100, 100
	for _, p := range []*chart.Panel{load, success, server, queue, p50, p99} {
		p.X.Bare = true
	}
	cpu.X.Label, unmet.X.Label = "time, s", "time, s"
	pic.Panels = []*chart.Panel{load, success, server, queue, p50, p99, cpu, unmet}
	return pic
}

// overTime is a panel with a line per strategy, and the failure behind them.
func overTime(s queueing.Scenario, all []*queueing.Series, of func(*queueing.Row) float64) *chart.Panel {
	until := s.Length - runOut(s.Length, all[0].RPS)
	layers := []chart.Layer{chart.Shade{Style: failing, From: s.Failure.From.Seconds(), To: s.Failure.To.Seconds()}}
	top := 0.0
	for _, y := range all {
		line := chart.Line{Style: styleOf(y.Strategy)}
		for i := range y.Rows {
			r := &y.Rows[i]
			if r.T+y.Bucket > until {
				break
			}
			v := of(r)
			if !math.IsNaN(v) {
				top = max(top, v)
			}
			line.Points = append(line.Points, chart.Point{X: (r.T + y.Bucket/2).Seconds(), Y: v})
		}
		layers = append(layers, line)
	}
	return &chart.Panel{
		X:      chart.Axis{Min: 0, Max: s.Length.Seconds()},
		Y:      chart.Axis{Min: 0, Max: chart.RoundUp(1.02 * top)},
		Layers: layers,
	}
}

// runOut is how long before the end of a run the last call may come: the calls of a run are
// length times rps, their gaps are exponential, and this is three standard deviations.
func runOut(length time.Duration, rps int) time.Duration {
	return time.Duration(3 * math.Sqrt(length.Seconds()/float64(rps)) * float64(time.Second))
}

// scenarioNote says what happens in a scenario.
func scenarioNote(s queueing.Scenario, y *queueing.Series, full float64) string {
	who := fmt.Sprintf("%.0f %% of the requests fail", 100*s.Failure.Share)
	if s.Failure.ByUser {
		who = fmt.Sprintf("all requests of %.0f %% of the users fail", 100*s.Failure.Share)
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

func scenarioTable(s queueing.Scenario, all []*queueing.Series) Table {
	t := Table{Head: []string{
		"strategy", "mean load in the failure, %", "peak of 20 ms, %", "most sent in 20 ms, %", "load back to 115 % at", "errors gone at",
		"success in the failure, %", "success of all calls, %", "up, % of the time", "the server's successes, %",
		"longest median of 20 ms, ms", "longest p99, ms", "longest queue", "requests",
	}}
	for _, one := range all {
		y := one.Summary()
		t.Rows = append(t.Rows, []string{
			one.Strategy, decimal(y.Load, 0), decimal(y.Peak, 0), decimal(y.Offered, 0), s.When(y.Back, y.IsBack), s.When(y.SuccessBack, y.SuccessIsBack),
			decimal(y.Success, 1), decimal(one.Success, 1), decimal(y.Up, 0), decimal(y.ServerUp, 1),
			decimal(y.P50, 0), decimal(y.P99, 0), decimal(y.Queue, 0), chart.Number(math.Round(one.Requests)),
		})
	}
	return t
}
