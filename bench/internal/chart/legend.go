package chart

import "slices"

// The measures of a legend, in points.
const (
	legendRow   = 15
	swatch      = 22 // length of the line that is shown
	swatchGap   = 5  // to its name
	legendEntry = 16 // between entries
)

// flow breaks the entries into rows that are not wider than width.
func flow(entries []Style, width float64) [][]Style {
	var (
		rows [][]Style
		seen []string
		used float64
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

func entryWidth(s Style) float64 { return swatch + swatchGap + plainText.width(s.Name) }

// drawLegend draws rows at the top of b.
func drawLegend(c *svg, b box, rows [][]Style) {
	for i, row := range rows {
		x, y := b.left, b.top+(float64(i)+0.5)*legendRow
		for _, s := range row {
			if s.Area {
				c.fill(s.Color, box{x, y - 4, x + swatch, y + 4}.rectangle())
			} else {
				c.stroke(s, spot{x, y}, spot{x + swatch, y})
			}
			c.write(plainText, spot{x + swatch + swatchGap, y}, 0, 0.5, s.Name)
			x += entryWidth(s) + legendEntry
		}
	}
}
