package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redial-go/redial/bench/fleet"
	"github.com/redial-go/redial/bench/realherd"
)

func init() {
	if realherd.IsServer() { // of a herd or a storm, in a process of its own: it never gets as far as main
		os.Exit(realherd.ServerMain())
	}
	register(command{"herd", "kill the server of a real herd on real sockets, and measure how the herd comes back", measureHerd})
}

// herdOptions are the flags of "bench herd".
type herdOptions struct {
	realherd.Herd
	clients     []fleet.Client
	rounds      int
	queue, mine bool
	csv, series string
}

const herdHelp = `Connects -n clients, kills the server (a process of its own on loopback, SIGKILL) and
starts it again at the same address after -outage; then it admits -capacity handshakes
per second. Shows medians over the rounds, policy by policy: times from the server's return.

With -url the server is one of yours, which you restart when the program asks for it.
The policies: `

func measureHerd(ctx context.Context, c *console, args []string) error {
	o, err := parseHerd(c, args)
	if err != nil {
		return err
	}
	results, err := o.run(ctx, c)
	if len(results) > 0 {
		if err := o.print(c, results); err != nil {
			return err
		}
	}
	return err
}

func parseHerd(c *console, args []string) (*herdOptions, error) {
	o := &herdOptions{}
	flags := flag.NewFlagSet("herd", flag.ContinueOnError)
	flags.IntVar(&o.N, "n", 2000, "how many connections")
	flags.Float64Var(&o.Capacity, "capacity", 500, "handshakes that the server admits per second")
	o.Outage = 5 * time.Second
	flags.Var(seconds{&o.Outage}, "outage", "from the server's death to its return")
	flags.Var(seconds{&o.Watch}, "watch", "how long to watch: from the server's return (default 90s); with -url from the loss (default: until Ctrl-C)")
	policies := flags.String("policy", "", herdHelp+strings.Join(realherd.Clients(), ", ")+"\n(default redial,full,grpc,fixed; with -url redial)")
	flags.IntVar(&o.rounds, "rounds", 1, "runs of each policy; the policies take turns")
	flags.BoolVar(&o.queue, "queue", false, "connections beyond the capacity wait in the kernel's backlog (the default)")
	flags.BoolVar(&o.Reject, "reject", false, "connections beyond the capacity are reset")
	flags.StringVar(&o.URL, "url", "", "use a server of yours at this ws or wss `address`, which you restart yourself")
	flags.BoolVar(&o.mine, "i-own-this-server", false, "confirm that the server of -url is yours; needed if it is another machine")
	flags.StringVar(&o.csv, "csv", "", "write a line per run to this file; - is standard output")
	flags.StringVar(&o.series, "series", "", "write each 100 ms of each run to this file; - is standard output")
	if err := parse(c, flags, args); err != nil {
		return nil, err
	}
	if err := o.validate(*policies); err != nil {
		return nil, usageError{err}
	}
	for _, path := range []string{o.csv, o.series} {
		if err := checkFile(path); err != nil {
			return nil, usageError{err}
		}
	}
	return o, nil
}

func (o *herdOptions) validate(policies string) error {
	switch {
	case o.rounds < 1:
		return fmt.Errorf("want at least one of -rounds, not %d", o.rounds)
	case o.queue && o.Reject:
		return errors.New("want -queue or -reject, not both")
	case o.csv == "-" && o.series == "-":
		return errors.New("-csv and -series cannot both go to standard output")
	case o.URL == "" && o.mine:
		return errors.New("-i-own-this-server needs -url")
	}
	if o.URL != "" {
		if err := mayVisit(o.URL, o.mine); err != nil {
			return err
		}
	}
	if policies == "" {
		policies = "redial,full,grpc,fixed"
		if o.URL != "" {
			policies = "redial"
		}
	}
	for name := range strings.SplitSeq(policies, ",") {
		client, err := realherd.FindClient(strings.TrimSpace(name))
		if err != nil {
			return err
		}
		o.clients = append(o.clients, client)
	}
	return o.Validate()
}

// mayVisit says what is wrong with a URL. No part of it but the host is in the
// error.
func mayVisit(raw string, mine bool) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "ws" && u.Scheme != "wss"):
		return errors.New("-url must be the address of a WebSocket, such as ws://localhost:8080/feed")
	case mine || u.Hostname() == "localhost":
		return nil
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s is not this machine, and a herd can harm a server: add -i-own-this-server if it is yours", u.Host)
}

// run runs all policies in turns. Its error leaves what was measured before.
func (o *herdOptions) run(ctx context.Context, c *console) ([]*realherd.Result, error) {
	o.announce(c.errs)
	var results []*realherd.Result
	for round := range o.rounds {
		for i := range o.clients {
			h := o.Herd
			h.Client = o.clients[(i+round)%len(o.clients)]
			r, err := o.one(ctx, c, h, round+1)
			if r != nil {
				results = append(results, r)
			}
			if err != nil {
				return inOrder(results, o.clients), err
			}
		}
	}
	return inOrder(results, o.clients), nil
}

// inOrder sorts by client, as they were named, and then by round.
func inOrder(results []*realherd.Result, clients []fleet.Client) []*realherd.Result {
	place := func(r *realherd.Result) int {
		return slices.IndexFunc(clients, func(c fleet.Client) bool { return c.Name == r.Client })
	}
	slices.SortStableFunc(results, func(a, b *realherd.Result) int { return place(a) - place(b) })
	return results
}

// one is one run. It says what happens where that takes long or is the user's turn.
func (o *herdOptions) one(ctx context.Context, c *console, h realherd.Herd, round int) (*realherd.Result, error) {
	name := fmt.Sprintf("%s %d/%d", h.Client.Name, round, o.rounds)
	p := newProgress(c, name+": back", h.N)
	defer p.end()
	h.Trace.Back = func(string) { p.add(0) }
	h.Trace.Returned = func() { p.add(1) }
	if h.URL != "" {
		h.Trace.Connected = func() {
			fmt.Fprintf(c.errs, "%s: %d connections are up. Restart your server now; Ctrl-C ends it.\n", name, h.N)
		}
		h.Trace.Lost = func() { fmt.Fprintf(c.errs, "%s: the first connection was lost\n", name) }
	}
	r, err := realherd.Run(ctx, h)
	if err != nil {
		return nil, err
	}
	r.Round = round
	if r.Cut {
		return r, context.Cause(ctx)
	}
	return r, nil
}

// announce says what is going to happen, and how long it may take.
func (o *herdOptions) announce(w io.Writer) {
	runs := len(o.clients) * o.rounds
	if o.URL != "" {
		fmt.Fprintf(w, "herd: %d connections to your server, %s\n", o.N, plural(runs, "run"))
		return
	}
	beyond := "wait in the kernel's backlog"
	if o.Reject {
		beyond = "are reset"
	}
	watch := o.Watch
	if watch == 0 {
		watch = 90 * time.Second
	}
	ideal := time.Duration(float64(o.N) / o.Capacity * float64(time.Second))
	fmt.Fprintf(w, "herd: %d connections, outage %v, then %v handshakes/s and the others %s; %s of at least %v and at most %v\n",
		o.N, o.Outage, o.Capacity, beyond, plural(runs, "run"), (o.Outage + min(ideal, watch)).Round(100*time.Millisecond), o.Outage+watch)
}

// print writes the table, where no file goes, and then the files.
func (o *herdOptions) print(c *console, results []*realherd.Result) error {
	table := c.out
	if o.csv == "-" || o.series == "-" {
		table = c.errs
	}
	if err := o.table(table, realherd.Summarise(results), results[0].Backlog); err != nil {
		return err
	}
	o.remarks(table, results)
	runs := func(w io.Writer) error { return realherd.WriteRuns(w, results) }
	series := func(w io.Writer) error { return realherd.WriteSeries(w, results) }
	return errors.Join(writeFile(c, o.csv, runs), writeFile(c, o.series, series))
}

// table prints a line per policy.
func (o *herdOptions) table(w io.Writer, all []realherd.Summary, backlog int) error {
	if len(all) == 0 {
		return nil
	}
	if backlog > 0 {
		fmt.Fprintf(w, "backlog of the server: %d connections (net.core.somaxconn)\n", backlog)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "t50\tt99\tt100\tt99/ideal\tpeak dials\tarrivals\tdials\trefused\ttimed out\twasted\trecovered\tdown at end\t  policy")
	fmt.Fprintln(t, "\t\t\t\tper 100 ms\tper 100 ms\tper client\tper client\tper client\tper client\t\t\t")
	for _, s := range all {
		ratio := "-"
		switch r := s.Ratio(); {
		case math.IsInf(r, 1):
			ratio = fleet.NotWithin(s.Watched)
		case !math.IsNaN(r):
			ratio = fmt.Sprintf("%.2f", r)
		}
		arrivals, wasted := fmt.Sprintf("%.0f", s.PeakIn), fmt.Sprintf("%.2f", s.Wasted)
		if o.URL != "" { // what that server sees is unknown
			arrivals, wasted = "-", "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.0f\t%s\t%.2f\t%.2f\t%.2f\t%s\t%d of %d\t%.0f\t  %s\n",
			moment(s.T50, s.Watched), moment(s.T99, s.Watched), moment(s.T100, s.Watched), ratio, s.Peak, arrivals, s.Dials, s.Refused, s.TimedOut, wasted,
			s.Recovered, s.Runs, s.Down, s.Client)
	}
	return t.Flush()
}

// remarks prints what the table does not show: runs that were cut, and what was no
// measurement.
func (o *herdOptions) remarks(w io.Writer, results []*realherd.Result) {
	local := 0
	for _, r := range results {
		local += r.Local
		if r.Cut {
			fmt.Fprintf(w, "%s, cut after %v: %d of %d up, t50 %s, t99 %s, %.2f dials per client\n",
				r.Client, r.Watched.Round(100*time.Millisecond), r.Up, r.N, reached(r.T50), reached(r.T99), r.Dials)
		}
		if o.URL != "" {
			fmt.Fprintf(w, "%s: times count from when the first was back, %.2f s after the first loss\n", r.Client, r.Outage.Seconds())
		}
	}
	if local > 0 {
		fmt.Fprintf(w, "NO MEASUREMENT: for %d dials this machine had no socket or port\n", local)
	}
}

// moment returns a time of runs, which were watched for so long, as text.
func moment(d, watched time.Duration) string {
	if d == fleet.Never {
		return fleet.NotWithin(watched)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// reached returns a time of a run that was cut, as text.
func reached(d time.Duration) string {
	if d == fleet.Never {
		return "not reached"
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
