package chart

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Point is a value of a series. A Y that is not a number is a gap; on a logarithmic
// axis so is one that is not above 0.
type Point struct{ X, Y float64 }

// Line is a series as a line from point to point.
type Line struct {
	Style  Style
	Points []Point
	Dotted bool // each point is marked as well
}

// Plot draws it, cut at the edges of the panel.
func (l Line) Plot(c draw.Canvas, p *plot.Plot) {
	for _, part := range place(l.Points, c, p) {
		c.StrokeLines(l.Style.line(), c.ClipLinesXY(reduce(part))...)
		if !l.Dotted {
			continue
		}
		for _, at := range part {
			c.DrawGlyph(draw.GlyphStyle{Color: l.Style.Color, Radius: 2, Shape: draw.CircleGlyph{}}, at)
		}
	}
}

// place returns where the points are on the canvas, broken at the gaps.
func place(points []Point, c draw.Canvas, p *plot.Plot) [][]vg.Point {
	x, y := p.Transforms(&c)
	_, logarithmic := p.Y.Scale.(plot.LogScale)
	var parts [][]vg.Point
	broken := true
	for _, at := range points {
		if math.IsNaN(at.Y) || math.IsInf(at.Y, 0) || (logarithmic && at.Y <= 0) {
			broken = true
			continue
		}
		if broken {
			parts, broken = append(parts, nil), false
		}
		last := &parts[len(parts)-1]
		*last = append(*last, vg.Point{X: x(at.X), Y: y(at.Y)})
	}
	return parts
}

// column is the width, in points, within which no more than four points of a line are
// kept.
const column = 0.6

// reduce leaves out what cannot be seen: of the points within a column it keeps the first,
// the lowest, the highest and the last, in their order. The points go from left to right.
func reduce(points []vg.Point) []vg.Point {
	var kept []vg.Point
	for from := 0; from < len(points); {
		until, low, high := from, from, from
		slot := math.Floor(float64(points[from].X / column))
		for ; until < len(points) && math.Floor(float64(points[until].X/column)) == slot; until++ {
			if points[until].Y < points[low].Y {
				low = until
			}
			if points[until].Y > points[high].Y {
				high = until
			}
		}
		last := -1
		for _, i := range []int{from, min(low, high), max(low, high), until - 1} {
			if i > last {
				kept, last = append(kept, points[i]), i
			}
		}
		from = until
	}
	return kept
}
