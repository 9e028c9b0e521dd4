package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample is a picture with all that a picture can have.
func sample() *Picture {
	one, two := Style{Name: "one", Color: Blue}, Style{Name: "two & <three>", Color: Orange, Dash: Long}
	fails := Style{Name: "server fails", Color: Grey, Area: true}
	p := &Panel{
		Title: "Load", X: Axis{Label: "time, s", Max: 1.5}, Y: Axis{Label: "% of normal", Max: 400},
		Layers: []Layer{
			Shade{Style: fails, From: 0.5, To: 1}, Level{Style: one, Y: 100},
			Line{Style: one, Points: []Point{{0, 100}, {1.5, 380}}, Dotted: true}, Line{Style: two, Points: []Point{{0, 90}, {1.5, 80}}},
		},
	}
	q := &Panel{
		Title: "Dials", X: Axis{Max: 10, Label: "time, s"}, Y: Axis{Min: 0.8, Max: 1000, Log: true},
		Layers: []Layer{Bars{Style: one, Step: 0.1, Values: []float64{0, 1, 700, 20}}},
	}
	r := &Panel{
		X: Axis{Max: 2, Bare: true}, Y: Axis{Max: 1},
		Layers: []Layer{Cells{Width: 1, Height: 1, Cells: []Cell{{X: 0.5, Y: 0.5, Text: "A", Color: Black}, {X: 1.5, Y: 0.5, Text: "B", Color: Sky, Empty: true}}}},
	}
	return &Picture{
		Name: "sample", Title: `What a "picture" is`, Note: "N = 3; simulated", Columns: 2,
		Legend: []Style{one, two, fails, one}, Panels: []*Panel{p, q, r},
	}
}

// element is one of an SVG.
type element struct {
	name  string
	attrs map[string]string
	text  string
}

func parse(t testing.TB, p *Picture) []element {
	t.Helper()
	var b strings.Builder
	require.NoError(t, p.WriteSVG(&b))
	d := xml.NewDecoder(strings.NewReader(b.String()))
	var all []element
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attrs: map[string]string{}}
			for _, a := range token.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			all = append(all, e)
		case xml.CharData:
			if len(all) > 0 {
				all[len(all)-1].text += strings.TrimSpace(string(token))
			}
		}
	}
}

// texts are what can be read in a picture.
func texts(t testing.TB, p *Picture) []string {
	t.Helper()
	var all []string
	for _, e := range parse(t, p) {
		if e.name == "text" {
			all = append(all, e.text)
		}
	}
	return all
}

// paths are the shapes of one colour in a picture, from stroke or fill.
func paths(t testing.TB, p *Picture, colour string) []string {
	t.Helper()
	var all []string
	for _, e := range parse(t, p) {
		if e.name == "path" && strings.Contains(e.attrs["style"], colour) {
			all = append(all, e.attrs["d"])
		}
	}
	return all
}
