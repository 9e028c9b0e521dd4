package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/articles/storm"
	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/table"
)

// The stops that are drawn, in seconds.
var (
	stormStops  = []float64{3, 5, 20, 60}
	borderStops = []float64{1, 2, 3, 3.5, 4, 4.5, 5, 6, 8, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60, 90}
)

const (
	stormShown = 180 * time.Second // of virtual time
	stormWatch = 10 * time.Minute  // for the border
)

// stormPlan is the chapter of package storm.
func stormPlan(o Options) plan {
	return plan{
		id: "storm", title: "A retry storm: a server that is stopped for a while",
		text: []string{
			"The program of github.com/smira/exponential-backoff: 1,000 clients send a request each, think for 10 s on average after a success, and give up after 2 s. The server takes the longer the more requests it has, does not notice which clients have left, and is stopped (SIGSTOP) for a time.",
			"The clients: simple comes again after 100 ms; described waits 0.1, 0.27, 0.74 s ... up to 5 min, as its text says; coded is what its code does: its first wait is 2.7 times the last time it thought.",
		},
		figures: []drawing{
			func(ctx context.Context) (*Figure, error) { return drawStorms(ctx, o) },
			func(ctx context.Context) (*Figure, error) { return drawBorders(ctx, o) },
		},
	}
}

// drawStorms is what happens over time after some stops.
func drawStorms(ctx context.Context, o Options) (*Figure, error) {
	ok := &chart.Picture{
		Name: "storm_recovery", Columns: 2, Height: 150,
		Title: "Requests that succeed per second, before and after the stop",
		Note:  fmt.Sprintf("1,000 clients, about 100 requests/s when all is well; seed %d. Simulated", o.Seed),
	}
	full := &chart.Picture{
		Name: "storm_concurrency", Columns: 2, Height: 150, Title: "Requests at the server",
		Note: ok.Note,
	}
	for _, stop := range stormStops {
		ok.Panels = append(ok.Panels, stormPanel(stop, chart.Axis{Label: "OK/s"}))
		requests := chart.Axis{Min: 1, Max: 100_000, Log: true, Label: "requests, log scale"}
		full.Panels = append(full.Panels, stormPanel(stop, requests))
	}
	for _, kind := range slices.Backward(storm.Clients()) { // the first is the widest, and behind the others
		style := styleOf(kind.String())
		for i, stop := range stormStops {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			length := time.Duration(stop * float64(time.Second))
			y, err := storm.Run(storm.Options{Client: kind, Stop: length, Watch: stormShown, Seed: o.Seed})
			if err != nil {
				return nil, err
			}
			a, b := chart.Line{Style: style}, chart.Line{Style: style}
			for second, s := range y.Seconds {
				at := float64(second) + 0.5 - storm.WarmUp.Seconds()
				a.Points = append(a.Points, chart.Point{X: at, Y: float64(s.OK)})
				b.Points = append(b.Points, chart.Point{X: at + 0.5, Y: float64(max(s.Concurrent, 1))})
				ok.Panels[i].Y.Max = max(ok.Panels[i].Y.Max, chart.RoundUp(float64(s.OK)))
			}
			ok.Panels[i].Layers = append(ok.Panels[i].Layers, a)
			full.Panels[i].Layers = append(full.Panels[i].Layers, b)
		}
		ok.Legend = append(ok.Legend, style)
	}
	ok.Legend = append(ok.Legend, stopped)
	full.Legend = ok.Legend
	return &Figure{Title: "After a stop", Pictures: []*chart.Picture{ok, full}}, nil
}

func stormPanel(stop float64, y chart.Axis) *chart.Panel {
	return &chart.Panel{
		Title:  fmt.Sprintf("Stopped for %g s", stop),
		X:      chart.Axis{Min: -storm.WarmUp.Seconds(), Max: (stormShown - storm.WarmUp).Seconds(), Label: "time since the stop began, s"},
		Y:      y,
		Layers: []chart.Layer{chart.Shade{Style: stopped, To: stop}},
	}
}

// drawBorders shows after which stops the server recovers from each client.
func drawBorders(ctx context.Context, o Options) (*Figure, error) {
	kinds := storm.Clients()
	p := &chart.Panel{
		X: chart.Axis{Min: -0.5, Max: float64(len(borderStops)) - 0.5, Label: "the server was stopped for, s"},
		Y: chart.Axis{Min: -0.5, Max: float64(len(kinds)) - 0.5},
	}
	for i, stop := range borderStops {
		p.X.Ticks = append(p.X.Ticks, chart.Tick{At: float64(i), Label: chart.Number(stop)})
	}
	rows := table.Table{{"the server was stopped for"}}
	for _, stop := range borderStops {
		rows.Row(chart.Number(stop) + " s")
	}
	cells := chart.Cells{Width: 1, Height: 0.9}
	for i, kind := range kinds {
		row := len(kinds) - 1 - i
		p.Y.Ticks = append(p.Y.Ticks, chart.Tick{At: float64(row), Label: kind.String()})
		rows[0] = append(rows[0], kind.String()+": well again after, s")
		for column, stop := range borderStops {
			text, most, err := stormOutcome(ctx, o, kind, stop)
			if err != nil {
				return nil, err
			}
			shown := text
			if !most {
				shown = "-" // there is no room for more
			}
			cells.Cells = append(cells.Cells, chart.Cell{X: float64(column), Y: float64(row), Text: shown, Color: styleOf(kind.String()).Color, Empty: !most})
			rows[column+1] = append(rows[column+1], text)
		}
	}
	p.Layers = []chart.Layer{cells}
	pic := &chart.Picture{
		Name: "storm_border", Height: 130, Panels: []*chart.Panel{p},
		Title: "After which stops the server recovers",
		Note:  fmt.Sprintf("Filled: most of %s recovered; the number is the median of the seconds until 95 %% succeed for 30 s; watched for %.0f min", cli.Plural(o.Seeds, "seed"), stormWatch.Minutes()),
	}
	return &Figure{Title: "Which stops are survived", Pictures: []*chart.Picture{pic}, Tables: []table.Table{rows}}, nil
}

// stormOutcome is the median of the seconds until a server recovers, or says for how long
// it was watched if most seeds do not.
func stormOutcome(ctx context.Context, o Options, kind storm.Client, stop float64) (text string, most bool, err error) {
	back, err := storm.Backs(ctx, storm.Options{Client: kind, Stop: time.Duration(stop * float64(time.Second)), Watch: stormWatch, Seed: o.Seed}, o.Seeds, nil)
	switch {
	case err != nil:
		return "", false, err
	case 2*len(back) <= o.Seeds:
		return fleet.NotWithin(stormWatch), false, nil
	}
	return decimal(back[len(back)/2].Seconds(), 0), true, nil
}
