package report

import (
	"context"

	"github.com/redial-go/redial/bench/articles/timeline"
	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/table"
)

const (
	lettersSeconds = 14
	lettersRetries = 3
)

// tries are how the tries of a request look.
var tries = []chart.Style{
	{Name: "first try", Color: chart.Blue, Area: true},
	{Name: "first retry", Color: chart.Sky, Area: true},
	{Name: "second retry", Color: chart.Orange, Area: true},
	{Name: "third retry", Color: chart.Vermillion, Area: true},
}

// lettersPlan is the chapter of package timeline.
func lettersPlan(Options) plan {
	return plan{
		id: "letters", title: "Retries: the letter diagram",
		text:    []string{"The diagram of \"Good Retry, Bad Retry\" (D. Isaev, 2024): a request comes each second, takes a second, fails, and is tried again three times. Waiting puts the load off, and does not take it away."},
		figures: []drawing{drawLetters},
	}
}

func drawLetters(context.Context) (*Figure, error) {
	pic := &chart.Picture{
		Name: "letters", Legend: tries, Height: 110,
		Title: "Retries that wait come later, and as many of them",
		Note:  "Requests A, B, C ... at the server in each second",
	}
	rows := table.Table{{"requests at the server in second"}}
	for i := range lettersSeconds {
		rows[0] = append(rows[0], chart.Number(float64(i+1)))
	}
	for _, one := range timeline.Rules(lettersRetries) {
		d := timeline.Draw(one.Policy, lettersSeconds)
		pic.Panels = append(pic.Panels, lettersPanel(one.Name, d))
		row := []string{one.Name}
		for _, n := range d.Amplification() {
			row = append(row, chart.Number(float64(n)))
		}
		rows.Row(row...)
	}
	return &Figure{Title: "Letters", Pictures: []*chart.Picture{pic}, Tables: []table.Table{rows}}, nil
}

func lettersPanel(name string, d *timeline.Diagram) *chart.Panel {
	cells := chart.Cells{Width: 1, Height: 1}
	p := &chart.Panel{
		Title: "Load: " + name,
		X:     chart.Axis{Min: 0.5, Max: lettersSeconds + 0.5, Label: "second"},
		Y:     chart.Axis{Max: lettersRetries + 1, Label: "times the normal load"},
	}
	for i, at := range d.Seconds {
		p.X.Ticks = append(p.X.Ticks, chart.Tick{At: float64(i + 1), Label: chart.Number(float64(i + 1))})
		for j, l := range at {
			cells.Cells = append(cells.Cells, chart.Cell{
				X: float64(i + 1), Y: float64(j) + 0.5,
				Text: string(rune('A' + l.Request%26)), Color: tries[min(l.Try, len(tries)-1)].Color,
			})
		}
	}
	for n := range lettersRetries + 2 {
		p.Y.Ticks = append(p.Y.Ticks, chart.Tick{At: float64(n), Label: chart.Number(float64(n))})
	}
	p.Layers = []chart.Layer{cells}
	return p
}
