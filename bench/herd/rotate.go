package herd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/herd/rotate"
)

// rotations is "bench rotate".
type rotations struct {
	rounds, rate, n, messages int
	only                      []string
}

// rotateTables are what "bench rotate" prints, in this order.
var rotateTables = []struct {
	name  string
	table func(*rotations, context.Context, *cli.Console) (cli.Table, error)
}{
	{"pauses", (*rotations).pauses},
	{"memory", (*rotations).memory},
	{"layers", (*rotations).layers},
}

func (o *rotations) Flags(f *cli.Flags) {
	o.rounds, o.rate, o.n, o.messages = 5, 1000, 1000, 1_000_000
	f.Count(&o.rounds, 1, "rounds", "runs of which each line is the median")
	f.Count(&o.rate, 1, "rate", "messages per second for the pauses, at most 100000")
	f.Count(&o.n, 1, "n", "connections for the memory")
	f.Count(&o.messages, 2, "messages", "messages of each run with layers")
	cli.ChooseOf(f, &o.only, "only", "pauses,memory,layers", "what to measure", []string{"pauses", "memory", "layers"}, func(name string) string { return name })
	f.Check(func() error {
		if o.rate > 100_000 {
			return errors.New("want at most 100000 messages per second")
		}
		return nil
	})
}

// Run prints each table when it is measured.
func (o *rotations) Run(ctx context.Context, c *cli.Console) error {
	end := cli.Measure()
	for _, t := range rotateTables {
		if !slices.Contains(o.only, t.name) {
			continue
		}
		rows, err := t.table(o, ctx, c)
		if err != nil {
			return err
		}
		if err := rows.Print(c.Out); err != nil {
			return err
		}
		fmt.Fprintln(c.Out)
	}
	fmt.Fprintln(c.Out, end())
	return nil
}

// pauses has a row for each kind of server and each way.
func (o *rotations) pauses(ctx context.Context, c *cli.Console) (cli.Table, error) {
	ways := rotate.Ways()
	all := make([][]rotate.Heard, 2*len(ways)) // of each row
	p := cli.NewProgress(c, "pauses", o.rounds*len(all))
	defer p.End()
	for range o.rounds {
		for row := range all {
			h, err := rotate.Pause(ctx, ways[row%len(ways)], row >= len(ways), o.rate)
			if err != nil {
				return nil, err
			}
			all[row] = append(all[row], h)
			p.Add(1)
		}
	}
	t := cli.Table{{"the server", "way", "longest pause, ms", "least to most", "missing", "twice", "lost before the next was ready"}}
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
		t.Row(server, ways[row%len(ways)].Name, fmt.Sprintf("%.1f", cli.Median(pauses)), fmt.Sprintf("%.1f to %.1f", pauses[0], pauses[len(pauses)-1]),
			fmt.Sprintf("%.0f", cli.Median(sorted(runs, func(h rotate.Heard) float64 { return float64(h.Missing) }))),
			fmt.Sprintf("%.0f", cli.Median(sorted(runs, func(h rotate.Heard) float64 { return float64(h.Twice) }))),
			fmt.Sprintf("%d of %d", lost, len(runs)))
	}
	return t, nil
}

// memory has a row.
func (o *rotations) memory(ctx context.Context, c *cli.Console) (cli.Table, error) {
	p := cli.NewProgress(c, "memory", 1)
	defer p.End()
	h, err := rotate.Memory(ctx, o.n, 10*time.Second+time.Duration(o.n)*10*time.Millisecond)
	if err != nil {
		return nil, err
	}
	ratio := func(n int) string { return fmt.Sprintf("%d = %.2f", n, float64(n)/float64(h.Before)) }
	return cli.Table{
		{"connections", "one session, B", "two, B", "one again, B"},
		{fmt.Sprint(o.n), fmt.Sprint(h.Before), ratio(h.During), ratio(h.After)},
	}, nil
}

// layersRuns is how often the layers are measured in each round: many short runs, because the
// least disturbed of them is nearest to the truth.
const layersRuns = 20

// layers has a row for each number of layers.
func (o *rotations) layers(ctx context.Context, c *cli.Console) (cli.Table, error) {
	numbers := []int{0, 1, 10}
	best := make([]time.Duration, len(numbers))
	p := cli.NewProgress(c, "layers", o.rounds*layersRuns*len(numbers))
	defer p.End()
	for range o.rounds * layersRuns {
		for i, n := range numbers {
			d, err := rotate.Layers(ctx, n, o.messages)
			if err != nil {
				return nil, err
			}
			if best[i] == 0 || d < best[i] {
				best[i] = d
			}
			p.Add(1)
		}
	}
	t := cli.Table{{"layers", "a message, ns", "ratio", "a layer, ns"}}
	for i, n := range numbers {
		each := "-"
		if n > 0 {
			each = fmt.Sprintf("%.1f", float64(best[i]-best[0])/float64(n))
		}
		t.Row(fmt.Sprint(n), fmt.Sprint(best[i].Nanoseconds()), fmt.Sprintf("%.2f", float64(best[i])/float64(best[0])), each)
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
