package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Range is what lies between two series, such as quantiles, in a pale tint that what is
// behind it can be seen through. Low and High have the same X, point by point.
type Range struct {
	Style     Style
	Low, High []Point
}

// Plot draws it, cut at the edges of the panel. On a logarithmic axis a Low that is not
// above 0 lies at the lower edge.
func (s Range) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	at := func(one Point) vg.Point {
		return vg.Point{X: x(one.X), Y: y(max(one.Y, p.Y.Min))}
	}
	var outline []vg.Point
	for _, one := range s.High {
		outline = append(outline, at(one))
	}
	for i := range s.Low {
		outline = append(outline, at(s.Low[len(s.Low)-1-i]))
	}
	if len(outline) > 0 {
		c.FillPolygon(tint(s.Style.Color), c.ClipPolygonXY(outline))
	}
}

// tint is a colour at an eighth of its strength.
func tint(of color.RGBA) color.Color {
	return color.NRGBA{R: of.R, G: of.G, B: of.B, A: 32}
}
