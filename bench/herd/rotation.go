package herd

import (
	"context"
	"fmt"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/table"

	"github.com/redial-go/redial/bench/herd/rotation"
	"github.com/redial-go/redial/bench/internal/chart"
)

// rotated is what came of clients whose ages are drawn from a share of the age on.
type rotated struct {
	name  string
	waves []rotation.Wave
}

// simulatedRotation is "bench sim -model rotation".
type simulatedRotation struct {
	rotation.Options
	all []rotated
}

func (o *simulatedRotation) Flags(f *cli.Flags) {
	o.Options = rotation.Options{Clients: 10_000, After: 24 * time.Hour, Waves: 3}
	f.Count(&o.Clients, 1, "n", "how many clients are started at one instant")
	f.Pause(&o.After, "after", "the age at which a connection is replaced")
	f.Float64Var(&o.From, "from", rotation.Drawn, "the age is drawn from this share of it to all of it")
	f.Count(&o.Waves, 1, "waves", "how often each client rotates")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the draws")
}

func (o *simulatedRotation) Run(ctx context.Context, c *cli.Console) error {
	names := []string{"no draw", fmt.Sprintf("drawn from [%g, 1)", o.From)}
	return c.Each(ctx, "simulate", len(names), 1, func(i int) error {
		one := o.Options
		one.From = []float64{1, o.From}[i]
		waves, err := rotation.Run(one)
		if err != nil {
			return cli.Usage(err)
		}
		o.all = append(o.all, rotated{names[i], waves})
		return nil
	})
}

// Table has a row for each rotation of all clients.
func (o *simulatedRotation) Table() (table.Table, string) {
	t := table.Table{{"age", "rotation", "first dial, h", "last dial, h", "dials/s between", "worst second", "at, h"}}
	for _, r := range o.all {
		for _, w := range r.waves {
			rate := "-"
			if w.Span() > 0 {
				rate = fmt.Sprintf("%.2f", float64(len(w.Dials))/w.Span().Seconds())
			}
			most, at := w.Peak()
			t.Row(r.name, fmt.Sprint(w.N), hours(w.Dials[0]), hours(w.Dials[len(w.Dials)-1]), rate, fmt.Sprint(most), hours(at))
		}
	}
	return t, ""
}

func hours(d time.Duration) string { return fmt.Sprintf("%.2f", d.Hours()) }

// Chart has the worst second of each hundredth of the age.
func (o *simulatedRotation) Chart() *chart.Picture {
	p := &chart.Picture{
		Name: "rotation", Title: "Dials of clients that replace each connection at its age", Height: 190,
		Note: fmt.Sprintf("%s clients that were started together, age %v; seed %d. Simulated", chart.Number(float64(o.Clients)), o.After, o.Seed),
	}
	panel := &chart.Panel{
		X: chart.Axis{Max: o.After.Hours() * (float64(o.Waves) + 0.1), Label: "time, h"},
		Y: chart.Axis{Min: 0.8, Max: chart.RoundUp(float64(o.Clients)), Log: true, Label: "dials in the worst second, log scale"},
	}
	for i, r := range o.all {
		style := chart.Series(i, r.name)
		p.Legend = append(p.Legend, style)
		panel.Layers = append(panel.Layers, chart.Line{Style: style, Points: worstSeconds(o.Options, r.waves)})
	}
	p.Panels = []*chart.Panel{panel}
	return p
}

// worstSeconds returns the most dials in a second of each hundredth of the age.
func worstSeconds(o rotation.Options, waves []rotation.Wave) []chart.Point {
	perSecond := map[time.Duration]int{}
	for _, w := range waves {
		for _, d := range w.Dials {
			perSecond[d.Truncate(time.Second)]++
		}
	}
	each := o.After / 100
	points := make([]chart.Point, 100*o.Waves+10)
	for i := range points {
		points[i] = chart.Point{X: (time.Duration(i)*each + each/2).Hours(), Y: 0.8}
	}
	for second, n := range perSecond {
		p := &points[min(int(second/each), len(points)-1)]
		p.Y = max(p.Y, float64(n))
	}
	return points
}
