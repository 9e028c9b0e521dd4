package articles

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/policy"
	"github.com/redial-go/redial/bench/internal/table"

	"github.com/redial-go/redial/bench/articles/ratelimit"
	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/chart"
)

// simulatedLimit is "bench sim -model ratelimit".
type simulatedLimit struct {
	ratelimit.Options
	rules []policy.Choice
	tells []ratelimit.Tell
	seeds int
	all   []limited
}

func (o *simulatedLimit) Flags(f *cli.Flags) {
	o.seeds, o.Clients, o.Watch, o.Limit = 3, 1000, time.Hour, ratelimit.Limit{Rate: 100, Window: time.Second, Burst: 1}
	f.Count(&o.Clients, 1, "n", "how many clients call; each has one call to make")
	f.Number(&o.Limit.Rate, 0, "rate", "calls per second that the API allows")
	f.Pause(&o.Limit.Window, "window", "length of the windows in which the API counts calls")
	bucket := f.Bool("bucket", false, "the API has a bucket of tokens instead of windows")
	f.Count(&o.Limit.Burst, 1, "burst", "with -bucket: tokens that the bucket holds")
	cli.SomeOf(f, &o.tells, "tell", "all", "what a 429 says: nothing, same, booked\nnothing: no Retry-After\nsame: when there is room again, which is the same for all\nbooked: a time of its own for each client", ratelimit.Tells(), ratelimit.Tell.String)
	cli.OneOf(f, &o.Heed, "heed", "longer", "what clients do with a Retry-After; redial always adds, as the library's retry.Loop does\nadd: wait for that long, and then by the policy\nlonger: wait for that long, or by the policy if that is longer\nnot: wait by the policy", ratelimit.Heeds(), ratelimit.Heed.String)
	policy.Flag(f, &o.rules, "redial,fixed,exponential,equal,full:base=1s,decorrelated", "the policies to compare", policy.Rules())
	f.Seconds(&o.Spread, "start", "the first calls come within this time; default: all at one instant")
	f.Pause(&o.Watch, "watch", "how long the API is watched")
	f.Count(&o.seeds, 1, "seeds", "runs of which each line is the mean")
	f.Seed(&o.Seed)
	f.Check(func() error {
		switch {
		case *bucket && f.Given("window"):
			return errors.New("want -bucket or -window, not both")
		case !*bucket && f.Given("burst"):
			return errors.New("-burst means nothing without -bucket")
		case *bucket:
			o.Limit.Window = -1
		}
		return o.Validate()
	})
}

// limited is what came of a policy: a run for each seed.
type limited struct {
	rule policy.Choice
	tell ratelimit.Tell
	runs []*ratelimit.Result
}

func (o *simulatedLimit) Run(ctx context.Context, c *cli.Console) error {
	return c.Each(ctx, "simulate", len(o.tells)*len(o.rules)*o.seeds, 1, func(i int) error {
		rule, tell, n := o.rules[i/o.seeds%len(o.rules)], o.tells[i/o.seeds/len(o.rules)], i%o.seeds
		one := o.Options
		one.Policy, one.Limit.Tell, one.Seed = rule.New(), tell, o.Seed+uint64(n)
		if rule.Name == "redial" {
			one.Heed = ratelimit.HeedAdd
		}
		y, err := ratelimit.Run(ctx, one)
		if err != nil {
			return err
		}
		if n == 0 {
			o.all = append(o.all, limited{rule: rule, tell: tell})
		}
		l := &o.all[len(o.all)-1]
		l.runs = append(l.runs, y)
		return nil
	})
}

// Table has a row for each policy and kind of answer.
func (o *simulatedLimit) Table() (table.Table, string) {
	ideal, _ := o.Limit.Ideal(o.Clients) // which Validate has checked
	t := table.Table{{"Retry-After", "policy", "half, s", "99 %, s", "all, s", "all/ideal", "calls per client", "in vain", "peak in 100 ms", "gave up"}}
	for _, l := range o.all {
		half, most, last := l.after(0.5), l.after(0.99), l.after(1)
		ratio := "-"
		if last != ratelimit.Never && ideal > 0 {
			ratio = fmt.Sprintf("%.2f", last.Seconds()/ideal.Seconds())
		}
		n := float64(o.Clients)
		t.Row(l.tell.String(), l.rule.String(), o.when(half), o.when(most), o.when(last), ratio,
			fmt.Sprintf("%.2f", l.mean(func(y *ratelimit.Result) int { return y.Calls })/n),
			fmt.Sprintf("%.2f", l.mean(func(y *ratelimit.Result) int { return y.Vain })/n),
			fmt.Sprintf("%.0f", l.mean((*ratelimit.Result).Peak)),
			fmt.Sprintf("%.0f", l.mean(func(y *ratelimit.Result) int { return y.GaveUp })))
	}
	return t, ""
}

func (o *simulatedLimit) when(d time.Duration) string {
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

// Chart has, for each kind of answer, the clients that have succeeded over time and the calls in vain
// until then.
func (o *simulatedLimit) Chart() *chart.Picture {
	limit := fmt.Sprintf("%g calls/s in windows of %v", o.Limit.Rate, o.Limit.Window)
	if o.Limit.Window < 0 {
		limit = fmt.Sprintf("%g calls/s from a bucket of %d", o.Limit.Rate, o.Limit.Burst)
	}
	pic := &chart.Picture{
		Name: "ratelimit", Columns: 2, Height: 190, Title: "Clients of an API that answers calls beyond its rate with 429",
		Note: fmt.Sprintf("%s clients with one call each, %s allowed; seed %d. Simulated", chart.Number(float64(o.Clients)), limit, o.Seed),
	}
	end, calls := 1.0, 1.0
	for _, l := range o.all {
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
		for i, l := range o.all {
			if l.tell != tell {
				continue
			}
			style := chart.Series(i%len(o.rules), l.rule.String())
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
		pic.Legend = append(pic.Legend, chart.Series(i, r.String()))
	}
	return pic
}

// succeeded is the share of the clients that have succeeded, in percent, over time.
func (o *simulatedLimit) succeeded(y *ratelimit.Result, from, until float64) (points []chart.Point) {
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
