package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Shade marks a stretch of the X axis, such as that in which a server fails.
type Shade struct {
	Style    Style
	From, To float64
}

// Plot draws it, cut at the edges of the panel.
func (s Shade) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	from, to := max(x(s.From), c.Min.X), min(x(s.To), c.Max.X)
	if from < to {
		c.FillPolygon(s.Style.Color, []vg.Point{{X: from, Y: c.Min.Y}, {X: to, Y: c.Min.Y}, {X: to, Y: c.Max.Y}, {X: from, Y: c.Max.Y}})
	}
}

// Band marks a stretch of the Y axis, such as that of what was not reached.
type Band struct {
	Style    Style
	From, To float64
}

// Plot draws it, cut at the edges of the panel.
func (b Band) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	from, to := max(y(b.From), c.Min.Y), min(y(b.To), c.Max.Y)
	if from < to {
		c.FillPolygon(b.Style.Color, []vg.Point{{X: c.Min.X, Y: from}, {X: c.Max.X, Y: from}, {X: c.Max.X, Y: to}, {X: c.Min.X, Y: to}})
	}
}

// Level is a line across the panel, such as 100 %.
type Level struct {
	Style Style
	Y     float64
}

// Plot draws it if it is within the axis.
func (l Level) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	if l.Y >= p.Y.Min && l.Y <= p.Y.Max {
		c.StrokeLine2(l.Style.line(), c.Min.X, y(l.Y), c.Max.X, y(l.Y))
	}
}
