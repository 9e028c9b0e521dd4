package articles

import (
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/articles/storm"
	"github.com/redial-go/redial/bench/articles/waits"
)

// stormFlags are the flags that a storm has in both worlds, simulated and on real sockets:
// those of its article's server and client, and of the stop.
type stormFlags struct {
	server                       storm.Server
	clients                      int
	think, timeout, before, stop time.Duration
	watch                        time.Duration
	kinds                        []storm.Client
}

// add adds the flags. Kinds are the default of -client, and watch that of -watch.
func (s *stormFlags) add(flags *cli.Flags, kinds string, watch time.Duration) {
	*s = stormFlags{
		server:  storm.Server{Limit: 30, Factor: 1.05, Base: 100 * time.Millisecond},
		clients: 1000, think: 10 * time.Second, timeout: 2 * time.Second,
		before: storm.WarmUp, stop: 10 * time.Second, watch: watch,
	}
	flags.Count(&s.server.Limit, 1, "limit", "with how many requests at a time, and fewer, the server takes -delay for each")
	flags.Number(&s.server.Factor, 1, "factor", "how many times longer a request takes with every 15 more of them")
	flags.Pause(&s.server.Base, "delay", "how long the server takes for a request at least")
	flags.Count(&s.clients, 1, "clients", "how many clients")
	flags.Pause(&s.think, "lambda", "mean pause of a client after a success, which is exponential")
	flags.Pause(&s.timeout, "timeout", "how long a client waits for the answer to a request")
	params := new(waits.Params)
	names := flags.String("client", kinds, "how clients wait after a failure: kinds, one run after the other, separated by commas\n"+ruleHelp(storm.Kinds()))
	addParams(flags, params)
	flags.Seconds(&s.before, "before", "how long all runs well before the stop")
	flags.Seconds(&s.stop, "stop", "how long the server is stopped, as by SIGSTOP; a number without a unit is seconds")
	flags.Pause(&s.watch, "watch", "how long the server is watched after it goes on, as by SIGCONT; if that is not long enough to say so, recovered=unknown")
	flags.Check(func() error {
		rules, err := chooseRules("client", storm.Kinds(), *names, *params)
		for _, r := range rules {
			s.kinds = append(s.kinds, storm.Of(r, *params))
		}
		return err
	})
}
