package chart

import (
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Panel is one diagram of a picture.
type Panel struct {
	Title  string // what is seen, above it
	Note   string // under what conditions, below the title and smaller
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

// plot is the panel in gonum's terms, for a tile of that width.
func (p *Panel) plot(width vg.Length) *plot.Plot {
	above := newHeading(p, width-axisRoom)
	q := plot.New()
	q.BackgroundColor = nil
	q.Title.Text = " " // keeps the room; the heading is drawn from the left
	q.Title.TextStyle = panelText
	q.Title.Padding = 3 + above.height() - panelText.FontExtents().Height
	p.X.apply(&q.X)
	p.Y.apply(&q.Y)
	q.X.Label.Text = p.X.Label
	q.X.Label.Padding = 2
	q.X.Label.TextStyle.Font = plainText.Font
	q.Add(grid{})
	q.Add(p.Layers...)
	q.Add(above)
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

// axisRoom is how much of a panel's width is beside the place of its heading: the marks of
// the Y axis, and a little on the right.
const axisRoom = 40

// heading is what stands above a panel: its title, what its Y axis shows, and its note.
// What the axis shows is beside the title, or in a line of its own where that is too
// narrow: beside the axis gonum leaves a wrong amount of room for it if the axis is
// logarithmic.
type heading struct {
	title []string // lines; at least one, so that all panels have the room
	label string   // beside the last of title
	notes []string // lines
}

func newHeading(p *Panel, width vg.Length) heading {
	h := heading{title: wrap(panelText, p.Title, width), label: p.Y.Label}
	if h.title == nil {
		h.title = []string{""}
	}
	last := h.title[len(h.title)-1]
	if last != "" && wider*(panelText.Width(last)+noteText.Width(h.label))+labelGap > width {
		h.label, h.notes = "", wrap(noteText, h.label, width)
	}
	h.notes = append(h.notes, wrap(noteText, p.Note, width)...)
	return h
}

// labelGap is between a title and what the Y axis shows.
const labelGap = 7

func (h heading) height() vg.Length {
	return vg.Length(len(h.title))*panelText.FontExtents().Height + vg.Length(len(h.notes))*noteText.FontExtents().Height
}

// Plot draws it.
func (h heading) Plot(c draw.Canvas, _ *plot.Plot) {
	at := vg.Point{X: c.Min.X, Y: c.Max.Y + 4}
	title, note := panelText, noteText
	title.YAlign, note.YAlign = text.YBottom, text.YBottom
	for _, line := range slices.Backward(h.notes) {
		c.FillText(note, at, line)
		at.Y += note.FontExtents().Height
	}
	last := h.title[len(h.title)-1]
	if h.label != "" {
		beside := at
		if last != "" {
			beside.X += wider*title.Width(last) + labelGap
		}
		c.FillText(note, beside, h.label)
	}
	for _, line := range slices.Backward(h.title) {
		c.FillText(title, at, line)
		at.Y += title.FontExtents().Height
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
