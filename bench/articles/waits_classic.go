package articles

import (
	"context"
	"fmt"
	"time"

	"github.com/redial-go/redial/bench/articles/waits"
	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/table"
)

// classicPanels are a linear panel and a logarithmic one of the same.
func classicPanels(x chart.Axis, y string, least, most float64) []*chart.Panel {
	return []*chart.Panel{
		{Title: "Linear", X: x, Y: chart.Axis{Max: most, Label: y}},
		{Title: "Logarithmic", X: x, Y: chart.Axis{Min: least, Max: most, Log: true, Label: y + ", log scale"}},
	}
}

// drawUsers is the table of users side by side.
func (o *drawnWaits) drawUsers() (table.Table, *chart.Picture, error) {
	rows, err := waits.Users(o.users, o.Retries, o.jitter, o.Seed)
	if err != nil {
		return nil, nil, cli.Usage(err)
	}
	t := table.Table{{"attempt", "delay from 1 s", "delay as coded", "from", "to"}}
	lines := make([]chart.Line, o.users)
	for u := range o.users {
		t[0] = append(t[0], fmt.Sprintf("user %d", u+1))
		lines[u] = chart.Line{Style: chart.Series(u, t[0][5+u]), Dotted: true}
	}
	bounds := chart.Range{Style: chart.Style{Color: chart.Black}}
	for _, row := range rows {
		cells := []string{fmt.Sprint(row.Attempt), row.Table.String(), row.Delay.String(), row.Low.String(), row.High.String()}
		at := float64(row.Attempt)
		for u, w := range row.Waits {
			cells = append(cells, w.String())
			lines[u].Points = append(lines[u].Points, chart.Point{X: at, Y: w.Seconds()})
		}
		t.Row(cells...)
		bounds.Low = append(bounds.Low, chart.Point{X: at, Y: row.Low.Seconds()})
		bounds.High = append(bounds.High, chart.Point{X: at, Y: row.High.Seconds()})
	}
	least, most := 1.0, chart.RoundUp(rows[len(rows)-1].High.Seconds())
	if rows[0].Low < time.Second {
		least = 0.1
	}
	title := "Users that lost their connections at one instant do not come back at one instant"
	note := fmt.Sprintf("Exponential backoff from 1 s to 30 s, within %.4g %% (shaded), attempts counted from 1, so that the first delay is 2 s", 100*o.jitter)
	switch {
	case o.jitter == 0:
		title = "Users that lost their connections at one instant come back at one instant, without jitter"
	case o.jitter > 1:
		note += ". Waits of 0 have no place on a logarithmic axis"
	}
	pic := &chart.Picture{
		Name: "waits_users", Columns: 2, Height: 220, Title: title, Note: note,
		Panels: classicPanels(chart.Axis{Min: 1, Max: float64(max(o.Retries, 2)), Label: "attempt"}, "wait, s", least, most),
	}
	for _, p := range pic.Panels {
		p.Layers = append(p.Layers, bounds)
		for _, l := range lines {
			p.Layers = append(p.Layers, l)
		}
	}
	for _, l := range lines {
		pic.Legend = append(pic.Legend, l.Style)
	}
	return t, pic, nil
}

// drawEthernet is E(c) beside what was drawn.
func (o *drawnWaits) drawEthernet(ctx context.Context, c *cli.Console) (table.Table, *chart.Picture, error) {
	p := cli.NewProgress(c, "draw", 15)
	defer p.End()
	rows, err := waits.Ethernet(ctx, o.Seeds, o.Seed, func() { p.Add(1) })
	if rows == nil {
		return nil, nil, err
	}
	t := table.Table{{"collisions c", "slots from 0 to", "E(c), slots", "drawn mean", "sd", "drawn sd", "E(c), us at 10 Mbit/s"}}
	formula := chart.Line{Style: chart.Style{Name: "E(c) = (2^c - 1)/2, c at most 10", Color: chart.Vermillion, Width: 2.4}}
	mean := chart.Line{Style: chart.Style{Name: fmt.Sprintf("mean of %d draws of classic.Ethernet", o.Seeds), Color: chart.Black, Dash: chart.Dots, Width: 1}, Dotted: true}
	most := chart.Range{Style: formula.Style}
	for _, row := range rows {
		at := float64(row.Collisions)
		t.Row(fmt.Sprint(row.Collisions), fmt.Sprint(row.Most), fmt.Sprint(row.Formula.Mean), fmt.Sprintf("%.2f", row.Drawn.Mean),
			fmt.Sprintf("%.2f", row.Formula.SD), fmt.Sprintf("%.2f", row.Drawn.SD), fmt.Sprintf("%.1f", 51.2*row.Formula.Mean))
		formula.Points = append(formula.Points, chart.Point{X: at, Y: row.Formula.Mean})
		mean.Points = append(mean.Points, chart.Point{X: at, Y: row.Drawn.Mean})
		most.Low = append(most.Low, chart.Point{X: at})
		most.High = append(most.High, chart.Point{X: at, Y: float64(row.Most)})
	}
	pic := &chart.Picture{
		Name: "waits_ethernet", Columns: 2, Height: 220, Title: "Ethernet's truncated binary exponential backoff: the mean wait after c collisions",
		Note:   "A station waits a whole number of slots from 0 to 2^min(c,10) - 1 (shaded), and gives up after 16 attempts",
		Legend: []chart.Style{formula.Style, mean.Style},
		Panels: classicPanels(chart.Axis{Min: 1, Max: float64(len(rows)), Label: "collisions, c"}, "slots", 0.1, 1200),
	}
	for _, p := range pic.Panels {
		p.Layers = []chart.Layer{most, formula, mean}
	}
	return t, pic, err
}

// drawNormal is the two settings of backoff with normal noise.
func (o *drawnWaits) drawNormal(ctx context.Context, c *cli.Console) (table.Table, *chart.Picture, error) {
	bar := cli.NewProgress(c, "draw", len(waits.NormalSettings())*o.Seeds)
	defer bar.End()
	t := table.Table{{"setting", "retry", "without noise", "mean", "drawn mean", "sd", "drawn sd", "p5", "median", "p95", "at the cap"}}
	pic := &chart.Picture{
		Name: "waits_normal", Columns: 2, Height: 220, Title: "Backoff with normal noise of 10 %, which compounds: median, and from p5 to p95",
		Note: fmt.Sprintf("%d clients of each setting: first wait, factor, cap. The noise comes after the cap, so that a wait may exceed it", o.Seeds),
	}
	pic.Panels = classicPanels(chart.Axis{Min: 1, Max: float64(max(o.Retries, 2)), Label: "number of the retry"}, "wait, s", 0.1, 1000)
	plain := chart.Style{Name: "without noise", Color: chart.Black, Width: 0.8, Dash: chart.Short}
	for i, setting := range waits.NormalSettings() {
		rows, err := waits.Normals(ctx, setting.Policy, o.Retries, o.Seeds, o.Seed, func() { bar.Add(1) })
		if rows == nil {
			return t, nil, err
		}
		var places []place
		without := chart.Line{Style: plain}
		for _, row := range rows {
			mean, sd := "-", "-" // there is no closed form near the cap
			if row.Exact {
				mean, sd = figures(row.Formula.Mean), figures(row.Formula.SD)
			}
			t.Row(setting.Name, fmt.Sprint(row.Retry), figures(row.Plain), mean, figures(row.Drawn.Mean), sd, figures(row.Drawn.SD),
				figures(row.Stats.P5), figures(row.Stats.Median), figures(row.Stats.P95), fmt.Sprintf("%.0f %%", 100*row.AtCap))
			places = append(places, place{float64(row.Retry), row.Stats})
			without.Points = append(without.Points, chart.Point{X: float64(row.Retry), Y: row.Plain})
		}
		style := chart.Series(i, setting.Name)
		for _, p := range pic.Panels {
			addSeries(p, style, true, places)
			p.Layers = append(p.Layers, without)
		}
		pic.Legend = append(pic.Legend, style)
		if err != nil {
			return t, nil, err
		}
	}
	pic.Legend = append(pic.Legend, plain)
	return t, pic, nil
}
