package articles

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/articles/ratelimit"
	"github.com/redial-go/redial/bench/articles/waits"
	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/chart"
)

// limitOptions are the flags of "bench sim -model ratelimit".
type limitOptions struct {
	ratelimit.Options
	params   waits.Params
	rules    []waits.Rule
	tells    []ratelimit.Tell
	heed     ratelimit.Heed
	seeds    int
	csv, svg string
}

func simulateLimit(ctx context.Context, c *cli.Console, args []string) error {
	o, err := parseLimit(c, args)
	if err != nil {
		return err
	}
	for _, file := range []string{o.csv, o.svg} {
		if err := cli.CheckFile(file); err != nil {
			return err
		}
	}
	all, failed := o.run(ctx, c)
	t, err := o.table(all)
	if err != nil {
		return err
	}
	if o.csv != "-" && o.svg != "-" && len(all) > 0 {
		if err := t.Print(c.Out); err != nil {
			return err
		}
	}
	if err := cli.WriteFile(c, o.csv, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(t) }); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return cli.WriteFile(c, o.svg, o.picture(all).WriteSVG)
}

func parseLimit(c *cli.Console, args []string) (*limitOptions, error) {
	o := &limitOptions{seeds: 3}
	o.Clients, o.Watch, o.Limit = 1000, time.Hour, ratelimit.Limit{Rate: 100, Window: time.Second, Burst: 1}
	flags := cli.NewFlags()
	flags.Count(&o.Clients, 1, "n", "how many clients call; each has one call to make")
	flags.Number(&o.Limit.Rate, 0, "rate", "calls per second that the API allows")
	flags.Pause(&o.Limit.Window, "window", "length of the windows in which the API counts calls")
	bucket := flags.Bool("bucket", false, "the API has a bucket of tokens instead of windows")
	flags.Count(&o.Limit.Burst, 1, "burst", "with -bucket: tokens that the bucket holds")
	tells := flags.String("tell", "nothing,same,booked", "what a 429 says, several separated by commas\nnothing: no Retry-After\nsame: when there is room again, which is the same for all\nbooked: a time of its own for each client")
	heed := flags.String("heed", "longer", "what clients do with a Retry-After; redial always adds, as the library's Retrier does\nadd: wait for that long, and then by the policy\nlonger: wait for that long, or by the policy if that is longer\nnot: wait by the policy")
	names := flags.String("policy", "redial,fixed,exponential,equal,full,decorrelated", "the policies to compare, separated by commas\n"+ruleHelp(waits.Rules()))
	addParams(flags, &o.params)
	flags.Seconds(&o.Spread, "start", "the first calls come within this time; default: all at one instant")
	flags.Pause(&o.Watch, "watch", "how long the API is watched")
	flags.Count(&o.seeds, 1, "seeds", "runs of which each line is the mean")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the first run; the next runs count up")
	flags.StringVar(&o.csv, "csv", "", "write the table to this file as CSV; - is standard output")
	flags.StringVar(&o.svg, "svg", "", "draw the first runs to this file; - is standard output")
	if err := cli.Parse(c, flags, args); err != nil {
		return nil, err
	}
	if err := o.validate(flags, *names, *tells, *heed, *bucket); err != nil {
		return nil, cli.Usage(err)
	}
	return o, nil
}

func (o *limitOptions) validate(flags *cli.Flags, names, tells, heed string, bucket bool) (err error) {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case o.csv == "-" && o.svg == "-":
		return errors.New("-csv and -svg cannot both go to standard output")
	case bucket && given["window"]:
		return errors.New("want -bucket or -window, not both")
	case !bucket && given["burst"]:
		return errors.New("-burst means nothing without -bucket")
	case bucket:
		o.Limit.Window = -1
	}
	for name := range strings.SplitSeq(tells, ",") {
		t, err := ratelimit.ParseTell(strings.TrimSpace(name))
		if err != nil {
			return fmt.Errorf("-tell: %w", err)
		}
		o.tells = append(o.tells, t)
	}
	if o.heed, err = ratelimit.ParseHeed(heed); err != nil {
		return fmt.Errorf("-heed: %w", err)
	}
	if o.rules, err = chooseRules("policy", waits.Rules(), names, o.params); err != nil {
		return err
	}
	return o.Validate()
}

// limited is what came of a policy: a run for each seed.
type limited struct {
	rule waits.Rule
	tell ratelimit.Tell
	runs []*ratelimit.Result
}

// run runs each policy with each kind of answer. With an error it returns what was done
// before.
func (o *limitOptions) run(ctx context.Context, c *cli.Console) (all []limited, err error) {
	p := cli.NewProgress(c, "simulate", len(o.rules)*len(o.tells)*o.seeds)
	defer p.End()
	for _, tell := range o.tells {
		for _, rule := range o.rules {
			l := limited{rule: rule, tell: tell}
			for n := range o.seeds {
				one := o.Options
				one.Policy, one.Limit.Tell, one.Seed = rule.New(o.params), tell, o.Seed+uint64(n)
				if one.Heed = o.heed; rule.Name == "redial" {
					one.Heed = ratelimit.HeedAdd
				}
				y, err := ratelimit.Run(ctx, one)
				if err != nil {
					return all, err
				}
				l.runs = append(l.runs, y)
				p.Add(1)
			}
			all = append(all, l)
		}
	}
	return all, nil
}

// table has a row for each policy and kind of answer.
func (o *limitOptions) table(all []limited) (cli.Table, error) {
	ideal, err := o.Limit.Ideal(o.Clients)
	if err != nil {
		return nil, err
	}
	t := cli.Table{{"Retry-After", "policy", "half, s", "99 %, s", "all, s", "all/ideal", "calls per client", "in vain", "peak in 100 ms", "gave up"}}
	for _, l := range all {
		half, most, last := l.after(0.5), l.after(0.99), l.after(1)
		ratio := "-"
		if last != ratelimit.Never && ideal > 0 {
			ratio = fmt.Sprintf("%.2f", last.Seconds()/ideal.Seconds())
		}
		n := float64(o.Clients)
		t.Row(l.tell.String(), l.rule.Name, o.when(half), o.when(most), o.when(last), ratio,
			fmt.Sprintf("%.2f", l.mean(func(y *ratelimit.Result) int { return y.Calls })/n),
			fmt.Sprintf("%.2f", l.mean(func(y *ratelimit.Result) int { return y.Vain })/n),
			fmt.Sprintf("%.0f", l.mean((*ratelimit.Result).Peak)),
			fmt.Sprintf("%.0f", l.mean(func(y *ratelimit.Result) int { return y.GaveUp })))
	}
	return t, nil
}

func (o *limitOptions) when(d time.Duration) string {
	if d == ratelimit.Never {
		return fleet.NotWithin(o.Watch)
	}
	return fmt.Sprintf("%.1f", d.Seconds())
}

// after is the mean over the runs, or Never if one of them had not got so far.
func (l *limited) after(share float64) (mean time.Duration) {
	for _, y := range l.runs {
		d := y.After(share)
		if d == ratelimit.Never {
			return d
		}
		mean += d / time.Duration(len(l.runs))
	}
	return mean
}

func (l *limited) mean(of func(*ratelimit.Result) int) (mean float64) {
	for _, y := range l.runs {
		mean += float64(of(y)) / float64(len(l.runs))
	}
	return mean
}

// picture has, for each kind of answer, the clients that have succeeded over time and the calls in vain
// until then.
func (o *limitOptions) picture(all []limited) *chart.Picture {
	limit := fmt.Sprintf("%g calls/s in windows of %v", o.Limit.Rate, o.Limit.Window)
	if o.Limit.Window < 0 {
		limit = fmt.Sprintf("%g calls/s from a bucket of %d", o.Limit.Rate, o.Limit.Burst)
	}
	pic := &chart.Picture{
		Name: "ratelimit", Columns: 2, Height: 190, Title: "Clients of an API that answers calls beyond its rate with 429",
		Note: fmt.Sprintf("%s clients with one call each, %s allowed; seed %d. Simulated", chart.Number(float64(o.Clients)), limit, o.Seed),
	}
	end, calls := 1.0, 1.0
	for _, l := range all {
		y := l.runs[0]
		end = max(end, float64(len(y.Bins))*ratelimit.Bin.Seconds())
		calls = max(calls, float64(slices.Max(perSecond(y.Bins))))
	}
	const first = 0.5 // of the logarithmic axis, in seconds
	headings := map[ratelimit.Tell]string{
		ratelimit.TellNothing: "No Retry-After", ratelimit.TellSame: "Retry-After, the same for all", ratelimit.TellBooked: "Retry-After, booked for each",
	}
	for _, tell := range o.tells {
		x := chart.Axis{Min: first, Max: chart.RoundUp(end), Log: true, Label: "time, s, log scale"}
		done := &chart.Panel{Title: headings[tell], X: x, Y: chart.Axis{Max: 100, Label: "% succeeded"}}
		busy := &chart.Panel{Title: "Calls", X: x, Y: chart.Axis{Min: 0.8, Max: chart.RoundUp(calls), Log: true, Label: "calls in each second, log scale"}}
		for i, l := range all {
			if l.tell != tell {
				continue
			}
			style := chart.Series(i%len(o.rules), l.rule.Name)
			done.Layers = append(done.Layers, chart.Line{Style: style, Points: o.succeeded(l.runs[0], first, x.Max)})
			line := chart.Line{Style: style}
			for second, n := range perSecond(l.runs[0].Bins) {
				line.Points = append(line.Points, chart.Point{X: float64(second) + 0.5, Y: math.Max(float64(n), 0.8)})
			}
			busy.Layers = append(busy.Layers, line)
		}
		pic.Panels = append(pic.Panels, done, busy)
	}
	for i, r := range o.rules {
		pic.Legend = append(pic.Legend, chart.Series(i, r.Name))
	}
	return pic
}

// succeeded is the share of the clients that have succeeded, in percent, over time.
func (o *limitOptions) succeeded(y *ratelimit.Result, from, until float64) (points []chart.Point) {
	n := 0
	for _, at := range logarithmic(from, until) {
		for n < len(y.Done) && y.Done[n].Seconds() <= at {
			n++
		}
		points = append(points, chart.Point{X: at, Y: 100 * float64(n) / float64(o.Clients)})
	}
	return points
}

// perSecond sums up the bins of each second.
func perSecond(bins []int) []int {
	const each = int(time.Second / ratelimit.Bin)
	all := make([]int, len(bins)/each+1)
	for i, n := range bins {
		all[i/each] += n
	}
	return all
}
