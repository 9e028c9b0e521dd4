package chart

import (
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
)

// rounded is a canvas whose paths are rounded to a twentieth of a point, which makes the text
// of an SVG shorter and cannot be seen.
type rounded struct{ vg.Canvas }

// Stroke rounds the path.
func (r rounded) Stroke(p vg.Path) { r.Canvas.Stroke(round(p)) }

// Fill rounds the path.
func (r rounded) Fill(p vg.Path) { r.Canvas.Fill(round(p)) }

func round(p vg.Path) vg.Path {
	p = slices.Clone(p)
	for i := range p {
		p[i].Pos.X = vg.Length(math.Round(float64(20*p[i].Pos.X)) / 20)
		p[i].Pos.Y = vg.Length(math.Round(float64(20*p[i].Pos.Y)) / 20)
	}
	return p
}
