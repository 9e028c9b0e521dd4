package chart

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ratios is a panel of bars from 1 on a logarithmic axis.
func ratios() *Picture {
	bars := HBars{From: 1, Height: 0.8, Bars: []HBar{
		{Y: 0, To: 10, Low: 5, High: 20, Text: "10.00", Color: Blue},
		{Y: -1, To: 0.1, Low: 0.05, High: 0.2, Text: "0.10", Color: Green},
		{Y: -2, To: 0, Low: 0, High: 1e9, Text: "0.00", Color: Orange},
	}}
	return &Picture{Title: "ratios", Panels: []*Panel{{
		X: Axis{Min: 0.01, Max: 100, Log: true}, Y: Axis{Min: -2.5, Max: 0.5}, Layers: []Layer{bars},
	}}}
}

// horizontal returns where the text stands, from left to right.
func horizontal(t *testing.T, p *Picture, text string) float64 {
	t.Helper()
	for _, e := range parse(t, p) {
		if e.name == "text" && e.text == text {
			x, err := strconv.ParseFloat(e.attrs["x"], 64)
			require.NoError(t, err)
			return x
		}
	}
	require.Fail(t, "the picture does not have the text", text)
	return 0
}

func TestAHorizontalBarGoesFromItsBeginningToItsEnd(t *testing.T) {
	right, left := bounds(t, paths(t, ratios(), "fill:#0072B2")[0]), bounds(t, paths(t, ratios(), "fill:#009E73")[0])
	require.InDelta(t, right.min, left.max, 0.11, "both begin at 1")
	require.InDelta(t, right.max-right.min, left.max-left.min, 0.11, "ten times as much, and a tenth")
	require.Less(t, left.min, left.max)
}

func TestTheTextOfAHorizontalBarIsBeyondItsLine(t *testing.T) {
	p := ratios()
	right, left := bounds(t, paths(t, p, "fill:#0072B2")[0]), bounds(t, paths(t, p, "fill:#009E73")[0])
	require.Greater(t, horizontal(t, p, "10.00"), right.max+float64(textGap))
	require.Less(t, horizontal(t, p, "0.10"), left.min-float64(textGap))
}

func TestAHorizontalBarEndsAtTheEdgeOfItsPanel(t *testing.T) {
	edge := bounds(t, paths(t, ratios(), "fill:#E69F00")[0])
	first := bounds(t, paths(t, ratios(), "fill:#009E73")[0])
	require.InDelta(t, 2*(first.max-first.min), edge.max-edge.min, 0.21, "to 0.01")
}

// extent is how far a path goes from left to right.
type extent struct{ min, max float64 }

func bounds(t *testing.T, path string) extent {
	t.Helper()
	e := extent{math.Inf(1), math.Inf(-1)}
	for _, point := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("MLZ", r) }) {
		text, _, _ := strings.Cut(point, ",")
		x, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		e.min, e.max = min(e.min, x), max(e.max, x)
	}
	return e
}
