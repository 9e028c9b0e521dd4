package report

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/bench/internal/chart"
)

// realPlan is the chapter of what "bench herd" has measured.
func realPlan(o Options) plan {
	p := plan{id: "real", title: "The real herd: measured on real sockets"}
	if len(o.Herd) == 0 {
		p.text = []string{`There is no measurement in this report. "bench herd -series series.csv -csv runs.csv" makes one, and "bench report -herd series.csv,runs.csv" shows it here.`}
		return p
	}
	p.text = []string{"Real clients on loopback, a server process that was killed and came back; machine and load are those of the day. The pictures show the first round of each policy, the tables have medians of all rounds, with seconds from the server's return."}
	for i, files := range o.Herd {
		prefix := "real"
		if i > 0 {
			prefix = fmt.Sprintf("real_%d", i+1)
		}
		p.figures = append(p.figures, func(context.Context) (*Figure, error) { return drawMeasured(prefix, files) })
	}
	return p
}

// drawMeasured draws one measurement into pictures whose names begin with prefix.
func drawMeasured(prefix string, files []string) (*Figure, error) {
	m, err := readMeasured(files)
	if err != nil {
		return nil, err
	}
	f := &Figure{Title: m.note(), Pictures: []*chart.Picture{m.dials(prefix), m.up(prefix)}}
	if len(m.runs) > 0 {
		f.Tables = []Table{m.table()}
	}
	if m.local > 0 {
		f.Text = append(f.Text, fmt.Sprintf("This is no measurement: the machine had no socket for %s.", plural(m.local, "dial")))
	}
	return f, nil
}

// note says what is known of the herd.
func (m *measured) note() string {
	note := "N = " + chart.Number(float64(m.n()))
	if len(m.runs) > 0 {
		r := m.runs[0]
		if r.ideal > 0 {
			note += fmt.Sprintf(", %s handshakes/s", decimal(float64(r.n)/r.ideal, 0))
		}
		note += fmt.Sprintf(", %s after %.1f s", sceneWords(r.scene), r.outage)
		if r.backlog > 0 {
			note += fmt.Sprintf("; a backlog of %s", chart.Number(float64(r.backlog)))
		}
	}
	if slices.ContainsFunc(m.series, func(s measuredSeries) bool { return s.rejected > 0 }) {
		note += "; the server resets connections for which it has no room"
	}
	return note + ". Measured on real sockets"
}

// sceneWords says what is back when the outage is over.
func sceneWords(scene string) string {
	switch scene {
	case lab.Hang.String():
		return "accepts and does not answer at first, answers new connections"
	case lab.Flap.String():
		return "up and away in turn, back for good"
	case lab.Rolling.String():
		return "each of several servers; the last is back"
	case lab.Half.String():
		return "several servers of which half hang; the others are back"
	}
	return "back"
}

// until is the end of the time axis.
func (m *measured) until() float64 {
	longest := 0
	for _, s := range m.first() {
		longest = max(longest, len(s.dials))
	}
	return math.Ceil(float64(longest) * fleet.Bin.Seconds())
}

// shade is the outage, if it is known and is one.
func (m *measured) shade() []chart.Layer {
	if len(m.runs) == 0 || slices.Contains([]string{lab.Flap.String(), lab.Rolling.String()}, m.runs[0].scene) {
		return nil
	}
	return []chart.Layer{chart.Shade{Style: away, To: m.runs[0].outage}}
}

// dials is a panel for each policy.
func (m *measured) dials(prefix string) *chart.Picture {
	series := m.first()
	pic := &chart.Picture{Name: prefix + "_dials", Title: "Real herd: dials that the clients began per 100 ms, log scale", Note: m.note(), Columns: 2, Height: dialsHeight}
	top := 0.0
	for _, s := range series {
		top = max(top, slices.Max(s.dials))
	}
	for i, s := range series {
		title := fmt.Sprintf("%s: peak %s", s.policy, chart.Number(slices.Max(s.dials)))
		if r := m.run(s); r != nil && r.recovered {
			title += fmt.Sprintf("; all back after %.1f s", r.outage+r.t100)
		} else if r != nil {
			title += fmt.Sprintf("; %.0f %% up at the end", 100*s.up[len(s.up)-1]/float64(m.n()))
		}
		limit := ""
		if client, err := fleet.Find(s.policy); err == nil {
			limit = limitOf(client)
		}
		pic.Panels = append(pic.Panels, dialsPanel(title, limit, m.until(), top, i >= len(series)-2,
			append(m.shade(), dialsLine(styleOf(s.policy), s.dials))...))
	}
	if len(m.shade()) > 0 {
		pic.Legend = []chart.Style{away}
	}
	return pic
}

// up is a line for each policy.
func (m *measured) up(prefix string) *chart.Picture {
	p := &chart.Panel{
		X:      chart.Axis{Max: m.until(), Label: "time since the loss, s"},
		Y:      chart.Axis{Max: 100, Label: "% of all connections"},
		Layers: m.shade(),
	}
	pic := &chart.Picture{Name: prefix + "_up", Title: "Real herd: connections that are up", Note: m.note(), Height: 240, Panels: []*chart.Panel{p}}
	series := m.first()
	for _, s := range series {
		pic.Legend = append(pic.Legend, styleOf(s.policy))
	}
	for _, s := range series {
		line := chart.Line{Style: styleOf(s.policy)}
		for i, n := range s.up {
			line.Points = append(line.Points, chart.Point{X: (time.Duration(i+1) * fleet.Bin).Seconds(), Y: 100 * n / float64(m.n())})
		}
		if all := float64(m.n()); slices.Max(s.up) == all { // the run ended then
			line.Points = append(line.Points, chart.Point{X: m.until(), Y: 100})
		}
		p.Layers = append(p.Layers, line)
	}
	if len(m.runs) > 0 && m.runs[0].ideal > 0 {
		r := m.runs[0]
		p.Layers = append(p.Layers, chart.Line{Style: ideal, Points: []chart.Point{{X: r.outage}, {X: r.outage + r.ideal, Y: 100}}})
		pic.Legend = append(pic.Legend, ideal)
	}
	if len(m.shade()) > 0 {
		pic.Legend = append(pic.Legend, away)
	}
	return pic
}

// table has a row for each policy: medians over the rounds.
func (m *measured) table() Table {
	t := Table{Head: []string{"policy", "half back, s", "99 % back, s", "all back, s", "99 % / ideal", "peak of dials per 100 ms", "peak at the server per 100 ms", "dials per client", "in vain per client", "rounds with all back"}}
	var names []string
	for _, r := range m.runs {
		if !slices.Contains(names, r.policy) {
			names = append(names, r.policy)
		}
	}
	for _, name := range names {
		var mine []measuredRun
		var watched time.Duration // for the longest
		all := 0
		for _, r := range m.runs {
			if r.policy == name {
				mine = append(mine, r)
				watched = max(watched, time.Duration(r.watched*float64(time.Second)))
				if r.recovered {
					all++
				}
			}
		}
		middle := func(of func(measuredRun) float64) float64 {
			var values []float64
			for _, r := range mine {
				values = append(values, of(r))
			}
			slices.Sort(values)
			return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
		}
		when := func(of func(measuredRun) float64, digits int) string {
			if x := middle(of); !math.IsInf(x, 1) {
				return decimal(x, digits)
			}
			return fleet.NotWithin(watched)
		}
		t.Rows = append(t.Rows, []string{
			name,
			when(func(r measuredRun) float64 { return r.t50 }, 1),
			when(func(r measuredRun) float64 { return r.t99 }, 1),
			when(func(r measuredRun) float64 { return r.t100 }, 1),
			when(measuredRun.ratio, 2),
			decimal(middle(func(r measuredRun) float64 { return r.peak }), 0),
			decimal(middle(func(r measuredRun) float64 { return r.peakIn }), 0),
			decimal(middle(func(r measuredRun) float64 { return r.dials }), 1),
			decimal(middle(func(r measuredRun) float64 { return r.wasted }), 1),
			fmt.Sprintf("%d of %d", all, len(mine)),
		})
	}
	return t
}

// ratio is the time until 99 % are back over the ideal, NaN if that is not known.
func (r measuredRun) ratio() float64 {
	if r.ideal <= 0 {
		return math.NaN()
	}
	return r.t99 / r.ideal
}
