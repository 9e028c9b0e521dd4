package articles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/articles/queueing"
)

// queueingOptions are the flags of "bench sim".
type queueingOptions struct {
	scenario, strategy string
	rps, seeds         int
	seed               uint64
	bucket             time.Duration
	csv                string
	list               bool
}

func simulateQueueing(ctx context.Context, c *cli.Console, args []string) error {
	o := queueingOptions{}
	flags := cli.NewFlags()
	flags.StringVar(&o.scenario, "scenario", "", "the scenario to simulate, or all; -list shows them")
	flags.StringVar(&o.strategy, "strategy", "", "only these strategies of the scenario, separated by commas; each has the presets too: retry-budget-grpc, retry-budget-aws, retry-budget-aws-2026")
	flags.IntVar(&o.rps, "rps", 10_000, "calls per second; the article's pictures have 300000")
	flags.IntVar(&o.seeds, "seeds", 5, "runs of which the results are the means")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the first run; the next runs count up")
	flags.DurationVar(&o.bucket, "bucket", 50*time.Millisecond, "length of the rows of the CSV")
	flags.StringVar(&o.csv, "csv", "", "write the series to this file; - is standard output")
	flags.BoolVar(&o.list, "list", false, "list the scenarios and their strategies")
	if err := cli.Parse(c, flags, args); err != nil {
		return err
	}
	if o.list {
		return listScenarios(c.Out)
	}
	setups, err := o.setups()
	if err != nil {
		return cli.Usage(err)
	}
	if err := cli.CheckFile(o.csv); err != nil {
		return err
	}
	series, interrupted := o.collect(ctx, c, setups)
	if err := o.print(c, series); err != nil {
		return err
	}
	return interrupted
}

// setups returns what to run.
func (o *queueingOptions) setups() ([]queueing.Setup, error) {
	scenarios := slices.Concat(queueing.Scenarios(), queueing.PresetScenarios())
	switch {
	case o.scenario == "":
		return nil, fmt.Errorf("want -scenario NAME or -scenario all: -list names them")
	case o.seeds < 1:
		return nil, fmt.Errorf("want at least one of -seeds, not %d", o.seeds)
	case o.scenario != "all":
		s, err := queueing.Find(o.scenario)
		if err != nil {
			return nil, fmt.Errorf("%w: -list names them", err)
		}
		scenarios = []queueing.Scenario{s}
	}
	var setups []queueing.Setup
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
			x := queueing.Setup{Scenario: s, Strategy: y, RPS: o.rps, Seed: o.seed, Bucket: o.bucket}
			if err := x.Validate(); err != nil {
				return nil, err
			}
			setups = append(setups, x)
		}
	}
	return setups, nil
}

// collect runs what is to be run. Its error leaves what was done before.
func (o *queueingOptions) collect(ctx context.Context, c *cli.Console, setups []queueing.Setup) ([]*queueing.Series, error) {
	p := cli.NewProgress(c, "simulate", len(setups)*o.seeds)
	defer p.End()
	var all []*queueing.Series
	for _, x := range setups {
		series, err := queueing.Collect(ctx, x, o.seeds, func() { p.Add(1) })
		if series != nil {
			all = append(all, series)
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// print writes the CSV, if it is wanted, and the summary where the CSV does not go.
func (o *queueingOptions) print(c *cli.Console, series []*queueing.Series) error {
	err := cli.WriteFile(c, o.csv, func(w io.Writer) error { return queueing.WriteCSV(w, series...) })
	summary := c.Out
	if o.csv == "-" {
		summary = c.Errs
	}
	return errors.Join(err, summarise(summary, series))
}

// summarise prints one table per scenario.
func summarise(w io.Writer, series []*queueing.Series) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	last := ""
	for _, s := range series {
		if s.Scenario.Name != last {
			last = s.Scenario.Name
			fmt.Fprintf(t, "\n%s (%d calls/s, %d CPUs, %s)\n", last, s.RPS, s.CPUs, cli.Plural(s.Seeds, "seed"))
			fmt.Fprintln(t, "load in failure\tpeak 20 ms\tsent, peak\tload back\tsuccess back\tsuccess in failure\tof all\tup, of the time\tserver's successes\tmedian, worst\tp99, worst\tqueue, longest\trequests\t  strategy")
		}
		y := s.Summary()
		fmt.Fprintf(t, "%.0f %%\t%.0f %%\t%.0f %%\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f ms\t%.0f ms\t%.0f\t%.0f\t  %s\n",
			y.Load, y.Peak, y.Offered, s.Scenario.When(y.Back, y.IsBack), s.Scenario.When(y.SuccessBack, y.SuccessIsBack),
			percentage(y.Success), percentage(s.Success), percentage(y.Up), percentage(y.ServerUp),
			y.P50, y.P99, y.Queue, s.Requests, s.Strategy)
	}
	return t.Flush()
}

func percentage(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", x)
}

func listScenarios(w io.Writer) error {
	for _, s := range slices.Concat(queueing.Scenarios(), queueing.PresetScenarios(), also("retry_cb_vs_budget")) {
		if _, err := fmt.Fprintln(w, s.Name); err != nil {
			return err
		}
		for _, y := range s.Strategies {
			fmt.Fprintln(w, "   ", y.Name)
		}
	}
	return nil
}

// also is a scenario that is part of another, and so not in the list of all.
func also(name string) []queueing.Scenario {
	s, err := queueing.Find(name)
	if err != nil {
		return nil
	}
	return []queueing.Scenario{s}
}
