package herd

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// fleetOptions are the flags of "bench sim -model fleet".
type fleetOptions struct {
	herd    fleet.Herd
	clients []fleet.Client
	seeds   int
	csv     string
	series  string
}

func simulateFleet(ctx context.Context, c *cli.Console, args []string) error {
	o, err := parseFleet(c, args)
	if err != nil || o == nil {
		return err
	}
	for _, file := range []string{o.csv, o.series} {
		if err := cli.CheckFile(file); err != nil {
			return err
		}
	}
	if o.series != "" {
		if err := o.writeSeries(ctx, c); err != nil {
			return err
		}
	}
	p := cli.NewProgress(c, "simulate", len(o.clients)*o.seeds)
	var rows []fleet.Summary
	var failed error
	for _, client := range o.clients {
		h := o.herd
		h.Client = client
		s, err := fleet.AverageEach(ctx, h, o.seeds, runtime.GOMAXPROCS(0), func() { p.Add(1) })
		if err != nil {
			failed = err
			break
		}
		rows = append(rows, s)
	}
	p.End()
	if len(rows) > 0 {
		if err := o.print(c, rows); err != nil {
			return err
		}
	}
	return runError(ctx, failed)
}

// runError is an error of fleet.Run: a Herd that makes no sense, unless ctx has ended.
func runError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return cli.Usage(err)
}

// parseFleet returns nil if there is nothing to simulate.
func parseFleet(c *cli.Console, args []string) (*fleetOptions, error) {
	var o fleetOptions
	h := &o.herd
	flags := cli.NewFlags()
	flags.IntVar(&h.N, "n", 10_000, "connections")
	flags.IntVar(&h.Processes, "processes", 0, "spread the connections evenly over so many processes, each with a budget.Gate of its own (default: no gate)")
	flags.Float64Var(&h.Server.Capacity, "capacity", 500, "handshakes that the server completes per second")
	h.Outage.Length = 5 * time.Second
	flags.Seconds(&h.Outage.Length, "outage", "how long the server is away")
	flags.Seconds(&h.Outage.Again, "again", "kill the server a second time, so long after its return")
	flags.Seconds(&h.Watch, "watch", "virtual time to watch, from the loss (default 10m and 12 times -n divided by -capacity)")
	flags.Seconds(&h.Server.RetryAfter, "retry-after", "Retry-After of each 503")
	flags.IntVar(&h.Server.Backlog, "backlog", 0, "how many dials can wait at the server (default 4096; 100 ms of work with -queue reject and 503)")
	flags.Float64Var(&h.Server.Answers, "answers", 0, "503s that the server can write per second (default 20 times -capacity)")
	queue := flags.String("queue", "drop", "what becomes of a dial for which the server has no room: drop (its SYN), reject, 503; or unbounded or random, so that all can wait, and are served in order or at random")
	down := flags.String("down", "refused", "what becomes of dials while the server is away: refused, silent, stopped, swallowed, 503")
	loss := flags.String("loss", "reset", "how sessions end: reset, 1012, 1013")
	names := flags.String("policy", "redial", "the clients to simulate, separated by semicolons, or all; -list shows them")
	list := flags.Bool("list", false, "list the clients")
	flags.IntVar(&o.seeds, "seeds", 3, "runs of each client, of which the table has the means")
	flags.Uint64Var(&h.Seed, "seed", 1, "seed of the first run; the next runs count up")
	flags.StringVar(&o.csv, "csv", "", "write the table to this file as CSV; - is standard output")
	flags.StringVar(&o.series, "series", "", "write dials and connections up per 100 ms, of the first seed, to this file; - is standard output")
	if err := cli.Parse(c, flags, args); err != nil {
		return nil, err
	}
	if *list {
		for _, client := range fleet.Clients() {
			fmt.Fprintln(c.Out, client.Name)
		}
		return nil, nil
	}
	var err [3]error
	h.Server.Queue, err[0] = fleet.ParseQueue(*queue)
	h.Outage.Down, err[1] = fleet.ParseDown(*down)
	h.Outage.Loss, err[2] = fleet.ParseLoss(*loss)
	for _, e := range err {
		if e != nil {
			return nil, cli.Usage(e)
		}
	}
	if o.seeds < 1 {
		return nil, cli.Usagef("-seeds must be above 0")
	}
	if q := h.Server.Queue; h.Server.Backlog == 0 && (q == fleet.Reject || q == fleet.Busy) {
		h.Server.Backlog = max(int(h.Server.Capacity/10), 1)
	}
	o.clients, err[0] = chooseClients(*names)
	if err[0] != nil {
		return nil, cli.Usage(err[0])
	}
	return &o, nil
}

func chooseClients(names string) (chosen []fleet.Client, err error) {
	all := fleet.Clients()
	if names == "all" {
		return all, nil
	}
next:
	for name := range strings.SplitSeq(names, ";") {
		for _, client := range all {
			if client.Name == name {
				chosen = append(chosen, client)
				continue next
			}
		}
		return nil, fmt.Errorf("there is no client %q: -list shows them", name)
	}
	return chosen, nil
}

var fleetColumns = []string{"client", "recovered", "ideal_s", "t50_s", "t99_s", "t100_s", "t99_over_ideal", "peak_per_100ms", "dials_per_client", "syns_per_client", "refused_per_client", "wasted_per_client", "up_at_end"}

// print writes the table, and the CSV if it is wanted.
func (o *fleetOptions) print(c *cli.Console, rows []fleet.Summary) error {
	t := cli.Table{fleetColumns}
	for i, s := range rows {
		t.Row(o.clients[i].Name, fmt.Sprintf("%d/%d", s.Recovered, s.Runs),
			fmt.Sprintf("%.2f", s.Ideal.Seconds()), fleet.Seconds(s.T50, s.Watch, 2), fleet.Seconds(s.T99, s.Watch, 2), fleet.Seconds(s.T100, s.Watch, 2), overIdeal(s),
			fmt.Sprintf("%.0f", s.Peak), fmt.Sprintf("%.2f", s.Dials), fmt.Sprintf("%.2f", s.SYNs), fmt.Sprintf("%.2f", s.Refused), fmt.Sprintf("%.2f", s.Wasted), fmt.Sprintf("%.0f", s.Up))
	}
	if o.csv != "-" {
		if err := t.Print(c.Out); err != nil {
			return err
		}
		if slices.ContainsFunc(rows, func(s fleet.Summary) bool { return s.T100 == fleet.Never }) {
			fmt.Fprintln(c.Out, `Times count from the server's return, "not within" from the loss: a run ended before so many were up.`)
		}
	}
	return cli.WriteFile(c, o.csv, t.WriteCSV)
}

// writeSeries writes one line per 100 ms with two columns per client.
func (o *fleetOptions) writeSeries(ctx context.Context, c *cli.Console) error {
	head := []string{"t_s"}
	var results []*fleet.Result
	longest := 0
	for _, client := range o.clients {
		h := o.herd
		h.Client = client
		r, err := fleet.Run(ctx, h)
		if err != nil {
			return runError(ctx, err)
		}
		results = append(results, r)
		longest = max(longest, len(r.DialsPerBin))
		head = append(head, client.Name+" dials", client.Name+" up")
	}
	t := cli.Table{head}
	for i := range longest {
		row := []string{fmt.Sprintf("%.1f", (time.Duration(i) * fleet.Bin).Seconds())}
		for _, r := range results {
			dials, up := int32(0), int32(r.Up)
			if i < len(r.DialsPerBin) {
				dials, up = r.DialsPerBin[i], r.UpPerBin[i]
			}
			row = append(row, strconv.Itoa(int(dials)), strconv.Itoa(int(up)))
		}
		t.Row(row...)
	}
	return cli.WriteFile(c, o.series, t.WriteCSV)
}
