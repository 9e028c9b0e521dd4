package articles

import (
	"context"
	"fmt"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/policy"
	"github.com/redial-go/redial/bench/internal/table"

	"github.com/redial-go/redial/bench/articles/waits"
	"github.com/redial-go/redial/bench/internal/chart"
)

// drawnWaits is "bench waits".
type drawnWaits struct {
	waits.Options
	mode    string
	rules   []policy.Choice
	outages []waits.Outage
	users   int
	jitter  float64
	drawn   []drawn // with -mode policy
	rows    table.Table
	chart   *chart.Picture
}

// The modes of "bench waits", beside that for any policy.
const (
	modePolicy   = "policy"
	modeUsers    = "users"
	modeEthernet = "ethernet"
	modeNormal   = "normal"
)

const waitsModes = `what to draw
policy: what the policies of -policy wait in the outages of -outage
users: the waits of -users users side by side, from 1 s to 30 s within -jitter
ethernet: E(c) = (2^c - 1)/2, the mean wait of Ethernet's backoff after c collisions
normal: two settings of backoff with normal noise: 100 ms, 2.7, 10 min and 1 s, 1.5, 5 min`

// modeFlags are the flags that mean something in a mode. In that of policies all but one do.
var modeFlags = map[string]string{
	modeUsers:    "mode users jitter retries seed",
	modeEthernet: "mode seeds seed",
	modeNormal:   "mode retries seeds seed",
}

// ageOfWaits are the times since the loss at which the waits are printed.
var ageOfWaits = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
}

func (o *drawnWaits) Flags(f *cli.Flags) {
	o.Options, o.users = waits.Options{Retries: 16, Until: 5 * time.Minute, Seeds: 1000}, 3
	f.StringVar(&o.mode, "mode", modePolicy, waitsModes)
	policy.Flag(f, &o.rules, "redial,full,grpc,normal,fixed", "the policies to draw", policy.Rules())
	cli.SomeOf(f, &o.outages, "outage", "refused", "how the dials fail: refused, 503, silent\nsilent: a dial takes as long as the policy lets it", waits.Outages(), func(x waits.Outage) string { return x.Name })
	f.Pause(&o.Connect, "connect", "how long a silent dial takes where the policy has no limit (default 15s)")
	f.Count(&o.Retries, 1, "retries", "how many retries to draw, and in the mode users how many attempts")
	f.Pause(&o.Until, "until", "how long the outage is drawn, at least")
	f.Count(&o.Seeds, 1, "seeds", "how many clients to draw, and for Ethernet how many draws")
	f.Count(&o.users, 1, "users", "how many users stand side by side, with -mode users")
	f.Float64Var(&o.jitter, "jitter", waits.UsersJitter, "the share of its delay by which a wait differs from it at most, with -mode users; above 1, waits are cut at 0")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the first client; the next ones count up")
	f.Check(func() error {
		for _, name := range []string{"users", "jitter"} {
			if o.mode == modePolicy && f.Given(name) {
				return fmt.Errorf("-%s means nothing without -mode users", name)
			}
		}
		known, ok := modeFlags[o.mode]
		switch {
		case ok:
			return f.Only("mode "+o.mode, known)
		case o.mode != modePolicy:
			return fmt.Errorf("there is no -mode %q: there are policy, users, ethernet, normal", o.mode)
		}
		one := o.Options
		one.Policy = o.rules[0].New()
		return one.Validate()
	})
}

func (o *drawnWaits) Run(ctx context.Context, c *cli.Console) (err error) {
	switch o.mode {
	case modeUsers:
		o.rows, o.chart, err = o.drawUsers()
	case modeEthernet:
		o.rows, o.chart, err = o.drawEthernet(ctx, c)
	case modeNormal:
		o.rows, o.chart, err = o.drawNormal(ctx, c)
	default:
		o.rows, err = o.drawPolicies(ctx, c)
	}
	return err
}

func (o *drawnWaits) Table() (table.Table, string) {
	if o.mode == modePolicy {
		return o.rows, policyNote
	}
	return o.rows, ""
}

func (o *drawnWaits) Chart() *chart.Picture {
	if o.mode == modePolicy {
		return o.policyPicture(o.drawn)
	}
	return o.chart
}

// drawn is one rule in one outage.
type drawn struct {
	rule   policy.Choice
	outage waits.Outage
	*waits.Result
}

// drawPolicies draws each rule in each outage, and keeps what was drawn for the picture, which takes longer
// than all else.
func (o *drawnWaits) drawPolicies(ctx context.Context, c *cli.Console) (table.Table, error) {
	err := c.Each(ctx, "draw", len(o.outages)*len(o.rules), 1, func(i int) error {
		d := drawn{rule: o.rules[i%len(o.rules)], outage: o.outages[i/len(o.rules)]}
		one := o.Options
		one.Policy, one.Outage = d.rule.New(), d.outage
		var err error
		if d.Result, err = waits.Draw(ctx, one); err == nil {
			o.drawn = append(o.drawn, d)
		}
		return err
	})
	return o.policyTable(o.drawn), err
}

// policyNote returns what the second half of a row means.
const policyNote = "Seconds. Of a retry: its wait, and when it begins. Of a time since the loss: the wait drawn last, and how many retries have begun by then. Alike: the share of the clients whose waits are exactly the commonest one."

// policyTable has a row for each retry, and for each age of the outage.
func (o *drawnWaits) policyTable(all []drawn) table.Table {
	t := table.Table{{"policy", "outage", "at", "wait p5", "median", "p95", "mean", "alike", "begins or retries p5", "median", "p95", "mean", "clients"}}
	for _, d := range all {
		for n := 1; n <= o.Retries; n++ {
			wait, begins := d.Retry(n)
			if wait.N > 0 {
				t.Row(append([]string{d.rule.String(), d.outage.Name, fmt.Sprintf("retry %d", n)}, statCells(wait, begins)...)...)
			}
		}
	}
	for _, d := range all {
		for _, at := range ageOfWaits {
			if at > o.Until {
				break
			}
			if wait, begun := d.At(at); wait.N > 0 {
				t.Row(append([]string{d.rule.String(), d.outage.Name, at.String()}, statCells(wait, begun)...)...)
			}
		}
	}
	return t
}

func statCells(wait, other waits.Stats) []string {
	var cells []string
	for i, s := range []waits.Stats{wait, other} {
		if i == 1 {
			cells = append(cells, fmt.Sprintf("%.0f %%", 100*wait.Alike))
		}
		for _, x := range []float64{s.P5, s.Median, s.P95, s.Mean} {
			cells = append(cells, figures(x))
		}
	}
	return append(cells, fmt.Sprint(wait.N))
}

// figures writes a number with three digits that say something, or as it is from 1,000 on.
func figures(x float64) string {
	switch {
	case x >= 1000:
		return fmt.Sprintf("%.0f", x)
	case x < 1e-9: // a remainder of rounding
		return "0"
	}
	return fmt.Sprintf("%.3g", x)
}
