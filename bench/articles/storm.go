package articles

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/herd/lab"
)

// raiseStorm is "bench storm".
func raiseStorm(ctx context.Context, c *cli.Console, args []string) error {
	var s stormFlags
	flags := cli.NewFlags()
	s.add(flags, "fixed", 45*time.Second)
	if err := cli.Parse(c, flags, args); err != nil {
		return err
	}
	kinds, err := s.chosen()
	if err != nil {
		return err
	}
	o := lab.Storm{
		Server: s.server, Clients: s.clients, Think: s.think, Timeout: s.timeout,
		Before: s.before, Stop: s.stop, Watch: s.watch,
	}
	if err := o.Validate(); err != nil {
		return cli.Usage(err)
	}
	each := o.Before + o.Stop + o.Watch
	fmt.Fprintf(c.Errs, "storm: %d clients, %s of %v: %v before, %v stopped, then watched for up to %v\n",
		o.Clients, cli.Plural(len(kinds), "run"), each, o.Before, o.Stop, o.Watch)
	for _, kind := range kinds {
		o.Client = kind
		if err := runStorm(ctx, c.Out, o); err != nil {
			return err
		}
	}
	return nil
}

// runStorm prints a line per second, and what came of it.
func runStorm(ctx context.Context, w io.Writer, o lab.Storm) error {
	fmt.Fprintf(w, "%7s %9s %9s %9s %6s %9s %7s %6s\n", "t", "in flight", "delay", "backlog", "OK", "timed out", "failed", "away")
	o.Each = func(s lab.StormSecond) {
		at := fmt.Sprintf("%.1fs", s.At.Seconds())
		if s.Stopped {
			fmt.Fprintf(w, "%7s %9s %9s %9s %6d %9d %7d %6d\n", at, "stopped", "-", "-", s.OK, s.TimedOut, s.Failed, s.Away)
			return
		}
		delay := "> 1 h" // it soon says nothing: the article's delay grows beyond all bounds
		if s.Delay <= time.Hour {
			delay = fmt.Sprintf("%.2fs", s.Delay.Seconds())
		}
		fmt.Fprintf(w, "%7s %9d %9s %9d %6d %9d %7d %6d\n", at, s.InFlight, delay, s.Waiting, s.OK, s.TimedOut, s.Failed, s.Away)
	}
	y, err := lab.RunStorm(ctx, o)
	if err != nil {
		return err
	}
	recovered, back := recovery(y.Recovered, y.Unknown || y.Cut, fmt.Sprintf("%.0fs", y.Back.Seconds()), o.Watch)
	fmt.Fprintf(w, "client=%v clients=%d stop=%v watch=%v recovered=%s back=%s away=%d peak=%d cut=%t\n\n",
		o.Client, o.Clients, o.Stop, o.Watch, recovered, back, y.Away, y.Peak, y.Cut)
	if y.Cut {
		return context.Cause(ctx)
	}
	return nil
}
