package articles

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/bench/articles/storm"
	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/bench/internal/cli"
)

// beServer is "bench storm -serve". It prints a line per second, as the article's server does.
func (o *realStorm) beServer(ctx context.Context, c *cli.Console) error {
	err := lab.ServeStorm(ctx, o.serve, o.Server, func(address string) {
		fmt.Fprintf(c.Errs, "storm: the server listens at %s. In another terminal: bench storm -connect %s -policy simple\n"+
			"storm: Ctrl-Z stops it, \"fg\" lets it go on, and Ctrl-C ends it\n", address, address)
		fmt.Fprintf(c.Out, "%7s %9s %9s %8s %9s\n", "t", "in flight", "delay", "arrived", "answered")
	}, func(s lab.ServedSecond) {
		if s.Halted > 0 {
			fmt.Fprintf(c.Out, "%6.1fs goes on after a stop of %.1fs\n", s.At.Seconds(), s.Halted.Seconds())
		}
		fmt.Fprintf(c.Out, "%6.1fs %9d %9s %8d %9d\n", s.At.Seconds(), s.InFlight, delayText(s.Delay), s.Arrived, s.Answered)
	})
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}

// beClients is "bench storm -connect". It prints a line per second, and what it comes to in the end.
func (o *realStorm) beClients(ctx context.Context, c *cli.Console) error {
	o.Client = o.kinds[0]
	var sum lab.StormSecond
	y, err := lab.ConnectStorm(ctx, o.connect, o.Options, func() {
		fmt.Fprintf(c.Errs, "storm: %s that think for %v on average: while all is well, about %.0f requests per second succeed\n"+
			"storm: wait for that, stop the server for some seconds, and see whether the clients recover; Ctrl-C ends them\n",
			cli.Plural(o.Clients, "client"), o.Think, float64(o.Clients)/(o.Think+o.Server.Base).Seconds())
		fmt.Fprintf(c.Out, "%7s %6s %9s %7s %6s\n", "t", "OK", "timed out", "failed", "away")
	}, func(s lab.StormSecond) {
		sum.At, sum.OK, sum.TimedOut, sum.Failed = s.At, sum.OK+s.OK, sum.TimedOut+s.TimedOut, sum.Failed+s.Failed
		fmt.Fprintf(c.Out, "%6.1fs %6d %9d %7d %6d\n", s.At.Seconds(), s.OK, s.TimedOut, s.Failed, s.Away)
	})
	switch {
	case errors.Is(err, lab.ErrNoStorm):
		return fmt.Errorf("%w; \"bench storm -serve %s\" is one", err, o.connect)
	case err != nil:
		return err
	}
	well, _ := recovery(y.Recovered, y.Unknown, "", storm.LeastWatch)
	fmt.Fprintf(c.Out, "client=%v clients=%d time=%v ok=%d timed_out=%d failed=%d away=%d well=%s\n",
		o.Client, o.Clients, sum.At.Truncate(time.Second), sum.OK, sum.TimedOut, sum.Failed, y.Away, well)
	if y.Cut {
		return context.Cause(ctx)
	}
	return nil
}
