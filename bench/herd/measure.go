package herd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lab"
)

// realHerd is "bench herd".
type realHerd struct {
	lab.Herd
	clients     []fleet.Client
	rounds      int
	queue, mine bool
	simulate    bool
	results     []*lab.Result
}

const herdHelp = `Connects -n clients, kills the server (a process of its own on loopback, SIGKILL) and
starts it again at the same address after -outage; then it admits -capacity handshakes
per second. With -scene the server does worse. Shows medians over the rounds, policy by policy: times from the server's return.
With -url the server is one of yours, which you restart when the program asks for it.
`

func (o *realHerd) Flags(f *cli.Flags) {
	f.About = herdHelp
	f.IntVar(&o.N, "n", 2000, "how many connections")
	f.Float64Var(&o.Capacity, "capacity", 500, "handshakes that the server admits per second")
	o.Outage = 5 * time.Second
	f.Seconds(&o.Outage, "outage", "from the server's death to its return")
	cli.OneOf(f, &o.Scene, "scene", "restart", `what happens to the server
restart: it is away for -outage
hang: for -outage another process at its address accepts and never answers
flap: -flaps times it is away for -outage and then up for as long
rolling: -servers servers, restarted -every after the one before, each away for -outage
half: -servers servers, restarted at once; half of them accept and never answer`, lab.Scenes(), lab.Scene.String)
	f.IntVar(&o.Flaps, "flaps", 0, "how often the server dies in -scene flap (default 5)")
	f.IntVar(&o.Servers, "servers", 0, "how many there are in -scene rolling and half, each with -capacity (default 4)")
	f.Seconds(&o.Every, "every", "from one server's death to the next one's in -scene rolling (default 10s)")
	f.BoolVar(&o.Known, "known", false, "clients know the addresses of all servers; else each dial meets one at random, as behind a balancer")
	f.BoolVar(&o.simulate, "simulate", false, "simulate the same herd instead of measuring it; each round has another seed")
	f.Seconds(&o.Watch, "watch", "how long to watch: from the server's return (default 90s); with -url from the loss (default: until Ctrl-C)")
	chooseClients(f, &o.clients, "", "how the clients wait; default redial,full,grpc,fixed, and with -url redial")
	f.IntVar(&o.rounds, "rounds", 1, "runs of each policy; the policies take turns")
	f.BoolVar(&o.queue, "queue", false, "connections beyond the capacity wait in the kernel's backlog (the default)")
	f.BoolVar(&o.Reject, "reject", false, "connections beyond the capacity are reset")
	f.Seconds(&o.Backlog, "backlog", "work that may wait in the backlog (default: 4096 connections)")
	f.StringVar(&o.URL, "url", "", "use a server of yours at this ws or wss `address`, which you restart yourself")
	f.BoolVar(&o.mine, "i-own-this-server", false, "confirm that the server of -url is yours; needed if it is another machine")
	f.File("csv", "write a line per run", func(w io.Writer) error { return lab.Runs(o.results).WriteCSV(w) })
	f.File("series", "write each 100 ms of each run", func(w io.Writer) error { return lab.Series(o.results).WriteCSV(w) })
	f.Check(o.choose)
}

func (o *realHerd) choose() error {
	switch {
	case o.rounds < 1:
		return fmt.Errorf("want at least one of -rounds, not %d", o.rounds)
	case o.queue && o.Reject:
		return errors.New("want -queue or -reject, not both")
	case o.simulate && (o.URL != "" || o.Known):
		return errors.New("-simulate knows neither -url nor -known")
	case o.URL == "" && o.mine:
		return errors.New("-i-own-this-server needs -url")
	}
	if o.URL != "" {
		if err := mayVisit(o.URL, o.mine); err != nil {
			return err
		}
	}
	if len(o.clients) == 0 {
		usual := "redial,full,grpc,fixed"
		if o.URL != "" {
			usual = "redial"
		}
		o.clients, _ = fleet.Parse("policy", usual) // there is nothing wrong with these
	}
	if err := o.Validate(); err != nil || o.simulate {
		return err
	}
	return o.CheckFiles()
}

// mayVisit returns an error that names what is wrong with a URL. No part of it but the host is in the
// error.
func mayVisit(raw string, mine bool) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "ws" && u.Scheme != "wss"):
		return errors.New("-url must be the address of a WebSocket, such as ws://localhost:8080/feed")
	}
	return lab.MayVisit(u.Host, "herd", mine)
}

// Run runs all policies in turns.
func (o *realHerd) Run(ctx context.Context, c *cli.Console) error {
	o.announce(c.Errs)
	defer func() { o.results = inOrder(o.results, o.clients) }()
	for round := range o.rounds {
		for i := range o.clients {
			h := o.Herd
			h.Client = o.clients[(i+round)%len(o.clients)]
			r, err := o.one(ctx, c, h, round+1)
			if r != nil {
				o.results = append(o.results, r)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// inOrder sorts by client, as they were named, and then by round.
func inOrder(results []*lab.Result, clients []fleet.Client) []*lab.Result {
	place := func(r *lab.Result) int {
		return slices.IndexFunc(clients, func(c fleet.Client) bool { return c.Name == r.Client })
	}
	slices.SortStableFunc(results, func(a, b *lab.Result) int { return place(a) - place(b) })
	return results
}

// one is one run. It prints what happens where that takes long or the user has to act.
func (o *realHerd) one(ctx context.Context, c *cli.Console, h lab.Herd, round int) (*lab.Result, error) {
	name := fmt.Sprintf("%s %d/%d", h.Client.Name, round, o.rounds)
	var p *cli.Progress
	if h.Scene == lab.Flap || h.Scene == lab.Rolling { // where clients are back several times
		p = cli.NewProgress(c, name+": done", 1)
	} else {
		p = cli.NewProgress(c, name+": back", h.N)
		h.Trace.Returned = func() { p.Add(1) }
	}
	defer p.End()
	h.Trace.Back = func(string) { p.Add(0) }
	if h.URL != "" {
		h.Trace.Connected = func() {
			fmt.Fprintf(c.Errs, "%s: %d connections are up. Restart your server now; Ctrl-C ends it.\n", name, h.N)
		}
		h.Trace.Lost = func() { fmt.Fprintf(c.Errs, "%s: the first connection was lost\n", name) }
	}
	run := lab.Run
	if o.simulate {
		run = func(ctx context.Context, h lab.Herd) (*lab.Result, error) {
			return lab.Simulate(ctx, h, uint64(round))
		}
	}
	r, err := run(ctx, h)
	if err != nil {
		return nil, err
	}
	r.Round = round
	if r.Cut {
		return r, context.Cause(ctx)
	}
	return r, nil
}

// announce prints what is going to happen, and how long it may take.
func (o *realHerd) announce(w io.Writer) {
	runs := len(o.clients) * o.rounds
	if o.URL != "" {
		fmt.Fprintf(w, "herd: %d connections to your server, %s\n", o.N, cli.Plural(runs, "run"))
		return
	}
	beyond := "wait in the kernel's backlog"
	if o.Reject {
		beyond = "are reset"
	}
	watch := cmp.Or(o.Watch, 90*time.Second)
	if o.simulate || o.Scene != lab.Restart {
		h := o.Herd.Simulated()
		fmt.Fprintf(w, "herd: %d connections, scene %v, %v handshakes/s; %s of at most %v\n", o.N, o.Scene, o.Capacity, cli.Plural(runs, "run"), h.Watch)
		return
	}
	ideal := time.Duration(float64(o.N) / o.Capacity * float64(time.Second))
	fmt.Fprintf(w, "herd: %d connections, outage %v, then %v handshakes/s and the others %s; %s of at least %v and at most %v\n",
		o.N, o.Outage, o.Capacity, beyond, cli.Plural(runs, "run"), (o.Outage + min(ideal, watch)).Round(100*time.Millisecond), o.Outage+watch)
}
