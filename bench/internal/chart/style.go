package chart

import (
	"image/color"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The colours of Okabe and Ito, without the yellow, which is too pale for a line on white,
// and a grey.
var (
	Black      = color.RGBA{0, 0, 0, 255}
	Orange     = color.RGBA{230, 159, 0, 255}
	Sky        = color.RGBA{86, 180, 233, 255}
	Green      = color.RGBA{0, 158, 115, 255}
	Blue       = color.RGBA{0, 114, 178, 255}
	Vermillion = color.RGBA{213, 94, 0, 255}
	Purple     = color.RGBA{204, 121, 167, 255}
	Grey       = color.RGBA{127, 127, 127, 255}
)

// Style is how a series looks, in each panel and in the legend.
type Style struct {
	Name  string     // in the legend
	Color color.RGBA //
	Width float64    // of the line, in points; default 1.4
	Dash  []float64  // lengths of strokes and gaps, in points; nil: none
	Area  bool       // the legend shows a box instead of a line
}

// Dashes that can be told apart, from long to short.
var (
	Long  = []float64{7, 3}
	Short = []float64{3, 2}
	Dots  = []float64{1, 2}
)

// line is the style in gonum's terms.
func (s Style) line() draw.LineStyle {
	l := draw.LineStyle{Color: s.Color, Width: vg.Length(orDefault(s.Width, 1.4))}
	for _, d := range s.Dash {
		l.Dashes = append(l.Dashes, vg.Length(d))
	}
	return l
}

type textStyle = text.Style

var (
	titleText = newText(12.5, xfont.WeightBold, Black)
	noteText  = newText(9.5, xfont.WeightNormal, dim)
	panelText = newText(10, xfont.WeightBold, Black)
	plainText = newText(9, xfont.WeightNormal, Black)

	dim   = color.RGBA{70, 70, 70, 255}
	faint = color.RGBA{225, 225, 225, 255}
)

// newText is text whose upper left corner is given.
func newText(size float64, weight xfont.Weight, c color.RGBA) textStyle {
	return textStyle{
		Color:   c,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: vg.Length(size)},
		XAlign:  text.XLeft,
		YAlign:  text.YTop,
		Handler: plot.DefaultTextHandler,
	}
}

// wider is how much wider than ours the font may be that stands in where ours is missing,
// such as DejaVu Sans: not every viewer keeps the width that is written to a text.
const wider = 1.2

// wrap breaks a text between words into lines that are not wider than width, in a wider
// font either. A word that is too wide has a line of its own. The empty text has no lines.
func wrap(s textStyle, text string, width vg.Length) (lines []string) {
	width /= wider
	for word := range strings.FieldsSeq(text) {
		if n := len(lines); n > 0 && s.Width(lines[n-1]+" "+word) <= width {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
