package report

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/articles/tiers"
	"github.com/redial-go/redial/bench/internal/chart"
)

// tiersPlan is the chapter of package tiers: a figure per scenario.
func tiersPlan(o Options) plan {
	p := plan{id: "tiers", title: "Services in a row: three times three tries", text: []string{
		"The incident of \"Good Retry, Bad Retry: An Incident Story\" (D. Isaev, 2024): a service calls another and tries three times, and so does what calls it. " +
			"Load counts the requests that are sent to a tier, in percent of the calls from outside that are usual. Simulated, one run of each.",
	}}
	for _, s := range tiers.Scenarios() {
		p.figures = append(p.figures, func(ctx context.Context) (*Figure, error) { return drawTiers(ctx, o, s) })
	}
	return p
}

// tiersTexts are what a scenario's picture shows, and what is to be said of it.
var tiersTexts = map[string]struct{ title, text string }{
	"two_tiers": {
		"A client tries three times, and so does the service that it calls: what reaches the store",
		"Where both retry, nine tries of one call reach the store, whose queue goes on growing after the failure. It takes one of these to be safe: only one of the two retries; an error of what was retried is final; " +
			"retries are marked, and not retried below (five tries); or both have a budget. A budget of the lower one alone leaves the client's three tries.",
	},
	"incident": {
		"An incident of an hour: a release that fails for ten minutes, users that press the button again, and the manual way out",
		"The article's incident: the orchestrator has three times its load, since people press the button again, and orders has nine times. The rollback does not end it. 20 minutes later 1 % of the users are let in, and then 5 % more every 90 s. " +
			"With a retry budget at the orchestrator, or if it did not retry, it would have ended with the rollback.",
	},
}

func drawTiers(ctx context.Context, o Options, s tiers.Scenario) (*Figure, error) {
	var all []*tiers.Result
	for _, y := range s.Strategies {
		r, err := tiers.Run(ctx, tiers.Setup{Scenario: s, Strategy: y, Seed: o.Seed})
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	text := tiersTexts[s.Name]
	return &Figure{
		Title:    s.Name,
		Text:     []string{text.text},
		Pictures: []*chart.Picture{tiersPicture(s, text.title, all)},
		Tables:   []Table{tiersTable(s, all)},
	}, nil
}

// tiersPicture is the load of each tier, success and the lowest tier's queue over time.
func tiersPicture(s tiers.Scenario, title string, all []*tiers.Result) *chart.Picture {
	f := s.Failure
	pic := &chart.Picture{
		Name: "tiers_" + fileName(s.Name), Title: title, Columns: 2, Height: 160,
		Note: fmt.Sprintf("%s calls/s; %s: %.0f %% of the requests fail from %s to %s", chart.Number(float64(all[0].Setup.RPS)),
			s.Tiers[len(s.Tiers)-1].Name, 100*f.Share, s.When(f.From, true), s.When(f.To, true)),
	}
	for _, r := range all {
		pic.Legend = append(pic.Legend, styleOf(r.Setup.Strategy.Name))
	}
	pic.Legend = append(pic.Legend, failing, normal, capacity)
	for tier, t := range s.Tiers {
		load := tiersPanel(s, all, func(r *tiers.Result, i int) float64 { return r.Load(i, tier) })
		load.Title, load.Y.Label = "Load: "+t.Name, "requests sent to it, % of normal"
		load.Layers = slices.Insert[[]chart.Layer, chart.Layer](load.Layers, 1, chart.Level{Style: normal, Y: 100}, chart.Level{Style: capacity, Y: 100 * t.Capacity})
		pic.Panels = append(pic.Panels, load)
	}
	lowest := len(s.Tiers) - 1
	success := tiersPanel(s, all, (*tiers.Result).Success)
	success.Title, success.Y.Label, success.Y.Max = "Calls that end with success", "% of those that end", 100
	queue := tiersPanel(s, all, func(r *tiers.Result, i int) float64 { return float64(r.Buckets[i].Tiers[lowest].Queue) })
	queue.Title, queue.Y.Label = "Queue: "+s.Tiers[lowest].Name, "requests"
	pic.Panels = append(pic.Panels, success, queue)
	for _, p := range pic.Panels[:len(pic.Panels)-2] {
		p.X.Bare, p.X.Label = true, ""
	}
	return pic
}

// tiersPanel is a panel with a line per strategy, and the failure behind them.
func tiersPanel(s tiers.Scenario, all []*tiers.Result, of func(r *tiers.Result, bucket int) float64) *chart.Panel {
	unit, label := time.Second, "time, s"
	if s.Length >= 5*time.Minute {
		unit, label = time.Minute, "time, min"
	}
	at := func(d time.Duration) float64 { return float64(d) / float64(unit) }
	layers := []chart.Layer{chart.Shade{Style: failing, From: at(s.Failure.From), To: at(s.Failure.To)}}
	top := 0.0
	for _, r := range all {
		line := chart.Line{Style: styleOf(r.Setup.Strategy.Name)}
		until := s.Length - runOut(s.Length, r.Setup.RPS)
		for i := 0; time.Duration(i+1)*s.Bucket <= until; i++ {
			v := of(r, i)
			if !math.IsNaN(v) {
				top = max(top, v)
			}
			line.Points = append(line.Points, chart.Point{X: at(time.Duration(i)*s.Bucket + s.Bucket/2), Y: v})
		}
		layers = append(layers, line)
	}
	return &chart.Panel{
		X:      chart.Axis{Min: 0, Max: at(s.Length), Label: label},
		Y:      chart.Axis{Min: 0, Max: chart.RoundUp(1.02 * top)},
		Layers: layers,
	}
}

func tiersTable(s tiers.Scenario, all []*tiers.Result) Table {
	t := Table{Head: []string{"strategy"}}
	for _, x := range s.Tiers {
		t.Head = append(t.Head, x.Name+": mean load in the failure, %", "peak, %")
	}
	t.Head = append(t.Head, "load back to 115 % at", "errors gone at", "up, % of the time", "success of all calls, %", "calls lost", "as many come in")
	for _, r := range all {
		y := r.Summary()
		row := []string{r.Setup.Strategy.Name}
		for i := range s.Tiers {
			row = append(row, decimal(y.Load[i], 0), decimal(y.Peak[i], 0))
		}
		t.Rows = append(t.Rows, append(row,
			s.When(y.LoadBack, y.LoadIsBack), s.When(y.SuccessBack, y.SuccessIsBack), decimal(y.Up, 0), decimal(y.Success, 1),
			chart.Number(float64(y.Lost)), s.When(y.LostFor, true)))
	}
	return t
}
