package articles

import (
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/articles/waits"
	"github.com/redial-go/redial/bench/internal/chart"
)

// waitsOptions are the flags of "bench waits".
type waitsOptions struct {
	waits.Options
	params   waits.Params
	rules    []waits.Rule
	outages  []waits.Outage
	users    int
	csv, svg string
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
users: the waits of -users users side by side, from 1 s to 30 s within 20 %
ethernet: E(c) = (2^c - 1)/2, the mean wait of Ethernet's backoff after c collisions
normal: two settings of backoff with normal noise: 100 ms, 2.7, 10 min and 1 s, 1.5, 5 min`

// modeFlags are the flags that mean something in a mode. In that of policies all but one do.
var modeFlags = map[string]string{
	modeUsers:    "mode users retries seed csv svg",
	modeEthernet: "mode seeds seed csv svg",
	modeNormal:   "mode retries seeds seed csv svg",
}

// ageOfWaits are the times since the loss at which the waits are printed.
var ageOfWaits = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
}

func drawWaits(ctx context.Context, c *cli.Console, args []string) error {
	o, mode, err := parseWaits(c, args)
	if err != nil {
		return err
	}
	for _, file := range []string{o.csv, o.svg} {
		if err := cli.CheckFile(file); err != nil {
			return err
		}
	}
	var (
		t   cli.Table
		pic *chart.Picture
	)
	switch mode {
	case modeUsers:
		t, pic, err = o.drawUsers()
	case modeEthernet:
		t, pic, err = o.drawEthernet()
	case modeNormal:
		t, pic, err = o.drawNormal()
	default:
		t, pic, err = o.drawPolicies(ctx, c)
	}
	if err != nil {
		return err
	}
	if o.csv != "-" && o.svg != "-" {
		if err := t.Print(c.Out); err != nil {
			return err
		}
		if mode == modePolicy {
			fmt.Fprintln(c.Out, policyNote)
		}
	}
	if err := cli.WriteFile(c, o.csv, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(t) }); err != nil {
		return err
	}
	return cli.WriteFile(c, o.svg, pic.WriteSVG)
}

// printTable prints a table in columns.
func printTable(out io.Writer, t cli.Table) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range t {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	return w.Flush()
}

func parseWaits(c *cli.Console, args []string) (o *waitsOptions, mode string, err error) {
	o = &waitsOptions{users: 3}
	o.Options = waits.Options{Retries: 16, Until: 5 * time.Minute, Seeds: 1000}
	flags := cli.NewFlags()
	flags.StringVar(&mode, "mode", modePolicy, waitsModes)
	names := flags.String("policy", "redial,full,grpc,normal,fixed", "the policies to draw, separated by commas\n"+ruleHelp(waits.Rules()))
	outages := flags.String("outage", "refused", "how the dials fail, several separated by commas: refused, 503, or silent, where a dial takes as long as the policy lets it")
	addParams(flags, &o.params)
	flags.Pause(&o.Connect, "connect", "how long a silent dial takes where the policy has no limit (default 15s)")
	flags.Count(&o.Retries, 1, "retries", "how many retries to draw, and in the mode users how many attempts")
	flags.Pause(&o.Until, "until", "how long the outage is drawn, at least")
	flags.Count(&o.Seeds, 1, "seeds", "how many clients to draw, and for Ethernet how many draws")
	flags.Count(&o.users, 1, "users", "how many users stand side by side, with -mode users")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the first client; the next ones count up")
	flags.StringVar(&o.csv, "csv", "", "write the table to this file as CSV; - is standard output")
	flags.StringVar(&o.svg, "svg", "", "draw a picture to this file; - is standard output")
	if err := cli.Parse(c, flags, args); err != nil {
		return nil, "", err
	}
	if err := o.validate(flags, mode, *names, *outages); err != nil {
		return nil, "", cli.Usage(err)
	}
	return o, mode, nil
}

func (o *waitsOptions) validate(flags *cli.Flags, mode, names, outages string) (err error) {
	if o.csv == "-" && o.svg == "-" {
		return fmt.Errorf("-csv and -svg cannot both go to standard output")
	}
	if mode != modePolicy {
		known, ok := modeFlags[mode]
		if !ok {
			return fmt.Errorf("there is no -mode %q: there are policy, users, ethernet, normal", mode)
		}
		flags.Visit(func(f *flag.Flag) {
			if !strings.Contains(" "+known+" ", " "+f.Name+" ") {
				err = fmt.Errorf("-%s means nothing with -mode %s", f.Name, mode)
			}
		})
		return err
	}
	flags.Visit(func(f *flag.Flag) {
		if f.Name == "users" {
			err = fmt.Errorf("-users means nothing without -mode users")
		}
	})
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(outages, ",") {
		one, err := waits.FindOutage(strings.TrimSpace(name))
		if err != nil {
			return fmt.Errorf("-outage: %w", err)
		}
		o.outages = append(o.outages, one)
	}
	if o.rules, err = chooseRules("policy", waits.Rules(), names, o.params); err != nil {
		return err
	}
	one := o.Options
	one.Policy = o.rules[0].New(o.params)
	return one.Validate()
}

// drawn is one rule in one outage.
type drawn struct {
	rule   waits.Rule
	outage waits.Outage
	*waits.Result
}

// drawPolicies draws each rule in each outage.
func (o *waitsOptions) drawPolicies(ctx context.Context, c *cli.Console) (cli.Table, *chart.Picture, error) {
	p := cli.NewProgress(c, "draw", len(o.rules)*len(o.outages))
	defer p.End()
	var all []drawn
	for _, outage := range o.outages {
		for _, rule := range o.rules {
			if ctx.Err() != nil {
				return nil, nil, context.Cause(ctx)
			}
			one := o.Options
			one.Policy, one.Outage = rule.New(o.params), outage
			y, err := waits.Draw(ctx, one)
			if err != nil {
				return nil, nil, err
			}
			all = append(all, drawn{rule, outage, y})
			p.Add(1)
		}
	}
	return o.policyTable(all), o.policyPicture(all), nil
}

// policyNote returns what the second half of a row means.
const policyNote = "Seconds. Of a retry: its wait, and when it begins. Of a time since the loss: the wait drawn last, and how many retries have begun by then. Alike: the share of the clients whose waits are exactly the commonest one."

// policyTable has a row for each retry, and for each age of the outage.
func (o *waitsOptions) policyTable(all []drawn) cli.Table {
	t := cli.Table{{"policy", "outage", "at", "wait p5", "median", "p95", "mean", "alike", "begins or retries p5", "median", "p95", "mean", "clients"}}
	for _, d := range all {
		for n := 1; n <= o.Retries; n++ {
			wait, begins := d.Retry(n)
			if wait.N > 0 {
				t.Row(append([]string{d.rule.Name, d.outage.Name, fmt.Sprintf("retry %d", n)}, statCells(wait, begins)...)...)
			}
		}
	}
	for _, d := range all {
		for _, at := range ageOfWaits {
			if at > o.Until {
				break
			}
			if wait, begun := d.At(at); wait.N > 0 {
				t.Row(append([]string{d.rule.Name, d.outage.Name, at.String()}, statCells(wait, begun)...)...)
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
