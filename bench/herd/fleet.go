package herd

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/bench/internal/policy"
	"github.com/redial-go/redial/bench/internal/table"
)

// simulatedFleet is "bench sim -model fleet".
type simulatedFleet struct {
	herd    fleet.Herd
	clients []fleet.Client
	seeds   int
	series  bool // the first run of each client is shown
	rows    []fleet.Summary
	first   []*fleet.Result // of each client, if series
	lent    string          // note on the clients without a limit of their own, or ""
}

func (o *simulatedFleet) Flags(f *cli.Flags) {
	h := &o.herd
	f.IntVar(&h.N, "n", 10_000, "connections")
	f.IntVar(&h.Processes, "processes", 0, "spread the connections evenly over so many processes, each with a budget.Gate of its own (default: no gate)")
	f.Float64Var(&h.Server.Capacity, "capacity", 500, "handshakes that the server completes per second")
	h.Outage.Length = 5 * time.Second
	f.Seconds(&h.Outage.Length, "outage", "how long the server is away")
	f.Seconds(&h.Outage.Again, "again", "kill the server a second time, so long after its return")
	f.Seconds(&h.Watch, "watch", "virtual time to watch, from the loss (default 10m and 12 times -n divided by -capacity)")
	f.Seconds(&h.Server.RetryAfter, "retry-after", "Retry-After of each 503")
	f.BoolVar(&h.Server.Status429, "429", false, "the server answers 429 instead of 503")
	f.IntVar(&h.Server.Backlog, "backlog", 0, "how many dials can wait at the server (default 4096; 100 ms of work with -queue reject and 503)")
	f.Float64Var(&h.Server.Answers, "answers", 0, "503s that the server can write per second (default 20 times -capacity)")
	cli.OneOf(f, &h.Server.Queue, "queue", "drop", "what becomes of a dial for which the server has no room\ndrop: its SYN is dropped\nunbounded, random: all can wait, and are served in order or at random", fleet.Queues(), fleet.Queue.String)
	cli.OneOf(f, &h.Outage.Down, "down", "refused", "what becomes of dials while the server is away", fleet.Downs(), fleet.Down.String)
	cli.OneOf(f, &h.Outage.Loss, "loss", "reset", "how sessions end", fleet.Losses(), fleet.Loss.String)
	chooseClients(f, &o.clients, "redial", "how the clients wait")
	o.seeds = 3
	f.Count(&o.seeds, 1, "seeds", "runs of each client, of which the table has the means")
	f.Seed(&h.Seed)
	f.File("series", "write each 100 ms of the first run of each client", func(w io.Writer) error { return o.fleetSeries().WriteCSV(w) })
	f.Check(func() error {
		o.series = f.Given("series") || f.Given("svg")
		if q := h.Server.Queue; h.Server.Backlog == 0 && (q == fleet.Reject || q == fleet.Busy) {
			h.Server.Backlog = max(int(h.Server.Capacity/10), 1)
		}
		return nil
	})
}

func (o *simulatedFleet) Run(ctx context.Context, c *cli.Console) error {
	runs := 0
	for _, one := range o.clients {
		runs += len(one.Lendings()) * o.seeds
	}
	p := cli.NewProgress(c, "simulate", runs)
	defer p.End()
	o.lent = lent(o.clients)
	for i, one := range o.clients {
		workers := runtime.GOMAXPROCS(0)
		results, client, err := fleet.Soonest(ctx, one, sameHerd(o.herd), o.seeds, workers, func() { p.Add(1) })
		if len(results) > 0 {
			o.clients[i] = client
			o.rows = append(o.rows, fleet.Summarize(results))
		}
		if len(results) > 0 && o.series {
			o.first = append(o.first, results[0])
		}
		if err != nil {
			return runError(ctx, err)
		}
	}
	return nil
}

// lent returns a note on the clients without a limit of their own on a dial, or "" if there are none.
func lent(clients []fleet.Client) string {
	var names []string
	for _, c := range clients {
		if c.Lent {
			names = append(names, c.Name)
		}
	}
	if names == nil {
		return ""
	}
	limits := strings.Join(pick.Names(fleet.LentLimits, time.Duration.String), ", ")
	return fmt.Sprintf("No limit of their own on a dial: %s. Of %s each has the one with which it is back the soonest.",
		strings.Join(names, ", "), limits)
}

// runError is an error of fleet.Run: a Herd that makes no sense, unless ctx has ended.
func runError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return cli.Usage(err)
}

// chooseClients adds the flag -policy.
func chooseClients(f *cli.Flags, into *[]fleet.Client, usual, help string) {
	var choices []policy.Choice
	policy.Flag(f, &choices, usual, help, fleet.Rules())
	f.Check(func() error {
		*into = pick.Each(choices, fleet.Of)
		return nil
	})
}

func (o *simulatedFleet) Table() (table.Table, string) {
	var notes []string
	if o.lent != "" {
		notes = append(notes, o.lent)
	}
	if slices.ContainsFunc(o.rows, func(s fleet.Summary) bool { return s.T100 == fleet.Never }) {
		notes = append(notes, `Times count from the server's return, "not within" from the loss: `+
			`a run ended before so many were up.`)
	}
	return fleet.Table(o.clients, o.rows), strings.Join(notes, "\n")
}
