package articles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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

// add adds the flags. Kinds are the default of -policy, watch is that of -watch, and least is how long a
// run must be watched so that it can be seen to recover.
func (o *stormFlags) add(f *cli.Flags, kinds string, watch, least time.Duration) {
	o.Watch = watch
	o.Options, _ = o.WithDefaults() // there is nothing wrong with the defaults
	o.Stop = 10 * time.Second
	f.Count(&o.Server.Limit, 1, "limit", "with how many requests at a time, and fewer, the server takes -delay for each")
	f.Number(&o.Server.Factor, 1, "factor", "a request takes this many times as long with each -every more requests at a time")
	f.Count(&o.Server.Every, 1, "every", "a request takes -factor times as long with each so many more requests at a time")
	f.Pause(&o.Server.Base, "delay", "how long the server takes for a request at least")
	f.Count(&o.Clients, 1, "clients", "how many clients")
	f.Pause(&o.Think, "lambda", "mean pause of a client after a success, which is exponential")
	f.Pause(&o.Timeout, "timeout", "how long a client waits for the answer to a request")
	var choices []policy.Choice
	policy.Flag(f, &choices, kinds, "how clients wait after a failure, one run after the other", storm.Kinds())
	f.Seconds(&o.Before, "before", "how long all runs well before the stop")
	f.Seconds(&o.Stop, "stop", "how long the server is stopped, as by SIGSTOP; a number without a unit is seconds")
	f.Pause(&o.Watch, "watch", fmt.Sprintf("how long the server is watched after it goes on, as by SIGCONT; at least %v", least))
	f.Check(func() error {
		o.kinds = pick.Each(choices, storm.Of)
		if o.Before == 0 {
			o.Before = -1
		}
		if o.Watch < least {
			return fmt.Errorf("-watch: it takes at least %v to see that a storm is over, not %v", least, o.Watch)
		}
		return nil
	})
}

// realStorm is "bench storm".
type realStorm struct {
	stormFlags
	serve, connect string // an address; at most one is given
	mine           bool
}

// handFlags are the flags that mean something to one half of a storm, which the user stops by hand.
var handFlags = map[string]string{
	"serve":   "serve limit factor every delay",
	"connect": "connect clients lambda timeout policy watch i-own-this-server",
}

func (o *realStorm) Flags(f *cli.Flags) {
	o.add(f, "simple", 45*time.Second, lab.LeastWatch)
	f.StringVar(&o.serve, "serve", "", "be only the server, at this `address`, such as 127.0.0.1:8070, until Ctrl-C: you stop it with Ctrl-Z, and let it go on with fg")
	f.StringVar(&o.connect, "connect", "", "be only the clients of the server at this `address`, for -watch, or until Ctrl-C")
	f.BoolVar(&o.mine, "i-own-this-server", false, "confirm that the server of -connect is yours; needed if it is another machine")
	f.Check(func() error {
		switch {
		case o.serve != "" && o.connect != "":
			return errors.New("want -serve or -connect, not both")
		case o.serve != "":
			return errors.Join(f.Only("serve", handFlags["serve"]), isAddress("serve", o.serve))
		case o.connect == "":
			if o.mine {
				return errors.New("-i-own-this-server means nothing without -connect")
			}
			return lab.CheckStorm(o.Options)
		case len(o.kinds) > 1:
			return errors.New("want one -policy with -connect")
		}
		if err := errors.Join(f.Only("connect", handFlags["connect"]), isAddress("connect", o.connect)); err != nil {
			return err
		}
		if !f.Given("watch") {
			o.Watch = 0
		}
		return lab.MayVisit(o.connect, "storm", o.mine)
	})
}

// isAddress returns an error if the value of a flag is not one.
func isAddress(flag, address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("-%s: want a host and a port, such as 127.0.0.1:8070, not %q", flag, address)
	}
	return nil
}

func (o *realStorm) Run(ctx context.Context, c *cli.Console) error {
	switch {
	case o.serve != "":
		return o.beServer(ctx, c)
	case o.connect != "":
		return o.beClients(ctx, c)
	}
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
		inFlight, delay, backlog := fmt.Sprint(s.InFlight), delayText(s.Delay), fmt.Sprint(s.Waiting)
		if s.Stopped {
			inFlight, delay, backlog = "stopped", "-", "-"
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

// delayText returns the delay of a server in seconds, or no number beyond an hour, because the article's delay grows
// without bounds.
func delayText(d time.Duration) string {
	if d > time.Hour {
		return "> 1 h"
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}
