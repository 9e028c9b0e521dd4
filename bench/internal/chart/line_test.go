package chart

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// blue is that of what picture draws.
const blue = "#0072B2"

// picture has one panel with layers, and no legend.
func picture(y Axis, layers ...Layer) *Picture {
	return &Picture{Panels: []*Panel{{X: Axis{Max: 10}, Y: y, Layers: layers}}}
}

func TestALineBreaksWhereItHasNoValue(t *testing.T) {
	style := Style{Color: Blue}
	for _, gap := range []float64{math.NaN(), math.Inf(1)} {
		l := Line{Style: style, Points: []Point{{0, 1}, {2, 1}, {4, gap}, {6, 1}, {8, 1}}}
		require.Len(t, paths(t, picture(Axis{Max: 2}, l), blue), 2)
	}
	l := Line{Style: style, Points: []Point{{0, 1}, {2, 1}, {4, 0}, {6, 1}, {8, 1}}}
	require.Len(t, paths(t, picture(Axis{Max: 2}, l), blue), 1, "0 is a value")
	require.Len(t, paths(t, picture(Axis{Min: 0.1, Max: 10, Log: true}, l), blue), 2, "but not of a logarithm")
}

func TestALongLineKeepsItsExtremesAndLosesItsLength(t *testing.T) {
	var points []spot
	for i := range 100_000 {
		points = append(points, spot{float64(i) / 1000, float64(i % 7)})
	}
	points[50_123].y, points[70_456].y = 99, -99
	kept := reduce(points)
	require.LessOrEqual(t, len(kept), int(math.Ceil(4*(100/column+1))))
	require.Contains(t, kept, points[50_123])
	require.Contains(t, kept, points[70_456])
	require.Equal(t, points[0], kept[0])
	require.Equal(t, points[len(points)-1], kept[len(kept)-1])
	for i := 1; i < len(kept); i++ {
		require.Greater(t, kept[i].x, kept[i-1].x)
	}
}

func TestAShortLineIsKeptAsItIs(t *testing.T) {
	points := []spot{{1, 5}, {2, 5}, {3, 5}}
	require.Equal(t, points, reduce(points))
	require.Empty(t, reduce(nil))
}

func TestADottedLineMarksEachPoint(t *testing.T) {
	points := []Point{{1, 1}, {5, 1}, {9, 1}}
	dots := 0
	for _, e := range parse(t, picture(Axis{Max: 2}, Line{Style: Style{Color: Blue}, Points: points, Dotted: true})) {
		if e.name == "circle" {
			dots++
		}
	}
	require.Equal(t, 3, dots)
}

func TestOfBarsOnOnePlaceTheHighestIsDrawn(t *testing.T) {
	values := make([]float64, 100_000)
	for i := range values {
		values[i] = 1
	}
	flat := paths(t, picture(Axis{Max: 200}, Bars{Style: Style{Color: Blue}, Step: 0.0001, Values: values}), blue)
	values[31_415] = 200
	d := paths(t, picture(Axis{Max: 200}, Bars{Style: Style{Color: Blue}, Step: 0.0001, Values: values}), blue)
	require.Len(t, d, 1)
	require.Less(t, len(d[0]), 200, "equal bars are one")
	require.NotEqual(t, flat, d)
}

func TestBarsBelowTheAxisAreNotDrawn(t *testing.T) {
	axis := Axis{Min: 0.8, Max: 100, Log: true}
	require.Empty(t, paths(t, picture(axis, Bars{Style: Style{Color: Blue}, Step: 1, Values: []float64{0, 0.5, math.NaN(), 0}}), blue))
	require.Len(t, paths(t, picture(axis, Bars{Style: Style{Color: Blue}, Step: 1, Values: []float64{0, 5, 0, 7, 9}}), blue), 2)
}

func TestStepsAreTheLineAroundTheBars(t *testing.T) {
	bars := Bars{Style: Style{Color: Blue}, Step: 1, Values: []float64{0, 5, 0, 7, 9}}
	axis := Axis{Min: 0.8, Max: 100, Log: true}
	filled, lines := picture(axis, bars), picture(axis, Steps(bars))
	require.Len(t, paths(t, lines, blue), 2)
	require.Empty(t, paths(t, lines, "fill:"+blue))
	require.Empty(t, paths(t, filled, "stroke:"+blue))
}

func TestStepsThatGoOnHaveNoEndAtTheEdge(t *testing.T) {
	steps := func(n int) int {
		s := Steps{Style: Style{Color: Blue}, Step: 1, Values: slices.Repeat([]float64{5}, n)}
		return strings.Count(paths(t, picture(Axis{Min: 0.8, Max: 100, Log: true}, s), blue)[0], "L")
	}
	require.Equal(t, 3, steps(9), "up, along, down")
	require.Equal(t, 2, steps(99), "up, and along to the edge")
}

func TestWhatIsBehindIsCutAtTheEdges(t *testing.T) {
	style := Style{Color: Blue}
	shade := func(from, to float64) []string {
		return paths(t, picture(Axis{Max: 2}, Shade{Style: style, From: from, To: to}), blue)
	}
	require.Equal(t, shade(0, 10), shade(-5, 50))
	require.Empty(t, shade(11, 20))
	require.Empty(t, shade(0, 0))
	require.Len(t, paths(t, picture(Axis{Max: 2}, Level{Style: style, Y: 1}), blue), 1)
	require.Empty(t, paths(t, picture(Axis{Max: 2}, Level{Style: style, Y: 3}), blue))
}

func TestDashesReachTheSVG(t *testing.T) {
	p := picture(Axis{Max: 2}, Line{Style: Style{Color: Blue, Dash: Long}, Points: []Point{{0, 1}, {9, 1}}})
	for _, e := range parse(t, p) {
		if strings.Contains(e.attrs["style"], blue) {
			require.Contains(t, e.attrs["style"], "stroke-dasharray:7,3")
			return
		}
	}
	require.Fail(t, "there is no line")
}

func TestARangeIsOneAreaFromLowToHigh(t *testing.T) {
	between := func(y Axis, low float64) []string {
		return paths(t, picture(y, Range{Style: Style{Color: Blue}, Low: []Point{{0, low}, {5, low}}, High: []Point{{0, 2}, {5, 2}}}), "fill-opacity")
	}
	require.Len(t, between(Axis{Max: 2}, 1), 1)
	require.NotEqual(t, between(Axis{Max: 2}, 1), between(Axis{Max: 2}, 0.5))
	logarithmic := Axis{Min: 0.1, Max: 2, Log: true}
	require.Equal(t, between(logarithmic, 0.1), between(logarithmic, 0), "0 lies at the lower edge")
	require.Empty(t, paths(t, picture(Axis{Max: 2}, Range{Style: Style{Color: Blue}}), "fill-opacity"))
}

func TestALineIsCutWhereItLeavesThePanel(t *testing.T) {
	line := func(points ...Point) []string {
		return paths(t, picture(Axis{Max: 10}, Line{Style: Style{Color: Blue}, Points: points}), blue)
	}
	require.Equal(t, line(Point{0, 0}, Point{5, 10}), line(Point{0, 0}, Point{10, 20}))
	require.Len(t, line(Point{0, 0}, Point{2, 20}, Point{4, 20}, Point{6, 0}), 2)
	require.Empty(t, line(Point{0, 11}, Point{10, 12}))
}
