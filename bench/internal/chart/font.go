package chart

import (
	"image/color"
	"strings"
)

// font is how a text looks. Its widths are those of Liberation Sans, Arial and Helvetica.
type font struct {
	size  float64 // in points
	bold  bool
	color color.RGBA
}

var (
	titleText = font{12.5, true, Black}
	noteText  = font{9.5, false, dim}
	panelText = font{10, true, Black}
	plainText = font{9, false, Black}

	dim   = color.RGBA{70, 70, 70, 255}
	faint = color.RGBA{225, 225, 225, 255}
)

// The measures of the font, in multiples of its size.
const (
	lineHeight = 1.149
	ascent     = 0.905
)

// plainWidths and boldWidths are those of the characters from the blank to "~", in thousandths
// of the size.
var (
	plainWidths = [...]float64{
		278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
		556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
		1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
		667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
		333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
		556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
	}
	boldWidths = [...]float64{
		278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278,
		556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611,
		975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833, 722, 778,
		667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556,
		333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611,
		611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584,
	}
)

func (f font) width(text string) (w float64) {
	widths := &plainWidths
	if f.bold {
		widths = &boldWidths
	}
	for _, r := range text {
		if r < ' ' || r > '~' {
			r = '0'
		}
		w += widths[r-' '] * f.size / 1000
	}
	return w
}

func (f font) height() float64 { return lineHeight * f.size }

// wider is how much wider than ours the font may be that stands in where ours is missing,
// such as DejaVu Sans: not every viewer keeps the width that is written to a text.
const wider = 1.2

// wrap breaks a text between words into lines that are not wider than width, in a wider
// font either. A word that is too wide has a line of its own. The empty text has no lines.
func wrap(f font, text string, width float64) (lines []string) {
	width /= wider
	for word := range strings.FieldsSeq(text) {
		if n := len(lines); n > 0 && f.width(lines[n-1]+" "+word) <= width {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
