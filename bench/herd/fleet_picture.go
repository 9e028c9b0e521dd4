package herd

import (
	"fmt"
	"image/color"
	"math"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/table"
)

// fleetSeries has a row for each 100 ms of the first run of each client.
func (o *simulatedFleet) fleetSeries() table.Table {
	t := table.Table{{"client", "from_s", "dials", "up"}}
	for i, y := range o.first {
		for bin, dials := range y.DialsPerBin {
			t.Row(o.clients[i].Name, fmt.Sprintf("%.1f", (time.Duration(bin)*fleet.Bin).Seconds()), fmt.Sprint(dials), fmt.Sprint(y.UpPerBin[bin]))
		}
	}
	return t
}

// serverAway is the time of the outage.
var serverAway = chart.Style{Name: "server away", Color: color.RGBA{243, 236, 220, 255}, Area: true}

// Chart has a panel for each client: its dials in each 100 ms of the first run.
func (o *simulatedFleet) Chart() *chart.Picture {
	h := &o.herd
	p := &chart.Picture{
		Name: "fleet", Columns: 2, Height: 110, Title: "Dials per 100 ms of clients that lost their server at one instant, log scale",
		Note: fmt.Sprintf("%s; the server is away for %v, and then completes %s handshakes/s (queue: %v). Back: from its return. Seed %d, simulated",
			cli.Plural(h.N, "client"), h.Outage.Length, chart.Number(h.Server.Capacity), h.Server.Queue, h.Seed),
	}
	if o.lent != "" {
		p.Note += ". A limit in a name: the best of several, because the policy has none"
	}
	until := (h.Return() + max(10*time.Second, h.Ideal()*3/2)).Seconds()
	var outage []chart.Layer
	if away := h.Outage.Length.Seconds(); away > 0 {
		outage = []chart.Layer{chart.Shade{Style: serverAway, To: away}}
		p.Legend = append(p.Legend, serverAway)
	}
	for i, y := range o.first {
		line := chart.Steps{Style: chart.Series(i, o.clients[i].Name), Step: fleet.Bin.Seconds()}
		line.Style.Width, line.Style.Dash = 1, nil // a dash would hide a pulse
		for _, n := range y.DialsPerBin {
			line.Values = append(line.Values, float64(n))
		}
		lowest := i >= len(o.first)-2
		panel := &chart.Panel{
			Title:  fmt.Sprintf("%s: peak %s, %s", o.clients[i].Name, chart.Number(float64(y.Peak)), whenBack(y)),
			X:      chart.Axis{Min: -until / 80, Max: until, Bare: !lowest},
			Y:      chart.Axis{Min: 0.8, Max: chart.RoundUp(math.Max(float64(h.N), 10)), Log: true, Ticks: chart.Decades(math.Max(float64(h.N), 10))},
			Layers: append(append([]chart.Layer{}, outage...), line),
		}
		if lowest {
			panel.X.Label = "time since the loss, s"
		}
		p.Panels = append(p.Panels, panel)
	}
	return p
}

// whenBack returns in which time all were up, in words.
func whenBack(y *fleet.Result) string {
	if y.T100 == fleet.Never {
		return "not all back"
	}
	return fmt.Sprintf("back in %.0f s", y.T100.Seconds())
}
