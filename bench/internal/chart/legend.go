package chart

import (
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The measures of a legend, in points.
const (
	legendRow   = 15
	swatch      = 22 // length of the line that is shown
	swatchGap   = 5  // to its name
	legendEntry = 16 // between entries
)

// flow breaks the entries into rows that are not wider than width.
func flow(entries []Style, width vg.Length) [][]Style {
	var (
		rows [][]Style
		seen []string
		used vg.Length
	)
	for _, s := range entries {
		if slices.Contains(seen, s.Name) {
			continue
		}
		seen = append(seen, s.Name)
		w := entryWidth(s)
		if len(rows) == 0 || used+w > width {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], s)
		used += w + legendEntry
	}
	return rows
}

func entryWidth(s Style) vg.Length { return swatch + swatchGap + plainText.Width(s.Name) }

// drawLegend draws it at the top of c and returns its height.
func drawLegend(c draw.Canvas, entries []Style) vg.Length {
	rows := flow(entries, c.Size().X)
	name := plainText
	name.YAlign = text.YCenter
	for i, row := range rows {
		x, y := c.Min.X, c.Max.Y-vg.Length(i)*legendRow-legendRow/2
		for _, s := range row {
			if s.Area {
				c.FillPolygon(s.Color, []vg.Point{{X: x, Y: y - 4}, {X: x + swatch, Y: y - 4}, {X: x + swatch, Y: y + 4}, {X: x, Y: y + 4}})
			} else {
				c.StrokeLine2(s.line(), x, y, x+swatch, y)
			}
			c.FillText(name, vg.Point{X: x + swatch + swatchGap, Y: y}, s.Name)
			x += entryWidth(s) + legendEntry
		}
	}
	return vg.Length(len(rows)) * legendRow
}
