package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/table"
)

func main() { os.Exit(program.Main()) }

var program = cli.Program{
	Name: "dial",
	Commands: []cli.Command{{
		Summary: "what a dialer.Dialer does to net/http, pgxpool, gRPC, go-redis and a loop, while a server is away",
		Example: "-outage 3s -runs 1 -only net/http",
		New:     cli.New[dialBench],
	}},
}

// dialBench has the flags of the command, and its results.
type dialBench struct {
	outage, after time.Duration
	rate          float64
	runs          int
	clients       []client

	results    []result // of all runs
	conditions cli.Conditions
}

func (o *dialBench) Flags(f *cli.Flags) {
	o.outage, o.after, o.rate, o.runs = time.Minute, 30*time.Second, 20, 5
	f.Pause(&o.outage, "outage", "how long the server is away; each run is a bit longer than the run before")
	f.Pause(&o.after, "after", "how long calls continue when it is back")
	f.Number(&o.rate, 1, "rate",
		"calls per second of each client, each with a limit of 1 s; the loop waits for each dial instead")
	f.Count(&o.runs, 1, "runs", "runs of each row, all at the same time")
	cli.SomeOf(f, &o.clients, "only", "all", "the clients", clients, func(c client) string { return c.name })
}

// Run starts all runs of all rows at the same time, because each of them mostly waits.
func (o *dialBench) Run(ctx context.Context, c *cli.Console) error {
	end := cli.Measure()
	defer func() { o.conditions = end() }()
	logging.Disable() // go-redis logs each dial that failed
	fmt.Fprintf(c.Errs, "a server that is away for %v; this takes about %v\n", o.outage, o.outage+o.after+5*time.Second)
	var all sync.WaitGroup
	var mu sync.Mutex // guards results and failed
	var failed error
	for _, client := range o.clients {
		for _, way := range ways {
			for run := range o.runs {
				s := &scene{
					client: client,
					way:    way,
					rate:   o.rate,
					outage: o.outage + time.Duration(run)*370*time.Millisecond,
					after:  o.after,

					listen:  net.Listen,
					address: "127.0.0.1:0",
					tryOnce: new(net.Dialer).DialContext,
				}
				all.Go(func() {
					r, err := s.run(ctx)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						failed = err
						return
					}
					o.results = append(o.results, r)
				})
			}
		}
	}
	all.Wait()
	return failed
}

// Table has a row for each client and way.
func (o *dialBench) Table() (table.Table, string) {
	t := table.Table{{
		"client", "dials by",
		"away: calls/s", "tries/s", "dials in progress when back", "a call fails after, s: median / 95 %",
		"back: first success after, s", "worst", "connections made",
	}}
	for _, c := range o.clients {
		for _, w := range ways {
			var runs []result
			for _, r := range o.results {
				if r.client == c.name && r.way == w.name {
					runs = append(runs, r)
				}
			}
			if len(runs) > 0 {
				t.Row(append([]string{c.name, w.name}, figures(runs)...)...)
			}
		}
	}
	return t, fmt.Sprintf("Medians of %d runs, and the worst; away for %v; -4: at most four connections. %v.",
		o.runs, o.outage, o.conditions)
}

// figures returns the cells of a row but the first two.
func figures(runs []result) []string {
	mid := func(of func(r result) float64) float64 { return median(values(runs, of)) }
	failsAfter := "none did"
	if p50 := mid(func(r result) float64 { return r.failP50.Seconds() }); p50 >= 0 {
		p95 := mid(func(r result) float64 { return r.failP95.Seconds() })
		failsAfter = fmt.Sprintf("%.2f / %.2f", p50, p95)
	}
	back := values(runs, func(r result) float64 { return r.back.Seconds() })
	return []string{
		fmt.Sprintf("%.1f", mid(func(r result) float64 { return r.calls })),
		fmt.Sprintf("%.1f", mid(func(r result) float64 { return r.tries })),
		fmt.Sprintf("%.0f", mid(func(r result) float64 { return float64(r.inProgress) })),
		failsAfter,
		fmt.Sprintf("%.2f", median(back)),
		fmt.Sprintf("%.2f", back[len(back)-1]),
		fmt.Sprintf("%.0f", mid(func(r result) float64 { return float64(r.made) })),
	}
}

// values returns the result of calling of for each run, sorted.
func values(runs []result, of func(r result) float64) (all []float64) {
	for _, r := range runs {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all
}

func median(sorted []float64) float64 { return sorted[len(sorted)/2] }
