package debug

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"
)

// bar draws sessions: one column for each, with the time for which it was ready above the axis,
// and the time before that for which none was below it. Both are on a logarithmic scale.
type bar struct {
	sessions []sessionInfo // the oldest first
	away     seconds       // for how long no session is ready; 0: one is
}

// In units of the drawing.
const (
	barStep   = 5                            // from one column to the next
	barWidth  = barStep * (sessionsKept + 1) // with a last column for the present
	barHeight = 34
	barAxis   = 21
	barUp     = barAxis - 1             // the highest column
	barDown   = barHeight - barAxis - 1 // the deepest
)

// SVG returns the drawing. It has numbers and fixed words only.
func (b bar) SVG() template.HTML {
	paths := map[string]*strings.Builder{}
	column := func(class string, i int, height int) {
		if paths[class] == nil {
			paths[class] = new(strings.Builder)
		}
		fmt.Fprintf(paths[class], "M%d %dv%d", i*barStep+2, barAxis, -height)
	}
	first := sessionsKept - len(b.sessions) // the newest stand at the right
	for i, s := range b.sessions {
		class, height := "up", scale(s.Up, 6*time.Hour, barUp)
		switch {
		case s.Live && s.Up > 0:
			class = "now"
		case s.Up == 0:
			class, height = "failed", 4
		case s.Planned:
			class = "planned"
		}
		column(class, first+i, height)
		if s.Away > 0 {
			column("away", first+i, -scale(s.Away, time.Hour, barDown))
		}
	}
	if b.away > 0 {
		column("gone", sessionsKept, -scale(b.away, time.Hour, barDown))
	}
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg class="bar" viewBox="0 0 %d %d" role="img" aria-label="%s"><path class="axis" d="M0 %d.5h%d"/>`,
		barWidth, barHeight, b.label(), barAxis, barWidth)
	for _, class := range []string{"up", "now", "planned", "failed", "away", "gone"} {
		if p := paths[class]; p != nil {
			fmt.Fprintf(&svg, `<path class="%s" d="%s"/>`, class, p)
		}
	}
	svg.WriteString("</svg>")
	return template.HTML(svg.String())
}

// label describes the past in words. The present session is left out, so that the label does not
// change all the time.
func (b bar) label() string {
	var up, away seconds
	never := 0
	for _, s := range b.sessions {
		away += s.Away
		if !s.Live {
			up += s.Up
		}
		if s.Up == 0 && !s.Live {
			never++
		}
	}
	text := fmt.Sprintf("%d sessions, those before were ready for %v and away for %v", len(b.sessions), up, away)
	if never > 0 {
		text += fmt.Sprintf(", %d never ready", never)
	}
	return text
}

// scale returns the height of a column for d: 2 for less than a second, and most for full or more.
func scale(d seconds, full time.Duration, most int) int {
	share := math.Log1p(time.Duration(max(d, 0)).Seconds()) / math.Log1p(full.Seconds())
	return 2 + int(min(share, 1)*float64(most-2))
}
