package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/herd/rotate"
)

func init() {
	if rotate.IsServer() { // it never gets as far as main
		os.Exit(rotate.ServerMain())
	}
	register(command{"rotate", "measure on real sockets what it costs to replace a session: pauses, memory, layers", measureRotate})
}

// rotateOptions are the flags of "bench rotate".
type rotateOptions struct {
	rounds   int
	rate     int
	n        int
	messages int
	only     []string
}

// rotateTables are what "bench rotate" prints, in this order.
var rotateTables = []struct {
	name  string
	table func(*rotateOptions, context.Context, *console) (table, error)
}{
	{"pauses", (*rotateOptions).pauses},
	{"memory", (*rotateOptions).memory},
	{"layers", (*rotateOptions).layers},
}

func measureRotate(ctx context.Context, c *console, args []string) error {
	o := &rotateOptions{rounds: 5, rate: 1000, n: 1000, messages: 1_000_000}
	flags := flag.NewFlagSet("rotate", flag.ContinueOnError)
	flags.Var(count{&o.rounds, 1}, "rounds", "runs of which each line is the median")
	flags.Var(count{&o.rate, 1}, "rate", "messages per second for the pauses, at most 100000")
	flags.Var(count{&o.n, 1}, "n", "connections for the memory")
	flags.Var(count{&o.messages, 2}, "messages", "messages of each run with layers")
	only := flags.String("only", "pauses,memory,layers", "what to measure, separated by commas")
	if err := parse(c, flags, args); err != nil {
		return err
	}
	o.only = list(*only)
	for _, name := range o.only {
		if name != "pauses" && name != "memory" && name != "layers" {
			return usageError{fmt.Errorf("-only: there is no %q: there are pauses, memory and layers", name)}
		}
	}
	if o.rate > 100_000 {
		return usageError{errors.New("want at most 100000 messages per second")}
	}
	before := load()
	for _, t := range rotateTables {
		if !slices.Contains(o.only, t.name) {
			continue
		}
		rows, err := t.table(o, ctx, c)
		if err != nil {
			return err
		}
		if err := printTable(c.out, rows); err != nil {
			return err
		}
		fmt.Fprintln(c.out)
	}
	fmt.Fprintf(c.out, "%s/%s, %s, %d processors; load average %s before, %s after\n",
		runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU(), before, load())
	return nil
}

// pauses has a row for each kind of server and each way.
func (o *rotateOptions) pauses(ctx context.Context, c *console) (table, error) {
	ways := rotate.Ways()
	all := make([][]rotate.Heard, 2*len(ways)) // of each row
	p := newProgress(c, "pauses", o.rounds*len(all))
	defer p.end()
	for range o.rounds {
		for row := range all {
			h, err := rotate.Pause(ctx, ways[row%len(ways)], row >= len(ways), o.rate)
			if err != nil {
				return nil, err
			}
			all[row] = append(all[row], h)
			p.add(1)
		}
	}
	t := table{{"the server", "way", "longest pause, ms", "least to most", "missing", "twice", "lost before the next was ready"}}
	for row, runs := range all {
		server := "gives everything to both"
		if row >= len(ways) {
			server = "moves the stream"
		}
		lost := 0
		for _, h := range runs {
			if h.Lost {
				lost++
			}
		}
		pauses := sorted(runs, func(h rotate.Heard) float64 { return h.Pause.Seconds() * 1000 })
		t.row(server, ways[row%len(ways)].Name, fmt.Sprintf("%.1f", median(pauses)), fmt.Sprintf("%.1f to %.1f", pauses[0], pauses[len(pauses)-1]),
			fmt.Sprintf("%.0f", median(sorted(runs, func(h rotate.Heard) float64 { return float64(h.Missing) }))),
			fmt.Sprintf("%.0f", median(sorted(runs, func(h rotate.Heard) float64 { return float64(h.Twice) }))),
			fmt.Sprintf("%d of %d", lost, len(runs)))
	}
	return t, nil
}

// memory has a row.
func (o *rotateOptions) memory(ctx context.Context, c *console) (table, error) {
	p := newProgress(c, "memory", 1)
	defer p.end()
	h, err := rotate.Memory(ctx, o.n, 10*time.Second+time.Duration(o.n)*10*time.Millisecond)
	if err != nil {
		return nil, err
	}
	ratio := func(n int) string { return fmt.Sprintf("%d = %.2f", n, float64(n)/float64(h.Before)) }
	return table{
		{"connections", "one session, B", "two, B", "one again, B"},
		{fmt.Sprint(o.n), fmt.Sprint(h.Before), ratio(h.During), ratio(h.After)},
	}, nil
}

// layersRuns is how often the layers are measured in each round: many short runs, because the
// least disturbed of them is nearest to the truth.
const layersRuns = 20

// layers has a row for each number of layers.
func (o *rotateOptions) layers(ctx context.Context, c *console) (table, error) {
	numbers := []int{0, 1, 10}
	best := make([]time.Duration, len(numbers))
	p := newProgress(c, "layers", o.rounds*layersRuns*len(numbers))
	defer p.end()
	for range o.rounds * layersRuns {
		for i, n := range numbers {
			d, err := rotate.Layers(ctx, n, o.messages)
			if err != nil {
				return nil, err
			}
			if best[i] == 0 || d < best[i] {
				best[i] = d
			}
			p.add(1)
		}
	}
	t := table{{"layers", "a message, ns", "ratio", "a layer, ns"}}
	for i, n := range numbers {
		each := "-"
		if n > 0 {
			each = fmt.Sprintf("%.1f", float64(best[i]-best[0])/float64(n))
		}
		t.row(fmt.Sprint(n), fmt.Sprint(best[i].Nanoseconds()), fmt.Sprintf("%.2f", float64(best[i])/float64(best[0])), each)
	}
	return t, nil
}

// sorted returns what of says of each run, the least first.
func sorted(runs []rotate.Heard, of func(rotate.Heard) float64) (all []float64) {
	for _, h := range runs {
		all = append(all, of(h))
	}
	slices.Sort(all)
	return all
}

// median returns the middle of what is sorted, of an even number the lower one.
func median(sorted []float64) float64 { return sorted[(len(sorted)-1)/2] }

// load returns the load average of the last minute, or "unknown".
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 0 {
		return fields[0]
	}
	return "unknown"
}
