package herd

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/table"

	"github.com/redial-go/redial/bench/herd/drain"
	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/chart"
)

// simulatedDrain is "bench sim -model drain".
type simulatedDrain struct {
	drain.Options
	ways    []drain.Way
	clients []fleet.Client
	seeds   int
	all     []drained
}

// drained is the runs of one way and one kind of client.
type drained struct {
	client string
	way    drain.Way
	runs   []*drain.Result // by seed
}

func (o *simulatedDrain) Flags(f *cli.Flags) {
	o.Options, o.seeds = drain.Options{Clients: 10_000, Window: time.Minute, Capacity: 500, RTT: 50 * time.Millisecond}, 5
	f.Count(&o.Clients, 1, "n", "clients of the server that drains")
	f.Pause(&o.Window, "window", "the time that the server has")
	f.Float64Var(&o.Capacity, "capacity", o.Capacity, "handshakes that the other servers complete per second, all together")
	f.Pause(&o.RTT, "rtt", "the time for a message and its answer")
	cli.SomeOf(f, &o.ways, "way", "all", "the ways to simulate (-list shows them)", drain.Ways(), func(w drain.Way) string { return w.Name })
	chooseClients(f, &o.clients, "redial,recws", "how the clients wait")
	f.Count(&o.seeds, 1, "seeds", "runs of which the table has the means")
	f.Seed(&o.Seed)
	f.List("the ways", func(w io.Writer) {
		for _, way := range drain.Ways() {
			fmt.Fprintf(w, "%-12s %s\n", way.Name, way.Summary)
		}
	})
}

// Run simulates all ways with all clients.
func (o *simulatedDrain) Run(ctx context.Context, c *cli.Console) error {
	var all []drained
	for _, client := range o.clients {
		for _, w := range o.ways {
			all = append(all, drained{client: client.Name, way: w, runs: make([]*drain.Result, o.seeds)})
		}
	}
	err := c.Each(ctx, "simulate", len(all)*o.seeds, runtime.GOMAXPROCS(0), func(i int) (err error) {
		d, seed := all[i/o.seeds], i%o.seeds
		one := o.Options
		one.Client, one.Seed = o.clients[i/o.seeds/len(o.ways)], o.Seed+uint64(seed)
		d.runs[seed], err = drain.Run(ctx, one, d.way)
		return err
	})
	o.all = slices.DeleteFunc(all, func(d drained) bool { return slices.Contains(d.runs, nil) }) // when ctx has ended
	return runError(ctx, err)
}

// Table has a row for each way and client.
func (o *simulatedDrain) Table() (table.Table, string) {
	t := table.Table{{"client", "way", "last closed, s", "dials in the busiest 100 ms", "dials per client", "away: mean, s", "longest, s", "most at once", "clients cut", "all back, s"}}
	for _, d := range o.all {
		mean := func(of func(*drain.Result) float64) float64 {
			sum := 0.0
			for _, r := range d.runs {
				sum += of(r)
			}
			return sum / float64(len(d.runs))
		}
		span := func(of func(*drain.Result) time.Duration) string {
			var all []time.Duration
			for _, r := range d.runs {
				all = append(all, of(r))
			}
			return fleet.Seconds(fleet.Mean(all), d.runs[0].Watch, 1)
		}
		t.Row(d.client, d.way.Name,
			span(func(r *drain.Result) time.Duration { return r.Closed }),
			fmt.Sprintf("%.0f", mean(func(r *drain.Result) float64 { return float64(r.Peak) })),
			fmt.Sprintf("%.2f", mean(func(r *drain.Result) float64 { return r.PerClient })),
			span(func(r *drain.Result) time.Duration { return r.Mean }),
			span(func(r *drain.Result) time.Duration { return r.Away }),
			fmt.Sprintf("%.0f", mean(func(r *drain.Result) float64 { return float64(r.MostAway) })),
			fmt.Sprintf("%.0f", mean(func(r *drain.Result) float64 { return float64(r.Cut) })),
			span(func(r *drain.Result) time.Duration { return r.Back }))
	}
	return t, ""
}

// Chart has a panel for each client: the dials of the first seed over time.
func (o *simulatedDrain) Chart() *chart.Picture {
	p := &chart.Picture{
		Name: "drain", Title: "Dials of clients whose server drains", Height: 190,
		Note: fmt.Sprintf("%s clients, a window of %v, and servers that take %g handshakes/s; seed %d. Simulated", chart.Number(float64(o.Clients)), o.Window, o.Capacity, o.Seed),
	}
	for i, w := range o.ways {
		p.Legend = append(p.Legend, chart.Series(i, w.Name))
	}
	for k, client := range o.clients {
		panel := &chart.Panel{
			Title: strings.TrimSpace(client.Name),
			X:     chart.Axis{Max: 1.25 * o.Window.Seconds(), Label: "time, s"},
			Y:     chart.Axis{Min: 0.8, Max: chart.RoundUp(float64(o.Clients)), Log: true, Label: "dials per 100 ms, log scale"},
		}
		for i := range o.ways {
			panel.Layers = append(panel.Layers, chart.Line{Style: p.Legend[i], Points: busiest(o.Window, o.all[k*len(o.ways)+i].runs[0].Dials)})
		}
		p.Panels = append(p.Panels, panel)
	}
	return p
}

// busiest returns the most dials per 100 ms in each hundredth of the window, and a quarter more.
func busiest(window time.Duration, dials []int32) []chart.Point {
	points := make([]chart.Point, 125)
	for i := range points {
		points[i] = chart.Point{X: window.Seconds() * (float64(i) + 0.5) / 100, Y: 0.8}
	}
	for bin, n := range dials {
		if i := int(time.Duration(bin) * fleet.Bin * 100 / window); i < len(points) {
			points[i].Y = max(points[i].Y, float64(n))
		}
	}
	return points
}
