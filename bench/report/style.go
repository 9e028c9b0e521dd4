package report

import (
	"image/color"
	"strings"

	"github.com/redial-go/redial/bench/internal/chart"
)

// families are the strategies by what they have in common, each with its colour; the
// first whose word is in a name decides. Words in a name of several are in the order
// of how much they say.
var families = []struct {
	word  string
	color color.RGBA
	dash  []float64
	width float64
}{
	// Limits and ejection.
	{word: "limit-of-calls", color: chart.Blue},
	{word: "fixed-concurrency", color: chart.Orange},
	{word: "adaptive", color: chart.Purple},
	{word: "ejection", color: chart.Purple, width: 2},
	// The herd.
	{word: "redial", color: chart.Green, width: 3.2},
	{word: "recws", color: chart.Purple},
	{word: "nats", color: chart.Black, dash: chart.Long},
	{word: "fixed", color: chart.Vermillion, dash: chart.Short, width: 1.8},
	{word: "grpc", color: chart.Sky, width: 1.8},
	{word: "cenkalti", color: chart.Orange},
	{word: "autopaho", color: chart.Grey, dash: chart.Long},
	// Services in a row.
	{word: "client-retries", color: chart.Black, width: 2.6}, // under those that may lie on it
	{word: "service-retries", color: chart.Grey, width: 2.6},
	{word: "final-errors", color: chart.Purple, dash: chart.Long},
	{word: "marked-retries", color: chart.Orange},
	{word: "service-budget", color: chart.Sky, dash: chart.Short},
	{word: "admission", color: chart.Blue},
	{word: "+breaker", color: chart.Sky, dash: chart.Long},
	{word: "presses", color: chart.Purple, dash: chart.Short},
	// The rest.
	{word: "budget-aws-2026", color: chart.Orange},
	{word: "budget-aws", color: chart.Blue, dash: chart.Short},
	{word: "budget-envoy", color: chart.Purple, dash: chart.Long},
	{word: "budget", color: chart.Green, width: 1.8},
	{word: "circuit-breaker", color: chart.Sky, dash: chart.Long, width: 2},
	{word: "deadline", color: chart.Grey, width: 1.8},
	{word: "retry-cb", color: chart.Purple},
	{word: "jitter", color: chart.Blue},
	{word: "full", color: chart.Blue},
	{word: "equal", color: chart.Purple, dash: chart.Long},
	{word: "decorrelated", color: chart.Green, dash: chart.Short},
	{word: "described", color: chart.Orange, dash: chart.Long, width: 2.2},
	{word: "coded", color: chart.Sky, width: 2.6},
	{word: "exp", color: chart.Orange},
	{word: "simple", color: chart.Vermillion, dash: chart.Short, width: 1.8},
	{word: "retry", color: chart.Vermillion},
}

// styleOf is how a strategy looks, by its name: the same in all pictures.
func styleOf(name string) chart.Style {
	lower := strings.ToLower(name)
	if lower == "none" || lower == "no-retries" {
		return chart.Style{Name: name, Color: chart.Black}
	}
	s := chart.Style{Name: name, Color: chart.Grey, Dash: chart.Dots}
	for _, f := range families {
		if strings.Contains(lower, f.word) {
			s.Color, s.Dash, s.Width = f.color, f.dash, f.width
			break
		}
	}
	if strings.HasPrefix(lower, "no-retries+") || strings.HasSuffix(lower, "-local") || strings.HasSuffix(lower, "+exp-backoff-2x") {
		s.Dash = chart.Short
	}
	return s
}

// The styles of what is no strategy.
var (
	failing  = chart.Style{Name: "server fails", Color: color.RGBA{243, 236, 220, 255}, Area: true}
	stopped  = chart.Style{Name: "server stopped", Color: color.RGBA{243, 236, 220, 255}, Area: true}
	away     = chart.Style{Name: "server away", Color: color.RGBA{243, 236, 220, 255}, Area: true}
	normal   = chart.Style{Name: "normal load (100 %)", Color: chart.Black, Width: 0.8, Dash: chart.Short}
	capacity = chart.Style{Name: "all CPUs busy", Color: chart.Black, Width: 0.8, Dash: chart.Dots}
	ideal    = chart.Style{Name: "ideal, N/C: the server is never idle, nothing is in vain", Color: chart.Black, Width: 1, Dash: chart.Short}
)
