package herd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// simulatedFleet is "bench sim -model fleet".
type simulatedFleet struct {
	herd    fleet.Herd
	clients []fleet.Client
	seeds   int
	rows    []fleet.Summary
	series  bool            // is wanted
	first   []*fleet.Result // of the first seed of each client, for the series
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
	f.IntVar(&h.Server.Backlog, "backlog", 0, "how many dials can wait at the server (default 4096; 100 ms of work with -queue reject and 503)")
	f.Float64Var(&h.Server.Answers, "answers", 0, "503s that the server can write per second (default 20 times -capacity)")
	queue := f.String("queue", "drop", "what becomes of a dial for which the server has no room: drop (its SYN), reject, 503; or unbounded or random, so that all can wait, and are served in order or at random")
	down := f.String("down", "refused", "what becomes of dials while the server is away: refused, silent, stopped, swallowed, 503")
	loss := f.String("loss", "reset", "how sessions end: reset, 1012, 1013")
	chooseClients(f, &o.clients, "redial")
	o.seeds = 3
	f.Count(&o.seeds, 1, "seeds", "runs of each client, of which the table has the means")
	f.Uint64Var(&h.Seed, "seed", 1, "seed of the first run; the next runs count up")
	f.File("series", "write dials and connections up per 100 ms, of the first seed,", o.writeSeries)
	f.Check(func() error {
		var err [3]error
		h.Server.Queue, err[0] = fleet.ParseQueue(*queue)
		h.Outage.Down, err[1] = fleet.ParseDown(*down)
		h.Outage.Loss, err[2] = fleet.ParseLoss(*loss)
		if q := h.Server.Queue; h.Server.Backlog == 0 && (q == fleet.Reject || q == fleet.Busy) {
			h.Server.Backlog = max(int(h.Server.Capacity/10), 1)
		}
		o.series = f.Given("series")
		return cmp.Or(err[:]...)
	})
}

func (o *simulatedFleet) Run(ctx context.Context, c *cli.Console) error {
	p := cli.NewProgress(c, "simulate", len(o.clients)*o.seeds)
	defer p.End()
	for _, client := range o.clients {
		h := o.herd
		h.Client = client
		s, err := fleet.AverageEach(ctx, h, o.seeds, runtime.GOMAXPROCS(0), func() { p.Add(1) })
		if err != nil {
			return runError(ctx, err)
		}
		o.rows = append(o.rows, s)
		if o.series {
			r, err := fleet.Run(ctx, h)
			if err != nil {
				return runError(ctx, err)
			}
			o.first = append(o.first, r)
		}
	}
	return nil
}

// runError is an error of fleet.Run: a Herd that makes no sense, unless ctx has ended.
func runError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return cli.Usage(err)
}

// chooseClients adds the flag -policy.
func chooseClients(f *cli.Flags, into *[]fleet.Client, usual string) {
	cli.ChooseOf(f, into, "policy", usual, "the clients ("+strings.Join(fleet.Names(), ", ")+")", fleet.Clients(), func(c fleet.Client) string { return c.Name })
}

func (o *simulatedFleet) Table() (cli.Table, string) {
	t, note := cli.Table{{"client", "recovered", "ideal_s", "t50_s", "t99_s", "t100_s", "t99_over_ideal", "peak_per_100ms", "dials_per_client", "syns_per_client", "refused_per_client", "wasted_per_client", "up_at_end"}}, ""
	for i, s := range o.rows {
		t.Row(o.clients[i].Name, fmt.Sprintf("%d/%d", s.Recovered, s.Runs),
			fmt.Sprintf("%.2f", s.Ideal.Seconds()), fleet.Seconds(s.T50, s.Watch, 2), fleet.Seconds(s.T99, s.Watch, 2), fleet.Seconds(s.T100, s.Watch, 2), overIdeal(s),
			fmt.Sprintf("%.0f", s.Peak), fmt.Sprintf("%.2f", s.Dials), fmt.Sprintf("%.2f", s.SYNs), fmt.Sprintf("%.2f", s.Refused), fmt.Sprintf("%.2f", s.Wasted), fmt.Sprintf("%.0f", s.Up))
		if s.T100 == fleet.Never {
			note = `Times count from the server's return, "not within" from the loss: a run ended before so many were up.`
		}
	}
	return t, note
}

// writeSeries writes one line per 100 ms with two columns per client.
func (o *simulatedFleet) writeSeries(w io.Writer) error {
	head := []string{"t_s"}
	longest := 0
	for i, r := range o.first {
		longest = max(longest, len(r.DialsPerBin))
		head = append(head, o.clients[i].Name+" dials", o.clients[i].Name+" up")
	}
	t := cli.Table{head}
	for i := range longest {
		row := []string{fmt.Sprintf("%.1f", (time.Duration(i) * fleet.Bin).Seconds())}
		for _, r := range o.first {
			dials, up := int32(0), int32(r.Up)
			if i < len(r.DialsPerBin) {
				dials, up = r.DialsPerBin[i], r.UpPerBin[i]
			}
			row = append(row, strconv.Itoa(int(dials)), strconv.Itoa(int(up)))
		}
		t.Row(row...)
	}
	return t.WriteCSV(w)
}
