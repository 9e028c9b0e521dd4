package chart

import (
	"image/color"
	"math"
	"slices"
)

// Layer is one of the things that a panel shows, all of them cut at the edges of the panel:
// [Line], [Range], [Bars], [Steps], [HBars], [Cells], [Shade] or [Level].
type Layer interface{ draw(f *frame) }

// Shade marks a stretch of the X axis, such as that in which a server fails.
type Shade struct {
	Style    Style
	From, To float64
}

func (s Shade) draw(f *frame) {
	b := box{max(f.atX(s.From), f.left), f.top, min(f.atX(s.To), f.right), f.bottom}
	if b.left < b.right {
		f.fill(s.Style.Color, b.rectangle())
	}
}

// Level is a line across the panel, such as 100 %, if it is within the axis.
type Level struct {
	Style Style
	Y     float64
}

func (l Level) draw(f *frame) {
	if y := f.atY(l.Y); y >= f.top && y <= f.bottom {
		f.stroke(l.Style, spot{f.left, y}, spot{f.right, y})
	}
}

// Range is what lies between two series, such as quantiles, in a pale tint that what is
// behind it can be seen through. Low and High have the same X, point by point. On a
// logarithmic axis a Low that is not above 0 lies at the lower edge.
type Range struct {
	Style     Style
	Low, High []Point
}

func (s Range) draw(f *frame) {
	outline := slices.Clone(s.High)
	for _, p := range slices.Backward(s.Low) {
		outline = append(outline, p)
	}
	var spots []spot
	for _, p := range outline {
		spots = append(spots, f.at(Point{p.X, max(p.Y, f.y.Min)}))
	}
	if len(spots) > 0 {
		c := s.Style.Color
		f.fill(color.NRGBA{R: c.R, G: c.G, B: c.B, A: 32}, f.clamp(spots))
	}
}

// Bars is a series as an area: Values[i] from From + i Step to From + (i+1) Step. What is
// below the axis, such as 0 on a logarithmic one, is not drawn. Of several values that
// fall onto one place the highest is drawn.
type Bars struct {
	Style  Style
	From   float64
	Step   float64 // above 0
	Values []float64
}

func (b Bars) draw(f *frame) {
	for _, outline := range b.outlines(f) {
		f.fill(b.Style.Color, f.clamp(outline))
	}
}

// Steps is what Bars is, as a line around each area. It is for logarithmic axes, on which
// an area says nothing.
type Steps Bars

func (s Steps) draw(f *frame) {
	for _, outline := range Bars(s).outlines(f) {
		for _, part := range f.clip(outline) {
			f.stroke(s.Style, part...)
		}
	}
}

// thinnest is the least width of a bar that stands alone, in points.
const thinnest = 1.2

// outlines returns the line around each stretch of bars that touch each other, from the
// axis up and back to the axis.
func (b Bars) outlines(f *frame) (all [][]spot) {
	var outline []spot
	end := func() {
		if n := len(outline); n > 0 {
			outline[n-1].x = max(outline[n-1].x, outline[0].x+thinnest)
			all = append(all, append(outline, spot{outline[n-1].x, f.bottom}))
			outline = nil
		}
	}
	for i := 0; i < len(b.Values); {
		from := b.From + float64(i)*b.Step
		value := math.Inf(-1)
		first := f.atX(from)
		for ; i < len(b.Values) && (math.IsInf(value, -1) || f.atX(b.From+float64(i+1)*b.Step)-first <= column); i++ {
			value = max(value, b.Values[i])
		}
		if !(value > f.y.Min) || from > f.x.Max { // the one at the edge is cut there, and so has no end
			end()
			continue
		}
		last, top := f.atX(b.From+float64(i)*b.Step), f.atY(value)
		switch n := len(outline); {
		case n == 0:
			outline = append(outline, spot{first, f.bottom}, spot{first, top})
		case outline[n-1].y == top:
			outline = outline[:n-1]
		default:
			outline = append(outline, spot{first, top})
		}
		outline = append(outline, spot{last, top})
	}
	end()
	return all
}

// HBar is a horizontal bar with a text beyond its end.
type HBar struct {
	Y         float64 // its middle
	To        float64 // where it ends
	Low, High float64 // the ends of a thin line along it
	Text      string
	Color     color.RGBA
}

// HBars are bars from one place on the X axis to the left or to the right, such as from 1 on
// a logarithmic axis of ratios. What is not above 0 lies at the left edge of such an axis.
type HBars struct {
	From   float64 // where all begin; a line marks it
	Height float64 // of each, in the units of the Y axis
	Bars   []HBar
}

// textGap is between the end of a bar and its text, in points.
const textGap = 3

func (s HBars) draw(f *frame) {
	x := func(v float64) float64 { return f.atX(min(max(v, f.x.Min), f.x.Max)) }
	from := x(s.From)
	for _, b := range s.Bars {
		to, low, high, at := x(b.To), x(b.Low), x(b.High), f.atY(b.Y)
		f.fill(b.Color, box{from, f.atY(b.Y + s.Height/2), to, f.atY(b.Y - s.Height/2)}.rectangle())
		f.stroke(Style{Color: Black, Width: 0.7}, spot{low, at}, spot{high, at})
		if to < from {
			f.write(plainText, spot{min(to, low) - textGap, at}, 1, 0.5, b.Text)
		} else {
			f.write(plainText, spot{max(to, high) + textGap, at}, 0, 0.5, b.Text)
		}
	}
	f.stroke(Style{Color: Black, Width: 0.8}, spot{from, f.top}, spot{from, f.bottom})
}

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

func (s Cells) draw(f *frame) {
	for _, one := range s.Cells {
		b := box{f.atX(one.X-s.Width/2) + 0.5, f.atY(one.Y+s.Height/2) + 0.5, f.atX(one.X+s.Width/2) - 0.5, f.atY(one.Y-s.Height/2) - 0.5}
		text := plainText
		text.color = ink(one.Color)
		if one.Empty {
			text.color = Black
			f.fill(color.White, b.rectangle())
			outline := b.rectangle()
			f.stroke(Style{Color: one.Color, Width: 1}, append(outline, outline[0], outline[1])...)
		} else {
			f.fill(one.Color, b.rectangle())
		}
		f.write(text, spot{(b.left + b.right) / 2, (b.top + b.bottom) / 2}, 0.5, 0.5, one.Text)
	}
}

// ink is the colour of a text on a background: black or white, whichever can be read.
func ink(on color.RGBA) color.RGBA {
	if 299*int(on.R)+587*int(on.G)+114*int(on.B) < 128_000 { // luma of ITU-R BT.601
		return color.RGBA{255, 255, 255, 255}
	}
	return Black
}
