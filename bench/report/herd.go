package report

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/table"
)

// compared are the clients of fleet.Clients whose herds are drawn.
var compared = []string{"redial", "full", "fixed", "nats", "recws", "cenkalti", "autopaho", "grpc"}

// setting is a herd without its clients, and how it is shown.
type setting struct {
	id, title string
	note      string // under what conditions
	herd      fleet.Herd
	until     float64 // s from the loss: the end of the picture of dials
}

func settings(o Options) []setting {
	herd := func(outage time.Duration, q fleet.Queue) fleet.Herd {
		h := fleet.Herd{N: o.N, Outage: fleet.Outage{Length: outage}, Server: fleet.Server{Capacity: o.Capacity, Queue: q}, Seed: o.Seed}
		h.Watch = max(3*time.Minute, (4 * h.Ideal()).Round(time.Minute)) // of virtual time
		return h
	}
	const outage = 5 * time.Second
	all := []setting{
		{id: "restart", title: "A restart that is over at once", herd: herd(0, fleet.Drop)},
		{id: "outage", title: "An outage of 5 s", herd: herd(outage, fleet.Drop)},
		{id: "reject", title: "An outage of 5 s, and a server that refuses connections for which it has no room", herd: herd(outage, fleet.Reject)},
		{id: "busy", title: "An outage of 5 s, and a server that answers 503 where it has no room", herd: herd(outage, fleet.Busy)},
		{id: "unbounded", title: "An outage of 5 s, and a queue without an end", herd: herd(outage, fleet.Unbounded)},
	}
	for i := range all {
		all[i].note, all[i].until = herdNote(all[i].herd), all[i].herd.Watch.Seconds()/3
	}
	return all
}

// herdPlan is the chapter of package fleet.
func herdPlan(o Options) plan {
	text := fmt.Sprintf("%s long-lived connections are lost at one instant. "+
		"When the server is back it completes %s handshakes per second, one after the other, "+
		"so that it needs at least %s s for all. "+
		"A client that gives up while it waits in the server's queue has made it work in vain. "+
		"redial is the library with its defaults; "+
		"the others follow the rules and the dial timeouts of what they are named for: "+
		"nats.go and recws give up a dial after 2 s, autopaho after 10 s, gRPC after 20 s. "+
		"Full jitter, fixed 1 s and cenkalti are loops around a dial, which have no limit of their own: "+
		"here they give it up after %s, as in the measured herds. "+
		"(DEFAULTS.md has the best of several limits.) All is simulated.",
		chart.Number(float64(o.N)), chart.Number(o.Capacity),
		decimal(float64(o.N)/o.Capacity, 1), inSeconds(fleet.LentLimit))
	p := plan{id: "herd", title: "The herd: connections that are lost together", text: []string{text}}
	for _, s := range settings(o) {
		p.figures = append(p.figures, func(ctx context.Context) (*Figure, error) { return drawSetting(ctx, o, s) })
	}
	return p
}

// herdRun is a herd of one make of clients.
type herdRun struct {
	client fleet.Client
	style  chart.Style
	result *fleet.Result // of the first seed
	mean   fleet.Summary // of all
}

// runHerds simulates how herds of clients come back.
func runHerds(ctx context.Context, h fleet.Herd, names []string, seeds int) (runs []herdRun, err error) {
	for _, name := range names {
		r := herdRun{style: styleOf(name)}
		if r.client, err = herdClient(name); err != nil {
			return nil, err
		}
		h.Client = r.client
		results, err := fleet.Runs(ctx, h, seeds, 1, nil)
		if err != nil {
			return nil, err
		}
		r.result, r.mean = results[0], fleet.Summarize(results)
		runs = append(runs, r)
	}
	return runs, nil
}

func drawSetting(ctx context.Context, o Options, s setting) (*Figure, error) {
	runs, err := runHerds(ctx, s.herd, compared, o.Seeds)
	if err != nil {
		return nil, err
	}
	var clients []fleet.Client
	var means []fleet.Summary
	for _, r := range runs {
		clients, means = append(clients, r.client), append(means, r.mean)
	}
	f := &Figure{
		Title: s.title,
		Pictures: []*chart.Picture{
			dialsPicture("herd_"+s.id+"_dials", s.title+": dials per 100 ms, log scale", s.note, s.herd, runs, s.until),
			upPicture("herd_"+s.id+"_up", s.title+": connections that are up", s.note, s.herd, runs),
		},
	}
	f.Text = append(f.Text, fmt.Sprintf("The pictures show one run (seed %d), with the time since the loss. The table has means of %s, with seconds from the server's return; \"%s\", counted from the loss, stands where one of them did not get so far.", o.Seed, cli.Plural(o.Seeds, "run"), fleet.NotWithin(s.herd.Watch)))
	f.Tables = []table.Table{fleet.Table(clients, means)}
	return f, nil
}

// herdNote returns what happens to a herd, in words.
func herdNote(h fleet.Herd) string {
	room := map[fleet.Queue]string{
		fleet.Drop:      "a backlog of 4,096, beyond it SYNs are dropped",
		fleet.Reject:    "4,096 may wait, the others are refused",
		fleet.Busy:      "4,096 may wait, the others are answered 503",
		fleet.Unbounded: "all may wait",
	}[h.Server.Queue]
	back := "back at once"
	if h.Outage.Length > 0 {
		back = fmt.Sprintf("back after %g s, until then dials are refused", h.Outage.Length.Seconds())
	}
	return fmt.Sprintf("N = %s, %s handshakes/s, %s; %s. Simulated", chart.Number(float64(h.N)), chart.Number(h.Server.Capacity), back, room)
}

// dialsHeight is the height of a panel of dials with its heading, in points.
const dialsHeight = 102

// dialsPicture has a panel for each make of clients, over the first seconds.
func dialsPicture(name, title, note string, h fleet.Herd, runs []herdRun, until float64) *chart.Picture {
	pic := &chart.Picture{Name: name, Title: title, Note: note, Columns: 2, Height: dialsHeight}
	if len(outages(h)) > 0 {
		pic.Legend = append(pic.Legend, away)
	}
	top := 0
	for _, r := range runs {
		top = max(top, r.result.Peak)
	}
	for i, r := range runs {
		line := chart.Steps{Style: r.style, Step: fleet.Bin.Seconds()}
		line.Style.Width, line.Style.Dash = 1, nil // each panel has one line, and dashes would tear one of 100 ms apart
		for _, n := range r.result.DialsPerBin {
			line.Values = append(line.Values, float64(n))
		}
		title := fmt.Sprintf("%s: peak %s; %s", r.style.Name, chart.Number(math.Round(r.mean.Peak)), whenBack(h, r.result))
		panel := dialsPanel(title, limitOf(r.client), until, float64(top), i >= len(runs)-2, append(outages(h), line)...)
		pic.Panels = append(pic.Panels, panel)
	}
	return pic
}

// outages is the time at which the server is away.
func outages(h fleet.Herd) []chart.Layer {
	if h.Outage.Length == 0 {
		return nil
	}
	return []chart.Layer{chart.Shade{Style: away, To: h.Outage.Length.Seconds()}}
}

// dialsPanel is dials per fleet.Bin over time, on a logarithmic axis. It begins a little
// before the loss, so that clients that dial at that instant can be seen.
func dialsPanel(title, note string, until, top float64, lowest bool, layers ...chart.Layer) *chart.Panel {
	p := &chart.Panel{
		Title:  title,
		Note:   note,
		X:      chart.Axis{Min: -until / 80, Max: until, Bare: !lowest},
		Y:      chart.Axis{Min: 0.8, Max: chart.RoundUp(max(top, 10)), Log: true, Ticks: chart.Decades(max(top, 10))},
		Layers: layers,
	}
	if lowest {
		p.X.Label = "time since the loss, s"
	}
	return p
}

// whenBack returns when all of a herd were back, in words and in the time of the picture's axis.
func whenBack(h fleet.Herd, r *fleet.Result) string {
	away := h.Return().Seconds()
	switch {
	case r.T100 != fleet.Never:
		return fmt.Sprintf("all back after %.0f s", away+r.T100.Seconds())
	case r.T99 != fleet.Never:
		return fmt.Sprintf("99 %% back after %.0f s, not all after %.0f s", away+r.T99.Seconds(), h.Watch.Seconds())
	}
	return fmt.Sprintf("%.0f %% up after %.0f s", 100*float64(r.Up)/float64(r.N), h.Watch.Seconds())
}

// upPicture has a line for each make of clients.
func upPicture(name, title, note string, h fleet.Herd, runs []herdRun) *chart.Picture {
	pic := &chart.Picture{Name: name, Title: title, Note: note, Height: 240}
	p := &chart.Panel{
		X: chart.Axis{Max: h.Watch.Seconds(), Label: "time since the loss, s"},
		Y: chart.Axis{Max: 100, Label: "% of all connections"},
	}
	p.Layers = outages(h)
	for _, r := range runs { // the first is the widest, and behind the others
		line := chart.Line{Style: r.style}
		for i, n := range r.result.UpPerBin {
			line.Points = append(line.Points, chart.Point{X: (time.Duration(i+1) * fleet.Bin).Seconds(), Y: 100 * float64(n) / float64(h.N)})
		}
		line.Points = append(line.Points, chart.Point{X: h.Watch.Seconds(), Y: 100 * float64(r.result.Up) / float64(h.N)})
		p.Layers = append(p.Layers, line)
	}
	for _, r := range runs {
		pic.Legend = append(pic.Legend, r.style)
	}
	from := h.Return().Seconds()
	p.Layers = append(p.Layers, chart.Line{Style: ideal, Points: []chart.Point{{X: from}, {X: from + h.Ideal().Seconds(), Y: 100}}})
	pic.Legend = append(pic.Legend, ideal)
	if len(outages(h)) > 0 {
		pic.Legend = append(pic.Legend, away)
	}
	pic.Panels = []*chart.Panel{p}
	return pic
}
