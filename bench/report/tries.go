package report

import (
	"github.com/redial-go/redial/bench/articles/queueing"
	"github.com/redial-go/redial/bench/internal/chart"
)

// parts are what the load consists of, from the axis up.
var parts = []struct {
	style chart.Style
	of    func(*queueing.Row) float64
}{
	{chart.Style{Name: "first tries, succeeded", Color: chart.Blue, Area: true}, func(r *queueing.Row) float64 { return r.FirstOK }},
	{chart.Style{Name: "retries, succeeded", Color: chart.Sky, Area: true}, func(r *queueing.Row) float64 { return r.RetryOK }},
	{chart.Style{Name: "first tries, failed or too late", Color: chart.Orange, Area: true}, func(r *queueing.Row) float64 { return r.FirstFailed }},
	{chart.Style{Name: "retries, failed or too late", Color: chart.Vermillion, Area: true}, func(r *queueing.Row) float64 { return r.RetryFailed }},
}

// triesPicture is what the load of each strategy consists of, a panel each.
func triesPicture(s queueing.Scenario, all []*queueing.Series) *chart.Picture {
	full := s.Full(all[0].RPS)
	pic := &chart.Picture{
		Name:    "queueing_tries_" + fileName(s.Name),
		Title:   "What the load consists of: first tries and retries",
		Note:    scenarioNote(s, all[0], full),
		Columns: min(2, len(all)), Height: 130,
	}
	for _, p := range parts {
		pic.Legend = append(pic.Legend, p.style)
	}
	pic.Legend = append(pic.Legend, failing, normal, capacity)
	top := 1.02 * full
	for _, y := range all {
		for _, load := range y.Fine {
			top = max(top, load) // a server that drops requests unserved ends more than its CPUs could
		}
	}
	for i, y := range all {
		p := triesPanel(s, y)
		p.Y.Max = chart.RoundUp(top)
		p.Layers = append(p.Layers, chart.Level{Style: normal, Y: 100}, chart.Level{Style: capacity, Y: full})
		if p.X.Bare = i+pic.Columns < len(all); !p.X.Bare {
			p.X.Label = "time, s"
		}
		pic.Panels = append(pic.Panels, p)
	}
	return pic
}

// triesPanel stacks the parts of one strategy's load.
func triesPanel(s queueing.Scenario, y *queueing.Series) *chart.Panel {
	layers := []chart.Layer{chart.Shade{Style: failing, From: s.Failure.From.Seconds(), To: s.Failure.To.Seconds()}}
	for n := len(parts); n > 0; n-- { // each covers the lower part of the one before
		bars := chart.Bars{Style: parts[n-1].style, Step: y.Bucket.Seconds()}
		for i := range y.Rows {
			r, sum := &y.Rows[i], 0.0
			if r.T+y.Bucket > s.Length-runOut(s.Length, y.RPS) {
				break
			}
			for _, p := range parts[:n] {
				sum += p.of(r)
			}
			bars.Values = append(bars.Values, sum)
		}
		layers = append(layers, bars)
	}
	return &chart.Panel{
		Title:  y.Strategy,
		X:      chart.Axis{Min: 0, Max: s.Length.Seconds()},
		Y:      chart.Axis{Min: 0, Label: "% of the normal load"},
		Layers: layers,
	}
}
