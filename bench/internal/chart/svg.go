package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// svgCanvas is gonum's canvas with two additions. Paths are rounded to a twentieth of a
// point, which makes the text shorter and cannot be seen. And each text has its width
// written to it, so that it does not run into its neighbour where the font is missing and a
// wider one stands in.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length // of the texts, in the order of their drawing; 0: as it comes
}

// Stroke rounds the path.
func (c *svgCanvas) Stroke(p vg.Path) { c.Canvas.Stroke(round(p)) }

// Fill rounds the path.
func (c *svgCanvas) Fill(p vg.Path) { c.Canvas.Fill(round(p)) }

// FillString notes the width of the text. Blanks are not drawn.
func (c *svgCanvas) FillString(f font.Face, at vg.Point, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	width := vg.Length(0)
	if len(text) > 3 { // shorter ones have room
		width = f.Width(text)
	}
	c.widths = append(c.widths, width)
	c.Canvas.FillString(f, at, text)
}

// What gonum writes, and what replaces it: the font is named once, and not by a font that
// few have alone.
var (
	textTag  = []byte(`<text x="`)
	fontName = []byte("font-family:Liberation Sans;font-variant:normal;")
	plain    = []byte("font-weight:normal;font-style:normal;")
	upright  = []byte("font-style:normal;")
	firstTag = []byte("\n<g transform")
)

const fonts = "Liberation Sans, Arial, Helvetica, sans-serif"

// finish returns the SVG with a title, its accessible name.
func (c *svgCanvas) finish(title string) ([]byte, error) {
	var drawn, name, svg bytes.Buffer
	if _, err := c.WriteTo(&drawn); err != nil {
		return nil, err
	}
	if err := xml.EscapeText(&name, []byte(title)); err != nil {
		return nil, err
	}
	text := drawn.Bytes()
	for _, unneeded := range [][]byte{fontName, plain, upright} {
		text = bytes.ReplaceAll(text, unneeded, nil)
	}
	for i, part := range bytes.Split(text, textTag) {
		switch {
		case i == 0:
			head := fmt.Appendf(nil, "\n<title>%s</title>\n<g font-family=\"%s\" transform", name.Bytes(), fonts)
			svg.Write(bytes.Replace(part, firstTag, head, 1))
			continue
		case i > len(c.widths):
			return nil, fmt.Errorf("gonum wrote %d texts, not %d", i, len(c.widths))
		case c.widths[i-1] > 0:
			fmt.Fprintf(&svg, `<text textLength="%.1f" lengthAdjust="spacingAndGlyphs" x="`, c.widths[i-1].Points())
		default:
			svg.Write(textTag)
		}
		svg.Write(part)
	}
	return svg.Bytes(), nil
}

func round(p vg.Path) vg.Path {
	p = slices.Clone(p)
	for i := range p {
		p[i].Pos.X = vg.Length(math.Round(float64(20*p[i].Pos.X)) / 20)
		p[i].Pos.Y = vg.Length(math.Round(float64(20*p[i].Pos.Y)) / 20)
	}
	return p
}
