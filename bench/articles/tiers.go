package articles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/articles/tiers"
)

// tiersOptions are the flags of "bench sim -model tiers".
type tiersOptions struct {
	scenario, strategy string
	rps                int
	seed               uint64
	person             tiers.Person
	way                tiers.Admission
	csv                string
	list               bool
}

func simulateTiers(ctx context.Context, c *cli.Console, args []string) error {
	o := tiersOptions{person: tiers.DefaultPerson, way: tiers.DefaultAdmission}
	flags := cli.NewFlags()
	flags.StringVar(&o.scenario, "scenario", "all", "the scenario to simulate, or all; -list shows them")
	flags.StringVar(&o.strategy, "strategy", "", "only these strategies of the scenario, separated by commas")
	flags.IntVar(&o.rps, "rps", 0, "calls per second; default: the scenario's, see -list")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the run")
	flags.IntVar(&o.person.Presses, "presses", o.person.Presses, "in the incident, how often people press the button again at most")
	flags.Float64Var(&o.person.Again, "again", o.person.Again, "in the incident, the probability of each time")
	flags.DurationVar(&o.person.From, "pause-from", o.person.From, "in the incident, the shortest pause before it")
	flags.DurationVar(&o.person.To, "pause-to", o.person.To, "in the incident, the longest pause before it")
	flags.DurationVar(&o.way.At, "cut-at", o.way.At, "in the incident, when the traffic is cut")
	flags.Float64Var(&o.way.Share, "cut-to", o.way.Share, "in the incident, the share of the users that are let in then")
	flags.Float64Var(&o.way.Step, "step", o.way.Step, "in the incident, the share that is added by each step")
	flags.DurationVar(&o.way.Every, "every", o.way.Every, "in the incident, the time between two steps")
	flags.StringVar(&o.csv, "csv", "", "write the series to this file; - is standard output")
	flags.BoolVar(&o.list, "list", false, "list the scenarios and their strategies")
	if err := cli.Parse(c, flags, args); err != nil {
		return err
	}
	if o.list {
		return listTiers(c.Out)
	}
	setups, err := o.setups()
	if err != nil {
		return cli.Usage(err)
	}
	if err := cli.CheckFile(o.csv); err != nil {
		return err
	}
	results, interrupted := runTiers(ctx, c, setups)
	summary := c.Out
	if o.csv == "-" {
		summary = c.Errs
	}
	err = cli.WriteFile(c, o.csv, func(w io.Writer) error { return tiers.WriteCSV(w, results...) })
	if err := errors.Join(err, summariseTiers(summary, results)); err != nil {
		return err
	}
	return interrupted
}

// setups returns what to run.
func (o *tiersOptions) setups() ([]tiers.Setup, error) {
	if p := o.person; p.Presses < 0 || !(p.Again >= 0 && p.Again <= 1) || p.From < 0 || p.To < p.From {
		return nil, errors.New("want -presses of at least 0, -again of 0 to 1, and -pause-from before -pause-to")
	}
	scenarios := []tiers.Scenario{tiers.TwoTiers(), tiers.Incident(&o.person, &o.way)}
	if o.scenario != "all" {
		s, err := tiers.Find(o.scenario)
		if err != nil {
			return nil, err
		}
		if s.Name == "incident" {
			s = tiers.Incident(&o.person, &o.way)
		}
		scenarios = []tiers.Scenario{s}
	}
	var setups []tiers.Setup
	for _, s := range scenarios {
		strategies := s.Strategies
		if o.strategy != "" {
			strategies = nil
			for name := range strings.SplitSeq(o.strategy, ",") {
				y, err := s.Strategy(name)
				if err != nil {
					return nil, err
				}
				strategies = append(strategies, y)
			}
		}
		for _, y := range strategies {
			x := tiers.Setup{Scenario: s, Strategy: y, RPS: o.rps, Seed: o.seed}
			if err := x.Validate(); err != nil {
				return nil, err
			}
			setups = append(setups, x)
		}
	}
	return setups, nil
}

// runTiers runs what is to be run. Its error leaves what was done before.
func runTiers(ctx context.Context, c *cli.Console, setups []tiers.Setup) ([]*tiers.Result, error) {
	p := cli.NewProgress(c, "simulate", len(setups))
	defer p.End()
	var all []*tiers.Result
	for _, x := range setups {
		r, err := tiers.Run(ctx, x)
		if err != nil {
			return all, err
		}
		all = append(all, r)
		p.Add(1)
	}
	return all, nil
}

// summariseTiers prints one table per scenario.
func summariseTiers(w io.Writer, results []*tiers.Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	last := ""
	for _, r := range results {
		s, y := &r.Setup.Scenario, r.Summary()
		if s.Name != last {
			last = s.Name
			fmt.Fprintf(t, "\n%s (%d calls/s)\n", last, r.Setup.RPS)
			for _, one := range s.Tiers {
				fmt.Fprintf(t, "%s: in failure\tpeak\tqueue\t", one.Name)
			}
			fmt.Fprintln(t, "load back\tsuccess back\tup, of the time\tsuccess of all\tcalls lost\tas many arrive in\t  strategy")
		}
		for i := range s.Tiers {
			fmt.Fprintf(t, "%.0f %%\t%.0f %%\t%d\t", y.Load[i], y.Peak[i], y.Queue[i])
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\t  %s\n",
			s.When(y.LoadBack, y.LoadIsBack), s.When(y.SuccessBack, y.SuccessIsBack), percentage(y.Up), percentage(y.Success),
			y.Lost, s.When(y.LostFor, true), r.Setup.Strategy.Name)
	}
	return t.Flush()
}

func listTiers(w io.Writer) error {
	for _, s := range tiers.Scenarios() {
		if _, err := fmt.Fprintf(w, "%s (%d calls/s, %v)\n", s.Name, s.RPS, s.Length); err != nil {
			return err
		}
		for _, y := range s.Strategies {
			fmt.Fprintln(w, "   ", y.Name)
		}
	}
	return nil
}
