package debug

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"
)

// In units of the drawing.
const (
	barStep   = 5                            // from one column to the next
	barWidth  = barStep * (sessionsKept + 1) // with a last column for the present
	barHeight = 34
	barAxis   = 21
	barUp     = barAxis - 1             // the highest column
	barDown   = barHeight - barAxis - 1 // the deepest
)

// Bar draws the sessions: one column for each, with the time for which the session was ready above the
// axis, and the time before that for which none was below it. Both are on a logarithmic scale. The
// drawing has numbers and fixed words only.
func (c *connInfo) Bar() template.HTML {
	paths := map[string]string{}
	column := func(class string, i int, height int) {
		paths[class] += fmt.Sprintf("M%d %dv%d", i*barStep+2, barAxis, -height)
	}
	first := sessionsKept - len(c.bar) // the newest stand at the right
	for i, s := range c.bar {
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
	if !c.AwaySince.IsZero() {
		column("gone", sessionsKept, -scale(seconds(time.Since(c.AwaySince)), time.Hour, barDown))
	}
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg class="bar" viewBox="0 0 %d %d" role="img" aria-label="%s"><path class="axis" d="M0 %d.5h%d"/>`,
		barWidth, barHeight, c.label(), barAxis, barWidth)
	for _, class := range []string{"up", "now", "planned", "failed", "away", "gone"} {
		if p := paths[class]; p != "" {
			fmt.Fprintf(&svg, `<path class="%s" d="%s"/>`, class, p)
		}
	}
	svg.WriteString("</svg>")
	return template.HTML(svg.String())
}

// label describes the past in words. The present session is left out, so that the label does not
// change all the time.
func (c *connInfo) label() string {
	var up, away seconds
	never := 0
	for _, s := range c.bar {
		away += s.Away
		if s.Live {
			continue
		}
		up += s.Up
		if s.Up == 0 {
			never++
		}
	}
	text := fmt.Sprintf("%d sessions, those before were ready for %v and away for %v", len(c.bar), up, away)
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
