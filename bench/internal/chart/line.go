package chart

import "math"

// Point is a value of a series. A Y that is not a number is a gap; on a logarithmic
// axis so is one that is not above 0.
type Point struct{ X, Y float64 }

// Line is a series as a line from point to point.
type Line struct {
	Style  Style
	Points []Point
	Dotted bool // each point is marked as well
}

func (l Line) draw(f *frame) {
	for _, part := range f.place(l.Points) {
		for _, visible := range f.clip(reduce(part)) {
			f.stroke(l.Style, visible...)
		}
		for _, at := range part {
			if l.Dotted && f.nearest(at) == at {
				f.dot(l.Style.Color, at)
			}
		}
	}
}

// place returns where the points are in the picture, broken at the gaps.
func (f *frame) place(points []Point) (parts [][]spot) {
	broken := true
	for _, p := range points {
		if math.IsNaN(p.Y) || math.IsInf(p.Y, 0) || f.y.Log && p.Y <= 0 {
			broken = true
			continue
		}
		if broken {
			parts, broken = append(parts, nil), false
		}
		last := &parts[len(parts)-1]
		*last = append(*last, f.at(p))
	}
	return parts
}

// column is the width, in points, within which no more than four points of a line are
// kept.
const column = 0.6

// reduce leaves out what cannot be seen: of the points within a column it keeps the first,
// the lowest, the highest and the last, in their order. The points go from left to right.
func reduce(points []spot) (kept []spot) {
	for from := 0; from < len(points); {
		until, low, high := from, from, from
		slot := math.Floor(points[from].x / column)
		for ; until < len(points) && math.Floor(points[until].x/column) == slot; until++ {
			if points[until].y < points[low].y {
				low = until
			}
			if points[until].y > points[high].y {
				high = until
			}
		}
		last := -1
		for _, i := range []int{from, min(low, high), max(low, high), until - 1} {
			if i > last {
				kept, last = append(kept, points[i]), i
			}
		}
		from = until
	}
	return kept
}
