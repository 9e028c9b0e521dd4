package lone

import (
	"image/color"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/chart"
)

// shades are the colours of a cell by its p95, the palest for what is soon.
var shades = []struct {
	below time.Duration
	chart.Style
}{
	{10 * time.Second, chart.Style{Name: "p95 below 10 s", Color: color.RGBA{222, 240, 234, 255}, Area: true}},
	{30 * time.Second, chart.Style{Name: "below 30 s", Color: color.RGBA{246, 232, 195, 255}, Area: true}},
	{2 * time.Minute, chart.Style{Name: "below 2 min", Color: color.RGBA{230, 159, 0, 255}, Area: true}},
	{10 * time.Minute, chart.Style{Name: "below 10 min", Color: color.RGBA{213, 94, 0, 255}, Area: true}},
	{1 << 62, chart.Style{Name: "later, or never", Color: color.RGBA{90, 30, 0, 255}, Area: true}},
}

// Picture returns the table as a picture. The cells of rows that say how late a client is back have a colour.
func Picture(rows []Circumstance, clients []fleet.Client, all [][]*Result) *chart.Picture {
	const high = 17 // points for a row
	cells := chart.Cells{Width: 1, Height: 1}
	p := &chart.Panel{X: chart.Axis{Min: -0.5, Max: float64(len(clients)) - 0.5}, Y: chart.Axis{Max: 0.5}}
	for j, c := range clients {
		p.X.Ticks = append(p.X.Ticks, chart.Tick{At: float64(j), Label: c.Name})
	}
	y := 0.0
	for i, r := range rows {
		late := r.Show(all[i][0]) == HowLate(all[i][0])
		p.Y.Ticks = append(p.Y.Ticks, chart.Tick{At: y, Label: r.Name})
		for j, o := range all[i] {
			cell := chart.Cell{X: float64(j), Y: y, Text: r.Show(o), Color: shade(fleet.Quantile(o.Late, 0.95))}
			if !late {
				cell.Color, cell.Empty = chart.Grey, true
			}
			cells.Cells = append(cells.Cells, cell)
		}
		y--
	}
	p.Y.Min = y + 0.5
	p.Layers = []chart.Layer{cells}
	pic := &chart.Picture{
		Name: "lone", Title: "How late one client is back", Height: 40 - high*(y-1), Width: 900, Panels: []*chart.Panel{p},
		Note: "Seconds after the server is back: median / p95; in cells without a colour what the row says. Simulated",
	}
	if slices.ContainsFunc(clients, func(c fleet.Client) bool { return c.Lent }) {
		pic.Note += ". A policy without a limit on a dial has the best of several"
	}
	for _, s := range shades {
		pic.Legend = append(pic.Legend, s.Style)
	}
	return pic
}

// shade is the colour for a p95.
func shade(p95 time.Duration) color.RGBA {
	for _, s := range shades {
		if p95 != fleet.Never && p95 < s.below {
			return s.Color
		}
	}
	return shades[len(shades)-1].Color
}
