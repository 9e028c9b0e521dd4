package articles

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/redial-go/redial/bench/articles/storm"
	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/bench/internal/policy"
)

// stormFlags are the flags that a storm has in both worlds, simulated and on real sockets:
// those of its article's server and client, and of the stop.
type stormFlags struct {
	storm.Options
	kinds []storm.Client
}

// add adds the flags. Kinds are the default of -policy, and watch that of -watch.
func (o *stormFlags) add(f *cli.Flags, kinds string, watch time.Duration) {
	o.Watch = watch
	o.Options, _ = o.WithDefaults() // there is nothing wrong with the defaults
	o.Stop = 10 * time.Second
	f.Count(&o.Server.Limit, 1, "limit", "with how many requests at a time, and fewer, the server takes -delay for each")
	f.Number(&o.Server.Factor, 1, "factor", "how many times longer a request takes with every 15 more of them")
	f.Pause(&o.Server.Base, "delay", "how long the server takes for a request at least")
	f.Count(&o.Clients, 1, "clients", "how many clients")
	f.Pause(&o.Think, "lambda", "mean pause of a client after a success, which is exponential")
	f.Pause(&o.Timeout, "timeout", "how long a client waits for the answer to a request")
	var choices []policy.Choice
	policy.Flag(f, &choices, kinds, "how clients wait after a failure, one run after the other", storm.Kinds())
	f.Seconds(&o.Before, "before", "how long all runs well before the stop")
	f.Seconds(&o.Stop, "stop", "how long the server is stopped, as by SIGSTOP; a number without a unit is seconds")
	f.Pause(&o.Watch, "watch", "how long the server is watched after it goes on, as by SIGCONT; if that is not long enough to say so, recovered=unknown")
	f.Check(func() error {
		o.kinds = pick.Each(choices, storm.Of)
		if o.Before == 0 {
			o.Before = -1
		}
		return nil
	})
}

// realStorm is "bench storm".
type realStorm struct{ stormFlags }

func (o *realStorm) Flags(f *cli.Flags) {
	o.add(f, "simple", 45*time.Second)
	f.Check(func() error { return lab.CheckStorm(o.Options) })
}

func (o *realStorm) Run(ctx context.Context, c *cli.Console) error {
	before := max(o.Before, 0)
	fmt.Fprintf(c.Errs, "storm: %d clients, %s of %v: %v before, %v stopped, then watched for up to %v\n",
		o.Clients, cli.Plural(len(o.kinds), "run"), before+o.Stop+o.Watch, before, o.Stop, o.Watch)
	for _, o.Client = range o.kinds {
		if err := runStorm(ctx, c.Out, o.Options); err != nil {
			return err
		}
	}
	return nil
}

// runStorm prints a line per second, and what came of it.
func runStorm(ctx context.Context, w io.Writer, o storm.Options) error {
	fmt.Fprintf(w, "%7s %9s %9s %9s %6s %9s %7s %6s\n", "t", "in flight", "delay", "backlog", "OK", "timed out", "failed", "away")
	y, err := lab.RunStorm(ctx, o, func(s lab.StormSecond) {
		inFlight, delay, backlog := fmt.Sprint(s.InFlight), fmt.Sprintf("%.2fs", s.Delay.Seconds()), fmt.Sprint(s.Waiting)
		switch {
		case s.Stopped:
			inFlight, delay, backlog = "stopped", "-", "-"
		case s.Delay > time.Hour: // it soon says nothing: the article's delay grows beyond all bounds
			delay = "> 1 h"
		}
		fmt.Fprintf(w, "%6.1fs %9s %9s %9s %6d %9d %7d %6d\n", s.At.Seconds(), inFlight, delay, backlog, s.OK, s.TimedOut, s.Failed, s.Away)
	})
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
