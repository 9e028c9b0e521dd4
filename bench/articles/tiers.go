package articles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/articles/tiers"
)

// simulatedTiers is "bench sim -model tiers".
type simulatedTiers struct {
	scenario, strategy string
	rps                int
	seed               uint64
	person             tiers.Person
	way                tiers.Admission
	setups             []tiers.Setup
	results            []*tiers.Result
}

func (o *simulatedTiers) Flags(f *cli.Flags) {
	o.person, o.way = tiers.DefaultPerson, tiers.DefaultAdmission
	f.StringVar(&o.scenario, "scenario", "all", "the scenario to simulate, or all; -list shows them")
	f.StringVar(&o.strategy, "strategy", "", "only these strategies of the scenario, separated by commas")
	f.IntVar(&o.rps, "rps", 0, "calls per second; default: the scenario's, see -list")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the run")
	f.IntVar(&o.person.Presses, "presses", o.person.Presses, "in the incident, how often people press the button again at most")
	f.Float64Var(&o.person.Again, "again", o.person.Again, "in the incident, the probability of each time")
	f.DurationVar(&o.person.From, "pause-from", o.person.From, "in the incident, the shortest pause before it")
	f.DurationVar(&o.person.To, "pause-to", o.person.To, "in the incident, the longest pause before it")
	f.DurationVar(&o.way.At, "cut-at", o.way.At, "in the incident, when the traffic is cut")
	f.Float64Var(&o.way.Share, "cut-to", o.way.Share, "in the incident, the share of the users that are let in then")
	f.Float64Var(&o.way.Step, "step", o.way.Step, "in the incident, the share that is added by each step")
	f.DurationVar(&o.way.Every, "every", o.way.Every, "in the incident, the time between two steps")
	f.File("csv", "write the series", func(w io.Writer) error { return tiers.WriteCSV(w, o.results...) })
	f.List("the scenarios and their strategies", func(w io.Writer) {
		for _, s := range tiers.Scenarios() {
			fmt.Fprintf(w, "%s (%d calls/s, %v)\n", s.Name, s.RPS, s.Length)
			for _, y := range s.Strategies {
				fmt.Fprintln(w, "   ", y.Name)
			}
		}
	})
	f.Check(o.choose)
}

// choose chooses what to run.
func (o *simulatedTiers) choose() error {
	if p := o.person; p.Presses < 0 || !(p.Again >= 0 && p.Again <= 1) || p.From < 0 || p.To < p.From {
		return errors.New("want -presses of at least 0, -again of 0 to 1, and -pause-from before -pause-to")
	}
	scenarios := []tiers.Scenario{tiers.TwoTiers(), tiers.Incident(&o.person, &o.way)}
	if o.scenario != "all" {
		s, err := tiers.Find(o.scenario)
		if err != nil {
			return err
		}
		scenarios = slices.DeleteFunc(scenarios, func(one tiers.Scenario) bool { return one.Name != s.Name })
	}
	for _, s := range scenarios {
		strategies, err := strategiesOf(s.Strategies, s.Strategy, o.strategy)
		if err != nil {
			return err
		}
		for _, y := range strategies {
			x := tiers.Setup{Scenario: s, Strategy: y, RPS: o.rps, Seed: o.seed}
			if err := x.Validate(); err != nil {
				return err
			}
			o.setups = append(o.setups, x)
		}
	}
	return nil
}

func (o *simulatedTiers) Run(ctx context.Context, c *cli.Console) error {
	p := cli.NewProgress(c, "simulate", len(o.setups))
	defer p.End()
	for _, x := range o.setups {
		r, err := tiers.Run(ctx, x)
		if err != nil {
			return err
		}
		o.results = append(o.results, r)
		p.Add(1)
	}
	return nil
}

// Show prints one table per scenario.
func (o *simulatedTiers) Show(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	last := ""
	for _, r := range o.results {
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
