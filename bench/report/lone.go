package report

import (
	"context"
	"fmt"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lone"
	"github.com/redial-go/redial/bench/internal/chart"
)

// loneClients are the clients of fleet.Clients that the chapter of lone clients compares.
var loneClients = []string{"redial", "paced", "grpc", "cenkalti", "full", "fixed"}

// lonePlan is the chapter of package lone.
func lonePlan(o Options) plan {
	return plan{id: "lone", title: "The lone client: how late one is back", text: []string{
		"A single client loses its connection and meets an outage, or several in a row, before a server that has room for it. A place is lost when a balancer accepted the handshake and never answers it; " +
			"it is kept when the server answers after it goes on. redial is the library with its defaults, and paced is what its defaults were before. cenkalti, full jitter and fixed 1 s give up a dial after 2 s: " +
			"so they are soon back alone, and for the same reason a herd of them does not come back (see the herd).",
	}, figures: []drawing{func(ctx context.Context) (*Figure, error) { return drawLone(ctx, o) }}}
}

func drawLone(ctx context.Context, o Options) (*Figure, error) {
	var clients []fleet.Client
	for _, name := range loneClients {
		c, err := fleet.Find(name)
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	rows := lone.Circumstances()
	all, err := lone.RunAll(ctx, rows, clients, o.Seeds, o.Seed, 1, func() {})
	if err != nil {
		return nil, err
	}
	t := lone.Table(rows, clients, all)
	return &Figure{
		Title:    "How late one client is back, by circumstance",
		Text:     []string{fmt.Sprintf("Seconds after the server is back, median / p95, of %s with %d clients each that do not meet. Other cells show what the row's name says.", plural(o.Seeds, "run"), lone.Side)},
		Pictures: []*chart.Picture{lone.Picture(rows, clients, all)},
		Tables:   []Table{{Head: t[0], Rows: t[1:]}},
	}, nil
}
