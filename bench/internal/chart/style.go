package chart

import (
	"cmp"
	"image/color"
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

func (s Style) width() float64 { return cmp.Or(s.Width, 1.4) }

// Dashes that can be told apart, from long to short.
var (
	Long  = []float64{7, 3}
	Short = []float64{3, 2}
	Dots  = []float64{1, 2}
)

// seriesColors and seriesDashes tell the series of a picture apart, in this order.
var (
	seriesColors = []color.RGBA{Green, Vermillion, Blue, Orange, Black, Purple, Sky, Grey}
	seriesDashes = [][]float64{nil, Long, Short, Dots}
)

// Series is how the series i of a picture looks.
func Series(i int, name string) Style {
	return Style{Name: name, Color: seriesColors[i%len(seriesColors)], Dash: seriesDashes[i/len(seriesColors)%len(seriesDashes)], Width: 1.8}
}
