package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/fleet"
	"github.com/redial-go/redial/bench/retrystorm"
)

func init() {
	registerModel(model{"storm", "a retry storm: a server that is stopped for a while, and clients that try again", simulateStorm})
}

// stormOptions are the flags of "bench sim -model storm".
type stormOptions struct {
	retrystorm.Options
	clients []retrystorm.Client
	seeds   int
	search  bool
	step    time.Duration
	longest time.Duration
}

func simulateStorm(ctx context.Context, c *console, args []string) error {
	o := stormOptions{step: 250 * time.Millisecond, longest: 2 * time.Minute}
	o.Options = retrystorm.Options{Stop: 10 * time.Second, Watch: 10 * time.Minute, Before: retrystorm.WarmUp, Timeout: 2 * time.Second, Think: 10 * time.Second}
	flags := modelFlags("storm")
	names := flags.String("client", "fixed,described,coded", "the kinds of client to simulate, separated by commas")
	flags.Var(seconds{&o.Stop}, "stop", "how long the server is stopped; a number without a unit is seconds")
	flags.Var(seconds{&o.Watch}, "watch", "how long the server is watched after it goes on")
	flags.Var(seconds{&o.Before}, "before", "how long all runs well before the stop")
	flags.Var(seconds{&o.Timeout}, "timeout", "how long a client waits for the answer to a request")
	flags.Var(seconds{&o.Think}, "lambda", "mean pause of a client after a success, which is exponential")
	flags.IntVar(&o.Clients, "clients", 1000, "how many clients")
	flags.IntVar(&o.Backlog, "backlog", 4096, "how many connections the kernel accepts while the server is stopped")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the first run; the next runs count up")
	flags.IntVar(&o.seeds, "seeds", 1, "runs of each kind of client")
	flags.BoolVar(&o.search, "search", false, "find the longest stop after which most seeds recover")
	flags.Var(seconds{&o.step}, "step", "with -search: how exactly to find it")
	flags.Var(seconds{&o.longest}, "longest", "with -search: the longest stop to try")
	if err := parse(c, flags, args); err != nil {
		return err
	}
	for name := range strings.SplitSeq(*names, ",") {
		kind, err := retrystorm.ParseClient(name)
		if err != nil {
			return usageError{err}
		}
		o.clients = append(o.clients, kind)
	}
	if o.seeds < 1 || o.step <= 0 || o.Clients < 1 || o.Backlog < 1 {
		return usageError{fmt.Errorf("-seeds, -step, -clients and -backlog must be above 0")}
	}
	if o.search {
		return o.searchBorders(ctx, c)
	}
	return o.run(ctx, c)
}

// run prints one line per run.
func (o *stormOptions) run(ctx context.Context, c *console) error {
	p := newProgress(c, "simulate", len(o.clients)*o.seeds)
	defer p.end()
	for _, kind := range o.clients {
		for n := range o.seeds {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			one := o.Options
			one.Client, one.Seed = kind, o.Seed+uint64(n)
			y, err := retrystorm.Run(one)
			if err != nil {
				return err
			}
			printStorm(c.out, y)
			p.add(1)
		}
	}
	return nil
}

func printStorm(w io.Writer, y *retrystorm.Result) {
	late := notWithin(y.Options.Watch)
	back, served := late, late
	if y.Recovered {
		back = fmt.Sprintf("%.1fs", y.Back.Seconds())
	}
	if y.AllServed {
		served = fmt.Sprintf("%.1fs", y.Everyone.Seconds())
	}
	fmt.Fprintf(w, "client=%v stop=%v watch=%v seed=%d recovered=%t back=%s everyone=%s backlog=%d peak=%d wasted=%d lost=%d\n",
		y.Options.Client, y.Options.Stop, y.Options.Watch, y.Options.Seed, y.Recovered, back, served, y.Backlog, y.Peak, y.Wasted, y.Lost)
}

// notWithin is fleet.NotWithin as one word, for lines of name=value.
func notWithin(watch time.Duration) string {
	return strings.ReplaceAll(fleet.NotWithin(watch), " ", "-")
}

// searchBorders prints one line per kind of client.
func (o *stormOptions) searchBorders(ctx context.Context, c *console) error {
	halvings := 0
	for n := o.longest / o.step; n > 0; n /= 2 {
		halvings++
	}
	p := newProgress(c, "search", len(o.clients)*halvings*o.seeds)
	defer p.end()
	for _, kind := range o.clients {
		one := o.Options
		one.Client = kind
		b, err := retrystorm.FindBorder(ctx, one, o.longest, o.step, o.seeds, func() { p.add(1) })
		if err != nil {
			return err
		}
		shortest := "none up to " + o.longest.String()
		if b.Shortest > 0 {
			shortest = b.Shortest.String()
		}
		fmt.Fprintf(c.out, "client=%v recovers_up_to=%v not_from=%s watch=%v seeds=%d\n", b.Client, b.Longest, shortest, o.Watch, o.seeds)
	}
	return nil
}
