package chart

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bars is a series as an area: Values[i] from From + i Step to From + (i+1) Step. What is
// below the axis, such as 0 on a logarithmic one, is not drawn. Of several values that
// fall onto one place the highest is drawn.
type Bars struct {
	Style  Style
	From   float64
	Step   float64 // above 0
	Values []float64
}

// Plot draws it, cut at the edges of the panel.
func (b Bars) Plot(c draw.Canvas, p *plot.Plot) {
	for _, outline := range b.outlines(c, p) {
		c.FillPolygon(b.Style.Color, c.ClipPolygonXY(outline))
	}
}

// Steps is what Bars is, as a line around each area. It is for logarithmic axes, on which
// an area says nothing.
type Steps Bars

// Plot draws it, cut at the edges of the panel.
func (s Steps) Plot(c draw.Canvas, p *plot.Plot) {
	for _, outline := range Bars(s).outlines(c, p) {
		c.StrokeLines(s.Style.line(), c.ClipLinesXY(outline)...)
	}
}

// thinnest is the least width of a bar that stands alone, in points.
const thinnest = 1.2

// outlines returns the line around each stretch of bars that touch each other, from the
// axis up and back to the axis.
func (b Bars) outlines(c draw.Canvas, p *plot.Plot) (all [][]vg.Point) {
	x, y := p.Transforms(&c)
	var outline []vg.Point
	end := func() {
		if n := len(outline); n > 0 {
			outline[n-1].X = max(outline[n-1].X, outline[0].X+thinnest)
			all = append(all, append(outline, vg.Point{X: outline[n-1].X, Y: c.Min.Y}))
			outline = nil
		}
	}
	for i := 0; i < len(b.Values); {
		from := b.From + float64(i)*b.Step
		value := math.Inf(-1)
		first := x(from)
		for ; i < len(b.Values) && (math.IsInf(value, -1) || x(b.From+float64(i+1)*b.Step)-first <= column); i++ {
			value = max(value, b.Values[i])
		}
		if !(value > p.Y.Min) || from > p.X.Max { // the one at the edge is cut there, and so has no end
			end()
			continue
		}
		last, top := x(b.From+float64(i)*b.Step), y(value)
		switch n := len(outline); {
		case n == 0:
			outline = append(outline, vg.Point{X: first, Y: c.Min.Y}, vg.Point{X: first, Y: top})
		case outline[n-1].Y == top:
			outline = outline[:n-1]
		default:
			outline = append(outline, vg.Point{X: first, Y: top})
		}
		outline = append(outline, vg.Point{X: last, Y: top})
	}
	end()
	return all
}
