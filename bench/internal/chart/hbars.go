package chart

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// HBar is a horizontal bar with a text beyond its end.
type HBar struct {
	Y         float64 // its middle
	To        float64 // where it ends
	Low, High float64 // the ends of a thin line along it
	Text      string
	Color     color.RGBA
}

// HBars are bars from one place on the X axis to the left or to the right, such as from 1 on
// a logarithmic axis of ratios.
type HBars struct {
	From   float64 // where all begin; a line marks it
	Height float64 // of each, in the units of the Y axis
	Bars   []HBar
}

// textGap is between the end of a bar and its text, in points.
const textGap = 3

// Plot draws them. What is not above 0 lies at the left edge of a logarithmic axis.
func (s HBars) Plot(c draw.Canvas, p *plot.Plot) {
	toX, y := p.Transforms(&c)
	x := func(v float64) vg.Length { return toX(math.Min(math.Max(v, p.X.Min), p.X.Max)) }
	from := x(s.From)
	for _, b := range s.Bars {
		to, low, high, at := x(b.To), x(b.Low), x(b.High), y(b.Y)
		bottom, top := y(b.Y-s.Height/2), y(b.Y+s.Height/2)
		c.FillPolygon(b.Color, []vg.Point{{X: from, Y: bottom}, {X: to, Y: bottom}, {X: to, Y: top}, {X: from, Y: top}})
		c.StrokeLine2(draw.LineStyle{Color: Black, Width: 0.7}, low, at, high, at)
		style := plainText
		style.YAlign = text.YCenter
		place := vg.Point{X: max(from, to, high) + textGap, Y: at}
		if to < from {
			style.XAlign = text.XRight
			place.X = min(to, low) - textGap
		}
		c.FillText(style, place, b.Text)
	}
	c.StrokeLine2(draw.LineStyle{Color: Black, Width: 0.8}, from, c.Min.Y, from, c.Max.Y)
}
