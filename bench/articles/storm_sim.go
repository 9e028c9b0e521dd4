package articles

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/articles/storm"
	"github.com/redial-go/redial/bench/herd/fleet"
)

// simulatedStorm is "bench sim -model storm".
type simulatedStorm struct {
	stormFlags
	seeds         int
	step, longest time.Duration
	search, curve bool
}

func (o *simulatedStorm) Flags(f *cli.Flags) {
	o.seeds, o.step, o.longest = 1, 250*time.Millisecond, 2*time.Minute
	o.add(f, "simple,described,coded", 10*time.Minute, storm.LeastWatch)
	f.Count(&o.Backlog, 1, "backlog", "how many connections the kernel accepts while the server is stopped")
	f.Seed(&o.Seed)
	f.Count(&o.seeds, 1, "seeds", "runs of each kind of client")
	f.BoolVar(&o.search, "search", false, "find the longest stop after which most seeds recover")
	f.Pause(&o.step, "step", "with -search: how exactly to find it")
	f.Pause(&o.longest, "longest", "with -search: the longest stop to try")
	f.BoolVar(&o.curve, "curve", false, "show how long the server takes with how many requests at a time, and simulate nothing")
}

func (o *simulatedStorm) Run(ctx context.Context, c *cli.Console) error {
	switch {
	case o.curve:
		printCurve(c.Out, o.Server, o.Timeout)
		return nil
	case o.search:
		return o.searchBorders(ctx, c)
	}
	return c.Each(ctx, "simulate", len(o.kinds)*o.seeds, 1, func(i int) error {
		one := o.Options
		one.Client, one.Seed = o.kinds[i/o.seeds], o.Seed+uint64(i%o.seeds)
		y, err := storm.Run(one)
		if err == nil {
			printStorm(c.Out, y)
		}
		return err
	})
}

// curvePoints are the numbers of requests of which the article's log, or a check of it, has
// the delay.
var curvePoints = []int{1, 30, 951, 1040, 1599, 1925, 2231}

// printCurve prints a line per number of requests at a time.
func printCurve(w io.Writer, server storm.Server, timeout time.Duration) {
	points := append([]int{server.Best()}, curvePoints...)
	tipping, tips := server.Tipping(timeout)
	if tips {
		points = append(points, tipping)
	}
	slices.Sort(points)
	for _, n := range slices.Compact(points) {
		note := ""
		switch {
		case tips && n == tipping:
			note = fmt.Sprintf(" (from here on a request takes longer than %v)", timeout)
		case n == server.Best():
			note = " (the most per second)"
		}
		fmt.Fprintf(w, "requests=%d delay=%v per_second=%.1f%s\n", n, server.Delay(n), server.Throughput(n), note)
	}
}

func printStorm(w io.Writer, y *storm.Result) {
	recovered, back := recovery(y.Recovered, false, fmt.Sprintf("%.1fs", y.Back.Seconds()), y.Options.Watch)
	served := notWithin(y.Options.Watch)
	if y.AllServed {
		served = fmt.Sprintf("%.1fs", y.Everyone.Seconds())
	}
	fmt.Fprintf(w, "client=%v stop=%v watch=%v seed=%d recovered=%s back=%s everyone=%s backlog=%d peak=%d wasted=%d lost=%d gave_up=%d\n",
		y.Options.Client, y.Options.Stop, y.Options.Watch, y.Options.Seed, recovered, back, served, y.Backlog, y.Peak, y.Wasted, y.Lost, y.GaveUp)
}

// recovery returns whether a run has recovered, and after what time, as words. A run that is not
// known to have recovered was watched for too short a time, or cut.
func recovery(recovered, unknown bool, after string, watch time.Duration) (is, back string) {
	switch {
	case recovered:
		return "true", after
	case unknown:
		return "unknown", "unknown"
	}
	return "false", notWithin(watch)
}

// notWithin is fleet.NotWithin as one word, for lines of name=value.
func notWithin(watch time.Duration) string {
	return strings.ReplaceAll(fleet.NotWithin(watch), " ", "-")
}

// searchBorders prints one line per kind of client.
func (o *simulatedStorm) searchBorders(ctx context.Context, c *cli.Console) error {
	halvings := 0
	for n := o.longest / o.step; n > 0; n /= 2 {
		halvings++
	}
	p := cli.NewProgress(c, "search", len(o.kinds)*halvings*o.seeds)
	defer p.End()
	for _, kind := range o.kinds {
		one := o.Options
		one.Client = kind
		b, err := storm.FindBorder(ctx, one, o.longest, o.step, o.seeds, func() { p.Add(1) })
		if err != nil && ctx.Err() == nil {
			return err
		}
		shortest := "none up to " + o.longest.String()
		if b.Shortest > 0 {
			shortest = b.Shortest.String()
		}
		fmt.Fprintf(c.Out, "client=%v recovers_up_to=%v not_from=%s watch=%v seeds=%d cut=%t\n", b.Client, b.Longest, shortest, o.Watch, o.seeds, err != nil)
		if err != nil {
			return err
		}
	}
	return nil
}
