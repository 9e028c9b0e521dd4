package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Cell is a box with a text in it.
type Cell struct {
	X, Y  float64 // its centre
	Text  string
	Color color.RGBA
	Empty bool // only the border has the colour
}

// Cells are boxes of the same size: a diagram of letters, or a table with colours.
type Cells struct {
	Width, Height float64 // in the units of the axes; a gap of a point is left between
	Cells         []Cell
}

// Plot draws them.
func (s Cells) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := plainText
	style.XAlign, style.YAlign = text.XCenter, text.YCenter
	for _, one := range s.Cells {
		left, right := x(one.X-s.Width/2)+0.5, x(one.X+s.Width/2)-0.5
		low, high := y(one.Y-s.Height/2)+0.5, y(one.Y+s.Height/2)-0.5
		box := []vg.Point{{X: left, Y: low}, {X: right, Y: low}, {X: right, Y: high}, {X: left, Y: high}}
		style.Color = ink(one.Color)
		if one.Empty {
			style.Color = Black
			c.FillPolygon(color.White, box)
			c.StrokeLines(draw.LineStyle{Color: one.Color, Width: 1}, append(box, box[0], box[1]))
		} else {
			c.FillPolygon(one.Color, box)
		}
		c.FillText(style, vg.Point{X: (left + right) / 2, Y: (low + high) / 2}, one.Text)
	}
}

// ink is the colour of a text on a background: black or white, whichever can be read.
func ink(on color.RGBA) color.RGBA {
	if 299*int(on.R)+587*int(on.G)+114*int(on.B) < 128_000 { // luma of ITU-R BT.601
		return color.RGBA{255, 255, 255, 255}
	}
	return Black
}
