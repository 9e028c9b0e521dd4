package articles

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/articles/queueing"
	"github.com/redial-go/redial/bench/articles/tiers"
)

// simulatedTiers is "bench sim -model tiers".
type simulatedTiers struct {
	scenario, strategy string
	rps                int
	seed               uint64
	json               bool
	person             tiers.Person
	way                tiers.Admission
	setups             []tiers.Setup
	results            []*tiers.Result
}

func (o *simulatedTiers) Flags(f *cli.Flags) {
	f.About = "Flags set how people press the button again, and how the manual way out goes.\n"
	f.StringVar(&o.scenario, "scenario", "all", "the scenario to simulate, all, or your own: mine.json; -list shows them")
	f.BoolVar(&o.json, "json", false, "with -list: print the file of -scenario (default incident), from which you can make your own")
	f.StringVar(&o.strategy, "strategy", "", "only these strategies of the scenario, separated by commas")
	f.IntVar(&o.rps, "rps", 0, "calls per second; default: the scenario's, see -list")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the run")
	people, ways := o.inIncident()
	o.person, o.way = *people[0], *ways[0]
	f.IntVar(&o.person.Presses, "presses", o.person.Presses, "how often people press the button again at most")
	f.Float64Var(&o.person.Again, "again", o.person.Again, "the probability that people press the button, each time")
	f.DurationVar(&o.person.From, "pause-from", o.person.From, "the shortest pause before people press the button")
	f.DurationVar(&o.person.To, "pause-to", o.person.To, "the longest pause before people press the button")
	f.DurationVar(&o.way.At, "cut-at", o.way.At, "when the traffic is cut")
	f.Float64Var(&o.way.Share, "cut-to", o.way.Share, "the share of the users that are let in after the cut")
	f.Float64Var(&o.way.Step, "step", o.way.Step, "the share that is added by each step")
	f.DurationVar(&o.way.Every, "every", o.way.Every, "the time between two steps")
	f.File("csv", "write the series", func(w io.Writer) error { return tiers.Series(o.results).WriteCSV(w) })
	f.ListOrFail("the scenarios and their strategies", o.list)
	f.Check(func() error { return o.choose(f) })
}

// inIncident returns the people and the ways out of the article's incident.
func (o *simulatedTiers) inIncident() ([]*tiers.Person, []*tiers.Admission) {
	s, err := tiers.Find("incident")
	if err != nil {
		panic(err) // it is part of the program
	}
	return s.People(), s.Admissions()
}

// list lists the scenarios, or prints the file of one.
func (o *simulatedTiers) list(w io.Writer) error {
	if o.json {
		name := o.scenario
		if name == "all" {
			name = "incident"
		}
		s, err := tiers.Find(name)
		if err == nil {
			_, err = w.Write(s.File())
		}
		return err
	}
	for _, s := range tiers.Scenarios() {
		fmt.Fprintf(w, "%s (%d calls/s, %v)\n", s.Name, s.RPS, s.Length)
		for _, y := range s.Strategies {
			fmt.Fprintln(w, "   ", y.Name)
		}
	}
	return nil
}

// choose chooses what to run.
func (o *simulatedTiers) choose(f *cli.Flags) error {
	if o.json {
		return errors.New("-json means nothing without -list")
	}
	scenarios := tiers.Scenarios()
	if o.scenario != "all" {
		s, err := tiers.Find(o.scenario)
		if _, other := queueing.Find(o.scenario); err != nil && other == nil {
			return fmt.Errorf("%s is a scenario of one server with a queue: leave -model tiers out", o.scenario)
		}
		if err != nil {
			return err
		}
		scenarios = []tiers.Scenario{s}
	}
	for _, s := range scenarios {
		o.change(f, &s)
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

// change gives the people of a scenario, and its ways out, what the user has given.
func (o *simulatedTiers) change(f *cli.Flags, s *tiers.Scenario) {
	for _, p := range s.People() {
		set(f, "presses", &o.person.Presses, &p.Presses)
		set(f, "again", &o.person.Again, &p.Again)
		set(f, "pause-from", &o.person.From, &p.From)
		set(f, "pause-to", &o.person.To, &p.To)
	}
	for _, a := range s.Admissions() {
		set(f, "cut-at", &o.way.At, &a.At)
		set(f, "cut-to", &o.way.Share, &a.Share)
		set(f, "step", &o.way.Step, &a.Step)
		set(f, "every", &o.way.Every, &a.Every)
	}
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
