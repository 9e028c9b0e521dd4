package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/chart"
)

// drawNeighbours is how clients of each make come back beside naive ones.
func drawNeighbours(ctx context.Context, o Options) (*Figure, error) {
	naive, err := fleet.Find("full-1-30s")
	if err != nil {
		return nil, err
	}
	h := fleet.Herd{N: o.N, Outage: fleet.Outage{Length: 5 * time.Second}, Server: fleet.Server{Capacity: o.Capacity}, Seed: o.Seed}
	h.Watch = h.Outage.Length + 2*herdWatch(h.Ideal())
	until := (h.Watch / 2).Seconds()
	pic := &chart.Picture{
		Name: "herd_neighbours", Title: "Naive neighbours: clients of the named make that are back, beside naive ones", Columns: 2, Height: 190,
		Note: fmt.Sprintf("N = %s in all, %s handshakes/s, back after 5 s. The naive ones have full jitter from 1 s to 30 s, and give up a dial after 2 s. Simulated", chart.Number(float64(o.N)), chart.Number(o.Capacity)),
	}
	t := Table{Head: []string{"99 % of the clients that are not naive are back, s from the server's return"}}
	rows := make([][]string, len(compared))
	for i, q := range []fleet.Queue{fleet.Drop, fleet.Unbounded} {
		for _, share := range []float64{0.3, 0.6} {
			title := fmt.Sprintf("%.0f %% are naive, %s", 100*share, map[fleet.Queue]string{fleet.Drop: "a backlog of 4,096", fleet.Unbounded: "all may wait"}[q])
			t.Head = append(t.Head, title)
			p := &chart.Panel{Title: title, X: chart.Axis{Max: until, Bare: i == 0}, Y: chart.Axis{Max: 100, Label: "% of those that are not naive"}, Layers: outages(h)}
			if i > 0 {
				p.X.Label = "time since the loss, s"
			}
			for j, name := range compared {
				h.Server.Queue = q
				client, err := herdClient(name)
				if err != nil {
					return nil, err
				}
				h.Groups = []fleet.Group{{Client: client, Share: 1 - share}, {Client: naive, Share: share}}
				r, err := fleet.Run(ctx, h)
				if err != nil {
					return nil, err
				}
				late := r.Groups[0]
				p.Layers = append(p.Layers, chart.Line{Style: styleOf(name), Points: backOverTime(late, h.Return(), until)})
				rows[j] = append(rows[j], fleet.Seconds(fleet.Quantile(late, 0.99), h.Watch, 1))
			}
			pic.Panels = append(pic.Panels, p)
		}
	}
	for j, name := range compared {
		pic.Legend = append(pic.Legend, styleOf(name))
		t.Rows = append(t.Rows, slices.Concat([]string{name}, rows[j]))
	}
	pic.Legend = append(pic.Legend, away)
	return &Figure{
		Title:    "Naive neighbours",
		Text:     []string{"The herd is of two makes: naive clients, whose dials the server completes in vain, and others, which the pictures show. One run each; a line shows how many are back for good."},
		Pictures: []*chart.Picture{pic},
		Tables:   []Table{t},
	}, nil
}

// backOverTime is the share in % of clients that are back for good, over the time since the
// loss. Late are the times from the server's return, sorted.
func backOverTime(late []time.Duration, back time.Duration, until float64) []chart.Point {
	points := []chart.Point{{}, {X: back.Seconds()}}
	for i, d := range late {
		if d == fleet.Never {
			break
		}
		points = append(points, chart.Point{X: (back + d).Seconds(), Y: 100 * float64(i+1) / float64(len(late))})
	}
	return append(points, chart.Point{X: until, Y: points[len(points)-1].Y})
}
