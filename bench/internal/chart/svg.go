package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"
)

// spot is a place in a picture, in points from its upper left corner.
type spot struct{ x, y float64 }

// svg is an SVG in the making.
type svg struct{ bytes.Buffer }

const fonts = "Liberation Sans, Arial, Helvetica, sans-serif"

// newSVG begins an SVG with a title, its accessible name.
func newSVG(title string, width, height float64) *svg {
	s := &svg{}
	fmt.Fprintf(s, `<?xml version="1.0"?>
<svg width="%[1]spt" height="%[2]spt" viewBox="0 0 %[1]s %[2]s" xmlns="http://www.w3.org/2000/svg">
<title>%[3]s</title>
<g font-family="%[4]s">
`, coordinate(width), coordinate(height), escape(title), fonts)
	s.fill(color.White, []spot{{0, 0}, {width, 0}, {width, height}, {0, height}})
	return s
}

// end returns the whole SVG.
func (s *svg) end() []byte {
	s.WriteString("</g>\n</svg>\n")
	return s.Bytes()
}

// coordinate rounds to a twentieth of a point, which cannot be seen.
func coordinate(x float64) string { return strconv.FormatFloat(math.Round(20*x)/20, 'f', -1, 64) }

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder has no errors
	return b.String()
}

func (s *svg) path(points []spot, end, style string) {
	s.WriteString(`<path d="`)
	for i, p := range points {
		letter := byte('L')
		if i == 0 {
			letter = 'M'
		}
		s.WriteByte(letter)
		s.WriteString(coordinate(p.x) + "," + coordinate(p.y))
	}
	s.WriteString(end + `" style="` + style + "\"/>\n")
}

// fill fills the area within a line.
func (s *svg) fill(c color.Color, outline []spot) {
	s.path(outline, "Z", "fill:"+paint(c, "fill"))
}

// stroke draws a line.
func (s *svg) stroke(l Style, points ...spot) {
	if len(points) < 2 {
		return
	}
	style := "fill:none;stroke:" + paint(l.Color, "stroke") + ";stroke-width:" + coordinate(l.width())
	for i, d := range l.Dash {
		style += map[bool]string{true: ";stroke-dasharray:", false: ","}[i == 0] + coordinate(d)
	}
	s.path(points, "", style)
}

// dot marks a place.
func (s *svg) dot(c color.Color, at spot) {
	fmt.Fprintf(s, "<circle cx=\"%s\" cy=\"%s\" r=\"2\" style=\"fill:%s\"/>\n", coordinate(at.x), coordinate(at.y), paint(c, "fill"))
}

// paint is a colour, and how much of it there is.
func paint(c color.Color, of string) string {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	text := fmt.Sprintf("#%02X%02X%02X", n.R, n.G, n.B)
	if n.A < 255 {
		text += fmt.Sprintf(";%s-opacity:%.3g", of, float64(n.A)/255)
	}
	return text
}

// write writes a text. Its upper left corner is at a place, or with shares above 0 what is so
// much of its width to the right, and of its height down. The width is written too, so that
// the text does not run into its neighbour where a wider font stands in for ours.
func (s *svg) write(f font, at spot, right, down float64, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	width, style := f.width(text), "font-size:"+coordinate(f.size)+"px"
	x, y := at.x-right*width, at.y-down*f.height()+ascent*f.size
	if f.bold {
		style = "font-weight:bold;" + style
	}
	if f.color != Black {
		style += ";fill:" + paint(f.color, "fill")
	}
	length := ""
	if len(text) > 3 { // shorter ones have room
		length = fmt.Sprintf(` textLength="%.1f" lengthAdjust="spacingAndGlyphs"`, width)
	}
	fmt.Fprintf(s, "<text%s x=\"%s\" y=\"%s\" style=\"%s\">%s</text>\n", length, coordinate(x), coordinate(y), style, escape(text))
}

// box is a rectangle of a picture.
type box struct{ left, top, right, bottom float64 }

// rectangle is the line around b.
func (b box) rectangle() []spot {
	return []spot{{b.left, b.bottom}, {b.right, b.bottom}, {b.right, b.top}, {b.left, b.top}}
}

// nearest is the place in b that is nearest to p.
func (b box) nearest(p spot) spot {
	return spot{min(max(p.x, b.left), b.right), min(max(p.y, b.top), b.bottom)}
}

// clip returns the parts of a line that are within b.
func (b box) clip(points []spot) (parts [][]spot) {
	for i := 1; i < len(points); i++ {
		from, to, ok := b.cut(points[i-1], points[i])
		if !ok {
			continue
		}
		if n := len(parts); n > 0 && parts[n-1][len(parts[n-1])-1] == from {
			parts[n-1] = append(parts[n-1], to)
		} else {
			parts = append(parts, []spot{from, to})
		}
	}
	return parts
}

// cut returns the part of a straight line that is within b, by Liang and Barsky.
func (b box) cut(from, to spot) (first, last spot, ok bool) {
	dx, dy := to.x-from.x, to.y-from.y
	begin, end := 0.0, 1.0
	for _, edge := range []struct{ d, room float64 }{{-dx, from.x - b.left}, {dx, b.right - from.x}, {-dy, from.y - b.top}, {dy, b.bottom - from.y}} {
		switch t := edge.room / edge.d; {
		case edge.d == 0 && edge.room < 0:
			return from, to, false
		case edge.d < 0:
			begin = max(begin, t)
		case edge.d > 0:
			end = min(end, t)
		}
	}
	if begin > end || begin == end && from != to {
		return from, to, false
	}
	at := func(t float64) spot { return spot{from.x + t*dx, from.y + t*dy} }
	first, last = from, to
	if begin > 0 {
		first = at(begin)
	}
	if end < 1 {
		last = at(end)
	}
	return first, last, true
}

// clamp moves each point of an outline into b.
func (b box) clamp(outline []spot) []spot {
	outline = slices.Clone(outline)
	for i, p := range outline {
		outline[i] = b.nearest(p)
	}
	return slices.Compact(outline)
}
