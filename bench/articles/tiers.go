package articles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

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
	f.File("csv", "write the series", func(w io.Writer) error { return tiers.Series(o.results).WriteCSV(w) })
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
	return c.Each(ctx, "simulate", len(o.setups), 1, func(i int) error {
		r, err := tiers.Run(ctx, o.setups[i])
		if err == nil {
			o.results = append(o.results, r)
		}
		return err
	})
}

// Show prints one table per scenario.
func (o *simulatedTiers) Show(w io.Writer) error {
	for same := range chunks(o.results, func(r *tiers.Result) string { return r.Setup.Scenario.Name }) {
		fmt.Fprintf(w, "\n%s (%d calls/s)\n", same[0].Setup.Scenario.Name, same[0].Setup.RPS)
		if err := tiers.Table(same).Print(w); err != nil {
			return err
		}
	}
	return nil
}
