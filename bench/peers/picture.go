package peers

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"

	"github.com/redial-go/redial/bench/report/chart"
)

// shades are the colours of a ratio, the deepest green for what costs least.
var shades = []struct {
	below float64
	chart.Style
}{
	{0.2, chart.Style{Name: "below 0.2 of coder/websocket", Color: color.RGBA{0, 120, 88, 255}, Area: true}},
	{0.5, chart.Style{Name: "below 0.5", Color: color.RGBA{102, 190, 160, 255}, Area: true}},
	{0.9, chart.Style{Name: "below 0.9", Color: color.RGBA{214, 237, 228, 255}, Area: true}},
	{1.15, chart.Style{Name: "about the same", Color: color.RGBA{240, 240, 240, 255}, Area: true}},
	{2, chart.Style{Name: "below 2", Color: color.RGBA{246, 215, 160, 255}, Area: true}},
	{1e300, chart.Style{Name: "more", Color: color.RGBA{213, 94, 0, 255}, Area: true}},
}

// Picture is the table of the ratios' medians, a column for each row that has ratios and a
// line for each peer. It is nil if there are no ratios. The note says how it was measured.
func (r *Report) Picture(note string) *chart.Picture {
	var (
		rows  []*Result
		peers []string
	)
	for _, row := range r.Rows {
		if row.rounds() == 0 || !row.columns[0].ratio {
			continue
		}
		rows = append(rows, row)
		for _, p := range row.Peers {
			if !slices.Contains(peers, p.Name) {
				peers = append(peers, p.Name)
			}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	const wide, high, left = 86, 18, 110 // points for a row, a peer and the names
	cells := chart.Cells{Width: 1, Height: 1}
	panel := &chart.Panel{
		X: chart.Axis{Min: -0.5, Max: float64(len(rows)) - 0.5},
		Y: chart.Axis{Min: 0.5 - float64(len(peers)), Max: 0.5},
	}
	for i, name := range peers {
		panel.Y.Ticks = append(panel.Y.Ticks, chart.Tick{At: float64(-i), Label: name})
	}
	for j, row := range rows {
		panel.X.Ticks = append(panel.X.Ticks, chart.Tick{At: float64(j), Label: row.Name})
		for _, p := range row.Peers {
			v := p.Ratio.Median()
			at := slices.Index(peers, p.Name)
			cells.Cells = append(cells.Cells, chart.Cell{X: float64(j), Y: float64(-at), Text: decimal(v, 2), Color: shade(v)})
		}
	}
	panel.Layers = []plot.Plotter{cells}
	p := &chart.Picture{
		Name: "peers", Title: "What a message, a redial and an idle connection cost, compared with coder/websocket", Note: note,
		Width: float64(left + wide*max(len(rows), 5)), Height: float64(high*len(peers) + 30), Panels: []*chart.Panel{panel},
	}
	for _, s := range shades {
		p.Legend = append(p.Legend, s.Style)
	}
	return p
}

func shade(ratio float64) color.RGBA {
	for _, s := range shades {
		if ratio < s.below {
			return s.Color
		}
	}
	return chart.Grey
}
