package articles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/articles/queueing"
	"github.com/redial-go/redial/bench/articles/tiers"
)

// simulatedQueue is "bench sim".
type simulatedQueue struct {
	scenario, strategy string
	rps, seeds         int
	seed               uint64
	bucket             time.Duration
	json               bool
	own                ownFigures
	setups             []queueing.Setup
	series             []*queueing.Series
}

func (o *simulatedQueue) Flags(f *cli.Flags) {
	f.About = "Flags that begin with \"own figures\" replace figures of the scenario.\n"
	f.StringVar(&o.scenario, "scenario", "", "the scenario to simulate, all, or your own: mine.json; -list shows them")
	f.BoolVar(&o.json, "json", false, "with -list: print the file of -scenario (default simple_retry_only), from which you can make your own")
	f.StringVar(&o.strategy, "strategy", "", "only these strategies of the scenario, with commas between; also retry-budget-grpc, -aws, -aws-2026, -envoy")
	f.IntVar(&o.rps, "rps", 10_000, "calls per second; the article's pictures have 300000")
	f.IntVar(&o.seeds, "seeds", 5, "runs of which the results are the means")
	f.Seed(&o.seed)
	f.DurationVar(&o.bucket, "bucket", 50*time.Millisecond, "length of the rows of the CSV")
	o.own.add(f)
	f.File("csv", "write the series", func(w io.Writer) error { return queueing.CSV(o.series).WriteCSV(w) })
	f.ListOrFail("the scenarios and their strategies", func(w io.Writer) error {
		if !o.json {
			listScenarios(w)
			return nil
		}
		s, err := queueing.Find(cmp.Or(o.scenario, "simple_retry_only"))
		if err == nil {
			_, err = w.Write(s.File())
		}
		return err
	})
	f.Check(o.choose)
}

// choose chooses what to run.
func (o *simulatedQueue) choose() error {
	scenarios := slices.Concat(queueing.Scenarios(), queueing.MoreScenarios())
	switch {
	case o.json:
		return errors.New("-json means nothing without -list")
	case o.scenario == "":
		return errors.New("want -scenario NAME or -scenario all: -list names them")
	case o.seeds < 1:
		return fmt.Errorf("want at least one of -seeds, not %d", o.seeds)
	case o.scenario != "all":
		s, err := queueing.Find(o.scenario)
		switch {
		case err != nil && tiers.Has(o.scenario):
			return fmt.Errorf("%s is a scenario of services in a row: add -model tiers", o.scenario)
		case err != nil:
			return err
		}
		scenarios = []queueing.Scenario{s}
	}
	for _, s := range scenarios {
		strategies, err := strategiesOf(s.Strategies, s.Strategy, o.strategy)
		if err != nil {
			return err
		}
		s.Strategies = strategies
		if err := o.own.apply(&s); err != nil {
			return err
		}
		for _, y := range s.Strategies {
			x := queueing.Setup{Scenario: s, Strategy: y, RPS: o.rps, Seed: o.seed, Bucket: o.bucket}
			if err := x.Validate(); err != nil {
				return err
			}
			o.setups = append(o.setups, x)
		}
	}
	return nil
}

// strategiesOf returns all strategies of a scenario, or those that are named.
func strategiesOf[T any](all []T, find func(string) (T, error), names string) (chosen []T, err error) {
	if names == "" {
		return all, nil
	}
	for _, name := range cli.List(names) {
		y, err := find(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, y)
	}
	return chosen, nil
}

func (o *simulatedQueue) Run(ctx context.Context, c *cli.Console) error {
	p := cli.NewProgress(c, "simulate", len(o.setups)*o.seeds)
	defer p.End()
	for _, x := range o.setups {
		series, err := queueing.Collect(ctx, x, o.seeds, func() { p.Add(1) })
		if series != nil {
			o.series = append(o.series, series)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Show prints one table per scenario.
func (o *simulatedQueue) Show(w io.Writer) error {
	for same := range chunks(o.series, func(s *queueing.Series) string { return s.Scenario.Name }) {
		s := same[0]
		fmt.Fprintf(w, "\n%s (%d calls/s, %d CPUs, %s)\n", s.Scenario.Name, s.RPS, s.CPUs, cli.Plural(s.Seeds, "seed"))
		if err := queueing.Table(same).Print(w); err != nil {
			return err
		}
	}
	return nil
}

// chunks returns the parts of all whose names are the same, one after the other.
func chunks[T any](all []T, nameOf func(T) string) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for from, until := 0, 0; from < len(all); from = until {
			for until = from; until < len(all) && nameOf(all[until]) == nameOf(all[from]); until++ {
			}
			if !yield(all[from:until]) {
				return
			}
		}
	}
}
