package articles

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/herd/lab"
)

// realStorm is "bench storm".
type realStorm struct {
	stormFlags
	storm lab.Storm
}

func (o *realStorm) Flags(f *cli.Flags) {
	o.add(f, "fixed", 45*time.Second)
	f.Check(func() error {
		o.storm = lab.Storm{
			Server: o.server, Clients: o.clients, Think: o.think, Timeout: o.timeout,
			Before: o.before, Stop: o.stop, Watch: o.watch,
		}
		return o.storm.Validate()
	})
}

func (o *realStorm) Run(ctx context.Context, c *cli.Console) error {
	s := o.storm
	fmt.Fprintf(c.Errs, "storm: %d clients, %s of %v: %v before, %v stopped, then watched for up to %v\n",
		s.Clients, cli.Plural(len(o.kinds), "run"), s.Before+s.Stop+s.Watch, s.Before, s.Stop, s.Watch)
	for _, s.Client = range o.kinds {
		if err := runStorm(ctx, c.Out, s); err != nil {
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
