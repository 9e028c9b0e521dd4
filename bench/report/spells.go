package report

import (
	"context"
	"fmt"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/chart"
)

// spellSettings are herds that meet more than one outage of one server.
func spellSettings(o Options) []setting {
	const second = time.Second
	world := fmt.Sprintf("N = %s, %s handshakes/s", chart.Number(float64(o.N)), chart.Number(o.Capacity))
	herd := func(q fleet.Queue, down fleet.Down, length time.Duration) fleet.Herd {
		h := fleet.Herd{N: o.N, Outage: fleet.Outage{Down: down, Length: length}, Server: fleet.Server{Capacity: o.Capacity, Queue: q}, Seed: o.Seed}
		if q == fleet.Busy {
			h.Server.Backlog = max(int(o.Capacity/10), 1)
		}
		h.Watch = length + herdWatch(h.Ideal())
		return h
	}
	ramp := herd(fleet.Drop, fleet.Refused, 5*second)
	ramp.Server.Ramp = time.Minute
	ramp.Watch += time.Minute
	flap := herd(fleet.Drop, fleet.Refused, 0)
	flap.Server.Capacity *= 10 // so that all could be up before the next loss
	for range 10 {
		flap.Outage.Spells = append(flap.Outage.Spells, fleet.Spell{Down: fleet.Refused, Length: 3 * second}, fleet.Spell{Down: fleet.Up, Length: 3 * second})
	}
	flap.Outage.Spells = append(flap.Outage.Spells, fleet.Spell{Down: fleet.Refused, Length: 3 * second})
	flap.Watch = 2 * time.Minute
	rolling := herd(fleet.Drop, fleet.Refused, 2*second)
	rolling.Server.Count, rolling.Server.Rolling, rolling.Server.Capacity = 10, 10*second, o.Capacity/10
	half := herd(fleet.Drop, fleet.Refused, 0)
	half.Server.Count, half.Server.Hung, half.Server.Capacity = 10, 5, o.Capacity/5
	return []setting{
		{
			id: "hang", title: "A hang of 60 s that loses every place, then a backlog", herd: herd(fleet.Drop, fleet.Swallowed, 60*second), until: 120,
			note: world + "; for 60 s a balancer accepts and never answers; then a backlog of 4,096. Simulated",
			text: "What the balancer accepted in these 60 s is never answered, also not afterwards: a client that keeps its only place waits for nothing.",
		}, {
			id: "hang_busy", title: "A hang of 60 s that loses every place, then 503 where there is no room", herd: herd(fleet.Busy, fleet.Swallowed, 60*second), until: 120,
			note: world + "; for 60 s a balancer accepts and never answers; then 100 ms of work may wait, the others get 503. Simulated",
		}, {
			id: "flapping", title: "A server that flaps: ten times 3 s up and 3 s away", herd: flap, until: 90, repeats: true,
			note: fmt.Sprintf("N = %s, %s handshakes/s; a backlog of 4,096, and dials are refused while the server is away. Simulated", chart.Number(float64(o.N)), chart.Number(flap.Server.Capacity)),
			text: "Each time that the server goes, all of its connections are lost. A herd that backs off after each loss is hardly ever up; a herd that does not is a load on a server that is ill.",
		}, {
			id: "ramp", title: "Cold caches: 2 to 100 % of the capacity in a minute", herd: ramp, until: 120,
			note: world + " a minute after the return; refused for 5 s, then a backlog of 4,096. Simulated",
			text: "At first the server is fifty times slower than its rate says, so a place in its backlog lasts for minutes: clients with a short limit leave it and take another.",
		}, {
			id: "rolling", title: "A rolling restart of ten servers", herd: rolling, until: 115, repeats: true,
			note: fmt.Sprintf("N = %s, ten servers with %s handshakes/s each, restarted 10 s apart, each away for 2 s; each dial meets one at random. Simulated", chart.Number(float64(o.N)), chart.Number(o.Capacity/10)),
			text: "A client may be lost more than once, because it dials servers whose turn is still to come.",
		}, {
			id: "half", title: "Half of the backends hang", herd: half, until: 90,
			note: fmt.Sprintf("N = %s, lost at once; ten backends behind one address, of which five accept and never answer; the others complete %s handshakes/s each. Simulated", chart.Number(float64(o.N)), chart.Number(o.Capacity/5)),
			text: "A balancer spreads dials at random, so that a client needs two dials in the mean. How soon it gives up a handshake that hangs decides.",
		},
	}
}

// spellsPlan is the chapter of outages that are not simple.
func spellsPlan(o Options) plan {
	p := plan{id: "spells", title: "The herd when more goes wrong: hangs, flapping, cold caches, several servers, neighbours", text: []string{
		"The same herds and the same clients as in the chapter before, with servers that do worse than restart.",
	}}
	for _, s := range spellSettings(o) {
		p.figures = append(p.figures, func(ctx context.Context) (*Figure, error) { return drawSetting(ctx, o, s) })
	}
	p.figures = append(p.figures,
		func(ctx context.Context) (*Figure, error) { return drawNeighbours(ctx, o) },
		func(ctx context.Context) (*Figure, error) { return drawStart(ctx, o) })
	return p
}

// drawStart is the first start of a fleet, with and without a spread.
func drawStart(ctx context.Context, o Options) (*Figure, error) {
	h := fleet.Herd{N: o.N, Fresh: true, Server: fleet.Server{Capacity: o.Capacity, Queue: fleet.Drop}, Seed: o.Seed}
	h.Watch = time.Minute + 2*h.Ideal()
	var runs []herdRun
	for _, start := range []struct {
		spread time.Duration
		chart.Style
	}{
		{0, chart.Style{Name: "no StartSpread", Color: chart.Vermillion, Dash: chart.Short, Width: 2}},
		{time.Second, chart.Style{Name: "StartSpread 1 s", Color: chart.Blue, Width: 2.6}},
		{2 * time.Second, chart.Style{Name: "StartSpread 2 s", Color: chart.Green, Width: 2}},
		{10 * time.Second, chart.Style{Name: "StartSpread 10 s", Color: chart.Purple}},
	} {
		r, err := runClient(ctx, h, fleet.Client{StartSpread: start.spread}, start.Style, o.Seeds)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return showSetting(o, setting{
		id: "start", title: "The first start of a fleet, with and without StartSpread", herd: h, until: 15,
		note: fmt.Sprintf("N = %s start at one instant, %s handshakes/s, a backlog of 4,096. The library with its defaults. Simulated", chart.Number(float64(o.N)), chart.Number(o.Capacity)),
		text: "A client that starts dials at once, because it is usually alone. Where thousands start together, StartSpread draws the wait before the first dial; it is off by default.",
	}, runs), nil
}
