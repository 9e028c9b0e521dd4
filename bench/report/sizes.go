package report

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/chart"
)

// sizes are those of the herds in drawSizes, in hundredths of Options.N.
var sizes = []int{1, 2, 5, 10, 20, 50, 100, 200}

// sizesWatch is how long a herd of a size is watched, from the server's return.
func sizesWatch(ideal time.Duration) time.Duration { return 2*time.Minute + 3*ideal }

// apart is the ratio of the places at which two clients that do not come back in time
// are drawn.
const apart = 1.17

// drawSizes is when 99 % are back, over the size of the herd.
func drawSizes(ctx context.Context, o Options) (*Figure, error) {
	herd := settings(o)[1].herd
	largest := herd
	largest.N = sizeOf(o, sizes[len(sizes)-1])
	late := 2 * math.Pow(10, math.Ceil(math.Log10(sizesWatch(largest.Ideal()).Seconds()))) // where a herd is drawn that is not back in time
	p := sizesPanel(o, largest.N, late)
	pic := &chart.Picture{
		Name: "herd_sizes", Height: 280, Panels: []*chart.Panel{p},
		Title: "An outage of 5 s: when 99 % are back, by the size of the herd",
		Note:  fmt.Sprintf("%s handshakes/s, a backlog of 4,096; later: not within 2 min + 3 N/C of the server's return. Simulated", chart.Number(o.Capacity)),
	}
	table := Table{Head: []string{"99 % back, s from the server's return"}}
	for _, size := range sizes {
		table.Head = append(table.Head, "N = "+chart.Number(float64(sizeOf(o, size))))
	}
	for i, name := range compared { // the first is the widest, and behind the others
		line := chart.Line{Style: styleOf(name), Dotted: true}
		row := []string{name}
		for _, size := range sizes {
			h := herd
			h.N = sizeOf(o, size)
			h.Watch = h.Outage.Length + sizesWatch(h.Ideal())
			var err error
			if h.Client, err = herdClient(name); err != nil {
				return nil, err
			}
			r, err := fleet.Run(ctx, h)
			if err != nil {
				return nil, err
			}
			at := chart.Point{X: float64(h.N), Y: max(r.T99.Seconds(), p.Y.Min)}
			if r.T99 == fleet.Never {
				at.Y = late * math.Pow(apart, float64(i))
			}
			line.Points = append(line.Points, at)
			row = append(row, fleet.Seconds(r.T99, sizesWatch(h.Ideal()), 1))
		}
		p.Layers = append(p.Layers, line)
		pic.Legend = append(pic.Legend, line.Style)
		table.Rows = append(table.Rows, row)
	}
	p.Layers = append(p.Layers, chart.Line{Style: ideal, Points: []chart.Point{
		{X: p.X.Min, Y: p.X.Min / o.Capacity}, {X: p.X.Max, Y: p.X.Max / o.Capacity},
	}})
	pic.Legend = append(pic.Legend, ideal)
	return &Figure{
		Title:    "From which size on does a herd not recover?",
		Text:     []string{"Where clients give up sooner than the server can get to them, it works for clients that have left. One run for each point."},
		Pictures: []*chart.Picture{pic},
		Tables:   []Table{table},
	}, nil
}

// sizeOf is so many hundredths of a herd, and at least one connection.
func sizeOf(o Options, size int) int { return max(1, size*o.N/100) }

// sizesPanel is empty but for the place of the herds that are not back in time, from
// late on.
func sizesPanel(o Options, largest int, late float64) *chart.Panel {
	p := &chart.Panel{
		X: chart.Axis{Min: 0.9 * float64(sizeOf(o, sizes[0])), Max: 1.1 * float64(largest), Log: true, Label: "connections, N"},
		Y: chart.Axis{Min: 0.1, Max: 1.5 * late * math.Pow(apart, float64(len(compared))), Log: true, Label: "seconds from the server's return, log scale"},
	}
	for at := 0.1; at < late; at *= 10 {
		p.Y.Ticks = append(p.Y.Ticks, chart.Tick{At: at, Label: chart.Number(math.Round(10*at) / 10)})
	}
	p.Y.Ticks = append(p.Y.Ticks, chart.Tick{At: late, Label: "later"})
	p.Layers = append(p.Layers, chart.Band{Style: beyond, From: late / 1.5, To: p.Y.Max})
	return p
}
