package chart

import "image/color"

// seriesColors and seriesDashes tell the series of a picture apart, in this order.
var (
	seriesColors = []color.RGBA{Green, Vermillion, Blue, Orange, Black, Purple, Sky, Grey}
	seriesDashes = [][]float64{nil, Long, Short, Dots}
)

// Series is how the series i of a picture looks.
func Series(i int, name string) Style {
	return Style{Name: name, Color: seriesColors[i%len(seriesColors)], Dash: seriesDashes[i/len(seriesColors)%len(seriesDashes)], Width: 1.8}
}
