package chart

import (
	"math"
	"slices"
)

// Panel is one diagram of a picture.
type Panel struct {
	Title  string // what is seen, above it
	Note   string // under what conditions, below the title and smaller
	X, Y   Axis
	Layers []Layer // from back to front
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

// ticks are the marks within the axis.
func (a *Axis) ticks() []Tick {
	ticks := slices.Clone(a.Ticks)
	if a.Ticks == nil {
		ticks = roundTicks(a.Min, a.Max, a.Log)
	}
	slack := 1e-9 * (a.Max - a.Min)
	ticks = slices.DeleteFunc(ticks, func(t Tick) bool { return t.At < a.Min-slack || t.At > a.Max+slack })
	for i := range ticks {
		if a.Bare {
			ticks[i].Label = ""
		}
	}
	return ticks
}

// share is how far along the axis a value is.
func (a *Axis) share(v float64) float64 {
	if a.Log {
		return math.Log(v/a.Min) / math.Log(a.Max/a.Min)
	}
	return (v - a.Min) / (a.Max - a.Min)
}

// frame is the place of a diagram, with its axes.
type frame struct {
	*svg
	box
	x, y *Axis
}

func (f *frame) atX(v float64) float64 { return f.left + f.x.share(v)*(f.right-f.left) }

func (f *frame) atY(v float64) float64 { return f.bottom - f.y.share(v)*(f.bottom-f.top) }

func (f *frame) at(p Point) spot { return spot{f.atX(p.X), f.atY(p.Y)} }

// The measures around a diagram, in points.
const (
	tickLength = 4
	tickGap    = 2.5 // to the label
	labelGap   = 7   // between a title and what the Y axis shows
	headingGap = 6   // below a heading
)

// left is the room for the marks of the Y axis.
func (p *Panel) left() (room float64) {
	for _, t := range p.Y.ticks() {
		room = max(room, plainText.width(t.Label))
	}
	return room + tickLength + tickGap
}

// right is the room for half of the last label of the X axis.
func (p *Panel) right() (room float64) {
	for _, t := range p.X.ticks() {
		if p.X.share(t.At) > 0.9 {
			room = max(room, plainText.width(t.Label)/2)
		}
	}
	return room
}

// below is the room for the marks of the X axis and what it shows.
func (p *Panel) below() float64 {
	room := float64(tickLength + tickGap)
	if slices.ContainsFunc(p.X.ticks(), func(t Tick) bool { return t.Label != "" }) {
		room += plainText.height()
	}
	if p.X.Label != "" {
		room += plainText.height()
	}
	return room
}

func (p *Panel) draw(c *svg, b box) {
	f := &frame{c, b, &p.X, &p.Y}
	for _, t := range p.Y.ticks() {
		if t.Label != "" {
			c.stroke(Style{Color: faint, Width: 0.6}, spot{b.left, f.atY(t.At)}, spot{b.right, f.atY(t.At)})
		}
	}
	for _, layer := range p.Layers {
		layer.draw(f)
	}
	f.axes()
	newHeading(p, b.right-b.left).draw(c, spot{b.left, b.top - headingGap})
}

// axes draws both axes.
func (f *frame) axes() {
	line := Style{Color: dim, Width: 0.6}
	f.stroke(line, spot{f.left, f.top}, spot{f.left, f.bottom}, spot{f.right, f.bottom})
	length := func(t Tick) float64 {
		if t.Label == "" {
			return tickLength / 2
		}
		return tickLength
	}
	for _, t := range f.y.ticks() {
		y := f.atY(t.At)
		f.stroke(line, spot{f.left - length(t), y}, spot{f.left, y})
		f.write(plainText, spot{f.left - tickLength - tickGap, y}, 1, 0.5, t.Label)
	}
	under := f.bottom + tickLength + tickGap
	for _, t := range f.x.ticks() {
		x := f.atX(t.At)
		f.stroke(line, spot{x, f.bottom}, spot{x, f.bottom + length(t)})
		f.write(plainText, spot{x, f.bottom + tickLength}, 0.5, 0, t.Label)
		if t.Label != "" {
			under = f.bottom + tickLength + plainText.height()
		}
	}
	f.write(plainText, spot{(f.left + f.right) / 2, under}, 0.5, 0, f.x.Label)
}

// heading is what stands above a panel: its title, what its Y axis shows, and its note.
// The label of the axis is beside the title, or in a line of its own where that is too narrow.
type heading struct {
	title []string // lines; at least one, so that all panels have the room
	label string   // beside the last of title
	notes []string // lines
}

func newHeading(p *Panel, width float64) heading {
	h := heading{title: wrap(panelText, p.Title, width), label: p.Y.Label}
	if h.title == nil {
		h.title = []string{""}
	}
	last := h.title[len(h.title)-1]
	if last != "" && wider*(panelText.width(last)+noteText.width(h.label))+labelGap > width {
		h.label, h.notes = "", wrap(noteText, h.label, width)
	}
	h.notes = append(h.notes, wrap(noteText, p.Note, width)...)
	return h
}

func (h heading) height() float64 {
	return float64(len(h.title))*panelText.height() + float64(len(h.notes))*noteText.height()
}

// draw draws it above a place.
func (h heading) draw(c *svg, at spot) {
	for _, line := range slices.Backward(h.notes) {
		c.write(noteText, at, 0, 1, line)
		at.y -= noteText.height()
	}
	last := h.title[len(h.title)-1]
	beside := at
	if last != "" {
		beside.x += wider*panelText.width(last) + labelGap
	}
	c.write(noteText, beside, 0, 1, h.label)
	for _, line := range slices.Backward(h.title) {
		c.write(panelText, at, 0, 1, line)
		at.y -= panelText.height()
	}
}
