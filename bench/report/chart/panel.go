package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Panel is one diagram of a picture.
type Panel struct {
	Title  string // what is seen; one line above it
	X, Y   Axis
	Layers []plot.Plotter // of this package, from back to front
}

// Axis is what an axis shows.
type Axis struct {
	Label    string // with the unit; that of the Y axis is beside the panel's title
	Min, Max float64
	Log      bool   // to base 10; Min is above 0
	Ticks    []Tick // default: some round numbers
	Bare     bool   // the ticks have no labels: the panel below has the same
}

// Tick is a mark at an axis.
type Tick struct {
	At    float64
	Label string // empty: a small mark, and no line across the panel
}

// plot is the panel in gonum's terms.
func (p *Panel) plot() *plot.Plot {
	q := plot.New()
	q.BackgroundColor = nil
	q.Title.Text = " " // keeps the room; the heading is drawn from the left
	q.Title.TextStyle = panelText
	q.Title.Padding = 3
	p.X.apply(&q.X)
	p.Y.apply(&q.Y)
	q.X.Label.Text = p.X.Label
	q.X.Label.Padding = 2
	q.X.Label.TextStyle.Font = plainText.Font
	q.Add(grid{})
	q.Add(p.Layers...)
	q.Add(heading{p.Title, p.Y.Label})
	return q
}

func (a *Axis) apply(to *plot.Axis) {
	to.Min, to.Max = a.Min, a.Max
	to.Padding = 0
	to.Tick.Label.Font = plainText.Font
	to.LineStyle = draw.LineStyle{Color: dim, Width: 0.6}
	to.Tick.LineStyle = to.LineStyle
	to.Tick.Length = 4
	if a.Log {
		to.Scale = plot.LogScale{}
	}
	ticks := a.Ticks
	if ticks == nil {
		ticks = roundTicks(a.Min, a.Max, a.Log)
	}
	marks := make([]plot.Tick, 0, len(ticks))
	for _, t := range ticks {
		label := t.Label
		if a.Bare {
			label = ""
		}
		marks = append(marks, plot.Tick{Value: t.At, Label: label})
	}
	to.Tick.Marker = plot.ConstantTicks(marks)
}

// heading is a panel's title, above its left edge, and what its Y axis shows: beside the
// axis gonum leaves a wrong amount of room for that if the axis is logarithmic.
type heading struct{ title, label string }

// Plot draws it.
func (h heading) Plot(c draw.Canvas, _ *plot.Plot) {
	at := vg.Point{X: c.Min.X, Y: c.Max.Y + 4}
	title, label := panelText, noteText
	title.YAlign, label.YAlign = text.YBottom, text.YBottom
	if h.title != "" {
		c.FillText(title, at, h.title)
		at.X += title.Width(h.title) + 7
	}
	if h.label != "" {
		c.FillText(label, at, h.label)
	}
}

// grid is a faint line across the panel at each tick of the Y axis that has a label.
type grid struct{}

// Plot draws it.
func (grid) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if t.Label != "" && t.Value >= p.Y.Min && t.Value <= p.Y.Max {
			c.StrokeLine2(draw.LineStyle{Color: faint, Width: 0.6}, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
}
