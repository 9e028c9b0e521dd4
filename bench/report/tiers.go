package report

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redial-go/redial/bench/articles/tiers"
	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/table"
)

// tiersPlan is the chapter of package tiers: a figure per scenario.
func tiersPlan(o Options) plan {
	p := plan{id: "tiers", title: "Services in a row: three times three tries", text: []string{
		"The incident of \"Good Retry, Bad Retry: An Incident Story\" (D. Isaev, 2024): a service calls another and tries three times, and so does what calls it. " +
			"Load counts the requests that are sent to a tier, in percent of the calls from outside that are usual. Simulated, one run of each.",
	}}
	scenarios := tiers.Scenarios()
	if o.Scenario != "" {
		s, _ := tiers.Find(o.Scenario) // Validate has found it, or nothing of this chapter is drawn
		scenarios = []tiers.Scenario{s}
	}
	for _, s := range scenarios {
		p.figures = append(p.figures, func(ctx context.Context) (*Figure, error) { return drawTiers(ctx, o, s) })
	}
	return p
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
	flags := fmt.Sprintf(" -scenario %s -seed %d", cmp.Or(o.Scenario, s.Name), o.Seed)
	return &Figure{
		Title:    s.Name,
		Text:     []string{s.Text},
		Pictures: []*chart.Picture{tiersPicture(s, s.Title, all)},
		Tables:   []table.Table{tiers.Table(all)},
		Commands: []string{"go run . sim -model tiers" + flags, "go run . report" + flags + " -out DIR"},
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
	unit, label := time.Second, "time, s"
	if s.Length >= 5*time.Minute {
		unit, label = time.Minute, "time, min"
	}
	at := func(d time.Duration) float64 { return float64(d) / float64(unit) }
	add := func(title, y string, of func(r *tiers.Result, bucket int) float64, levels ...chart.Layer) *chart.Panel {
		var lines []chart.Line
		for _, r := range all {
			line := chart.Line{Style: styleOf(r.Setup.Strategy.Name)}
			for i := 0; time.Duration(i+1)*s.Bucket <= s.Length-runOut(s.Length, r.Setup.RPS); i++ {
				line.Points = append(line.Points, chart.Point{X: at(time.Duration(i)*s.Bucket + s.Bucket/2), Y: of(r, i)})
			}
			lines = append(lines, line)
		}
		p := overTime(at(s.Length), at(f.From), at(f.To), lines, levels...)
		p.Title, p.Y.Label, p.X.Bare = title, y, true
		pic.Panels = append(pic.Panels, p)
		return p
	}
	for tier, t := range s.Tiers {
		add("Load: "+t.Name, "requests sent to it, % of normal", func(r *tiers.Result, i int) float64 { return r.Load(i, tier) },
			chart.Level{Style: normal, Y: 100}, chart.Level{Style: capacity, Y: 100 * t.Capacity})
	}
	lowest := len(s.Tiers) - 1
	success := add("Calls that end with success", "% of those that end", (*tiers.Result).Success)
	success.Y.Max = 100
	queue := add("Queue: "+s.Tiers[lowest].Name, "requests", func(r *tiers.Result, i int) float64 { return float64(r.Buckets[i].Tiers[lowest].Queue) })
	last := []*chart.Panel{success, queue}
	if tier := s.Tiers[lowest]; tier.Scaling != nil {
		cpus := add("CPUs: "+tier.Name, "what they can do, % of normal", func(r *tiers.Result, i int) float64 {
			return 100 * tier.Capacity * float64(r.Buckets[i].Tiers[lowest].CPUs) / float64(r.Buckets[0].Tiers[lowest].CPUs)
		}, chart.Level{Style: capacity, Y: 100 * tier.Capacity})
		last = []*chart.Panel{queue, cpus}
	}
	for _, p := range last {
		p.X.Bare, p.X.Label = false, label
	}
	return pic
}
