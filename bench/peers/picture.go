package main

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/cli"
)

// pictured are the rows of the picture of the README.
var pictured = []string{"receive-128", "receive-4k", "send-64", "idle-10000"}

// Picture draws the ratios to the base as bars, a panel for each row that is pictured, or if there is
// none of these for each other row that has ratios.
func (r *Report) Picture() (*chart.Picture, error) {
	var rows, others []*Result
	for _, row := range r.Rows {
		switch {
		case !row.hasRatios(0) || row.Columns[0].Short == "":
		case slices.Contains(pictured, row.Name):
			rows = append(rows, row)
		default:
			others = append(others, row)
		}
	}
	title := "What messages and idle connections cost, compared with coder/websocket"
	if rows == nil {
		rows, title = others, "What echoes, redials and idle connections cost, compared with coder/websocket"
	}
	if rows == nil {
		return nil, errors.New("none of the rows has ratios")
	}
	return ratios(title, rows), nil
}

// Colours by what a peer does about a loss, and the noise.
var (
	ofRedial  = chart.Style{Name: "redial", Color: chart.Green, Area: true}
	redialing = chart.Style{Name: "dials again by itself", Color: chart.Blue, Area: true}
	once      = chart.Style{Name: "does not dial again", Color: chart.Grey, Area: true}
	noise     = chart.Style{Name: "coder measured a second time: noise", Color: color.RGBA{225, 225, 225, 255}, Area: true}
)

func styleOf(name string) chart.Style {
	p, err := findPeer(name)
	switch {
	case strings.HasPrefix(name, "redial-"):
		return ofRedial
	case err == nil && p.redials:
		return redialing
	}
	return once
}

// ratios draws a panel for each row, all with the same axes.
func ratios(title string, rows []*Result) *chart.Picture {
	peers := union(rows)
	const high, least = 12.5, 52 // points of a peer, and of what is above and below the bars
	p := &chart.Picture{
		Name: "peers", Title: title, Columns: min(4, len(rows)), Height: float64(len(peers))*high + least,
		Note: fmt.Sprintf("Less is better. A bar is the median of the ratios of %s, its line goes from the lowest to the highest; %s",
			roundsText(rows), loads(rows)),
		Legend: []chart.Style{ofRedial, redialing, once, noise},
	}
	x := ratioAxis(rows)
	for i, row := range rows {
		bars := chart.HBars{From: 1, Height: 0.7}
		panel := &chart.Panel{
			Title: row.Columns[0].Short, X: x,
			Note: fmt.Sprintf("coder: %s %s", chart.Number(math.Round(row.peer(all[0].name).Figures[0].Median())), row.Columns[0].Name),
			Y:    chart.Axis{Min: 0.4 - float64(len(peers)), Max: 0.6, Bare: i%p.Columns > 0},
		}
		for j, name := range peers {
			panel.Y.Ticks = append(panel.Y.Ticks, chart.Tick{At: float64(-j), Label: name})
			one := row.peer(name)
			if one == nil {
				continue
			}
			s := row.ratio(one, 0)
			if strings.HasSuffix(name, twin) {
				panel.Layers = append(panel.Layers, chart.Shade{Style: noise, From: max(s.Min(), x.Min), To: max(s.Max(), x.Min)})
			}
			bars.Bars = append(bars.Bars, chart.HBar{Y: float64(-j), To: s.Median(), Low: s.Min(), High: s.Max(), Text: decimal(s.Median(), 2), Color: styleOf(name).Color})
		}
		panel.Layers = append(panel.Layers, bars)
		p.Panels = append(p.Panels, panel)
	}
	return p
}

// union returns the peers of all rows, in the order of the package.
func union(rows []*Result) (names []string) {
	for _, name := range slices.Insert(Names(), 1, all[0].name+" "+twin) {
		if slices.ContainsFunc(rows, func(r *Result) bool { return r.peer(name) != nil }) {
			names = append(names, name)
		}
	}
	return names
}

// roundsText is how many rounds the rows had.
func roundsText(rows []*Result) string {
	least, most := rows[0].rounds(), 0
	for _, r := range rows {
		least, most = min(least, r.rounds()), max(most, r.rounds())
	}
	switch {
	case most == 1:
		return "1 round"
	case least == most:
		return fmt.Sprintf("%d rounds", most)
	}
	return fmt.Sprintf("%d to %d rounds", least, most)
}

// ratioAxis has room for all ratios, and for the texts beyond the bars.
func ratioAxis(rows []*Result) chart.Axis {
	const (
		room = 0.2 // for a text, as a share of what is between the longest bars
		most = 6   // powers of ten on either side, because a file may have any number
	)
	low, high := 0.0, 0.0
	for _, row := range rows {
		for _, p := range row.Peers {
			for _, v := range row.ratio(p, 0) {
				if v > 0 { // few connections may hold less than the noise
					low, high = max(min(low, math.Log10(v)), -most), min(max(high, math.Log10(v)), most)
				}
			}
		}
	}
	wide := max(high-low, 1)
	return chart.Axis{Label: "ratio, log scale", Log: true, Min: math.Pow(10, low-room*wide), Max: math.Pow(10, high+room*wide)}
}

// loads says what several measurements have in common, and between what their loads were.
func loads(rows []*Result) string {
	var parts []string
	least, most := rows[0].Measured.Load[0], 0.0
	for _, r := range rows {
		for _, part := range []string{r.Measured.Date, r.Measured.Machine} {
			if !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
		least, most = min(least, slices.Min(r.Measured.Load[:])), max(most, slices.Max(r.Measured.Load[:]))
	}
	return fmt.Sprintf("%s, load average %s to %s", strings.Join(parts, ", "), cli.LoadText(least), cli.LoadText(most))
}
