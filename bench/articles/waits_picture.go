package articles

import (
	"fmt"
	"math"
	"time"

	"github.com/redial-go/redial/bench/articles/waits"
	"github.com/redial-go/redial/bench/internal/chart"
)

// steps is how many places by time a line has.
const steps = 240

// policyPicture has four panels for each outage: by retry and by time, linear and
// logarithmic.
func (o *drawnWaits) policyPicture(all []drawn) *chart.Picture {
	pic := &chart.Picture{
		Name: "waits", Title: "What a client waits in an outage: median, and from p5 to p95", Columns: 2, Height: 190,
		Note: fmt.Sprintf("%d clients of each policy. On the left the wait before each retry, on the right the wait that was drawn last", o.Seeds),
	}
	until := o.Until.Seconds()
	for _, outage := range o.outages {
		first := shortest(all, outage)
		longest := 0.0
		x := []chart.Axis{
			{Min: 1, Max: float64(max(o.Retries, 2)), Label: "number of the retry"}, {Max: until, Label: "time since the loss, s"},
			{Min: 1, Max: float64(max(o.Retries, 2)), Label: "number of the retry"}, {Min: first, Max: until, Log: true, Label: "time since the loss, s, log scale"},
		}
		panels := make([]*chart.Panel, 4)
		for i := range panels {
			panels[i] = &chart.Panel{Title: outage.Name, X: x[i], Y: chart.Axis{Label: "wait, s"}}
			if i >= 2 {
				panels[i].Y = chart.Axis{Min: first, Log: true, Label: "wait, s, log scale"}
			}
		}
		for i, d := range all {
			if d.outage.Name != outage.Name {
				continue
			}
			style := chart.Series(i%len(o.rules), d.rule.String())
			longest = max(longest, addSeries(panels[0], style, true, o.byRetry(d)), addSeries(panels[1], style, false, o.byTime(d, linear(until))))
			addSeries(panels[2], style, true, o.byRetry(d))
			addSeries(panels[3], style, false, o.byTime(d, logarithmic(first, until)))
		}
		for _, p := range panels {
			p.Y.Max = chart.RoundUp(max(longest, 10*first))
		}
		pic.Panels = append(pic.Panels, panels...)
	}
	for i, r := range o.rules {
		pic.Legend = append(pic.Legend, chart.Series(i, r.String()))
	}
	return pic
}

// place is the stats of one place on the X axis.
type place struct {
	x float64
	waits.Stats
}

func (o *drawnWaits) byRetry(d drawn) (all []place) {
	for n := 1; n <= o.Retries; n++ {
		if wait, _ := d.Retry(n); wait.N > 0 {
			all = append(all, place{float64(n), wait})
		}
	}
	return all
}

func (o *drawnWaits) byTime(d drawn, times []float64) (all []place) {
	for _, at := range times {
		if wait, _ := d.At(time.Duration(at * float64(time.Second))); wait.N > 0 {
			all = append(all, place{at, wait})
		}
	}
	return all
}

func linear(until float64) (times []float64) {
	for i := range steps + 1 {
		times = append(times, until*float64(i)/steps)
	}
	return times
}

func logarithmic(from, until float64) (times []float64) {
	for i := range steps + 1 {
		times = append(times, from*math.Pow(until/from, float64(i)/steps))
	}
	return times
}

// addSeries adds the median, with the range around it behind all lines, to a panel. It
// returns the largest p95.
func addSeries(panel *chart.Panel, style chart.Style, dotted bool, all []place) (longest float64) {
	line := chart.Line{Style: style, Dotted: dotted}
	between := chart.Range{Style: style}
	for _, p := range all {
		line.Points = append(line.Points, chart.Point{X: p.x, Y: p.Median})
		between.Low = append(between.Low, chart.Point{X: p.x, Y: p.P5})
		between.High = append(between.High, chart.Point{X: p.x, Y: p.P95})
		longest = max(longest, p.P95)
	}
	panel.Layers = append(append([]chart.Layer{between}, panel.Layers...), line)
	return longest
}

// shortest is where the logarithmic axes begin: the power of ten at or below the shortest
// median of a first wait, but not below a microsecond.
func shortest(all []drawn, outage waits.Outage) float64 {
	least := 1.0
	for _, d := range all {
		if wait, _ := d.Retry(1); d.outage.Name == outage.Name && wait.N > 0 && wait.Median > 0 {
			least = min(least, wait.Median)
		}
	}
	return math.Pow(10, math.Floor(math.Log10(max(least, 1e-6))))
}
