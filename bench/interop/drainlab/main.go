package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/bench/internal/policy"
	"github.com/redial-go/redial/bench/internal/table"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lab"
)

func main() {
	if IsServer() {
		os.Exit(ServerMain())
	}
	os.Exit(program.Main())
}

var program = cli.Program{Name: "drainlab", Commands: []cli.Command{{Summary: "replace a server behind a real haproxy, and measure what its clients notice", Example: "-way drain,notice -n 200 -window 2s -rounds 1", New: cli.New[drainBench]}}}

// drainBench is the flags of the command, and what came of them.
type drainBench struct {
	Drain
	policies []policy.Choice
	ways     []string
	rounds   int
	from     string
	file     *drainFile
}

// drainFile is what -json keeps.
type drainFile struct {
	Clients    int
	Window     string
	Lead       string
	Rate       float64 // messages per second to each client, and from it
	Policy     string
	Conditions string
	Runs       []*Result // of all rounds, way by way
}

func (o *drainBench) Flags(f *cli.Flags) {
	o.rounds, o.Drain = 3, Drain{Clients: 2000, Window: 10 * time.Second, Lead: time.Second, Rate: 2}
	help := "the ways to drain"
	for _, w := range ways {
		help += fmt.Sprintf("\n%s: %s\n", w.name, w.summary)
	}
	f.Count(&o.Clients, 1, "n", "clients of the server that drains")
	f.Pause(&o.Window, "window", "the time that the server has")
	f.Pause(&o.Lead, "lead", "for how long the server is not ready before that")
	f.Float64Var(&o.Rate, "rate", o.Rate, "messages per second to each client, and from it")
	f.Count(&o.rounds, 1, "rounds", "runs of each way, of which the table has the medians; the ways take turns")
	cli.SomeOf(f, &o.ways, "way", "all", help, pick.Names(ways, nameOf), pick.Itself)
	policy.Flag(f, &o.policies, "redial", "what the clients wait before they dial, one of them", fleet.Rules())
	f.File("json", "keep all figures", func(w io.Writer) error { return o.file.save(w) })
	f.StringVar(&o.from, "from", "", "measure nothing: print what this `file` of -json has")
	f.File("markdown", "write the medians, as the table of README.md,", func(w io.Writer) error {
		_, err := io.WriteString(w, o.file.table().Markdown())
		return err
	})
	f.Check(func() error {
		if len(o.policies) != 1 {
			return fmt.Errorf("want one -policy, not %d", len(o.policies))
		}
		o.Policy = fleet.Of(o.policies[0]).Policy
		for _, o.Way = range o.ways {
			if err := o.Validate(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (o *drainBench) Run(ctx context.Context, c *cli.Console) (err error) {
	if o.from != "" {
		o.file, err = readDrains(o.from)
	} else {
		o.file, err = o.measure(ctx, c)
	}
	return err
}

func (o *drainBench) Table() (table.Table, string) {
	f := o.file
	if f == nil {
		return nil, ""
	}
	return f.table(), fmt.Sprintf("%d clients, window %s, lead %s, %g messages/s each way and client, policy %s; %s", f.Clients, f.Window, f.Lead, f.Rate, f.Policy, f.Conditions)
}

// measure runs all rounds. Next to an error it returns what was measured before it.
func (o *drainBench) measure(ctx context.Context, c *cli.Console) (*drainFile, error) {
	f := &drainFile{Clients: o.Clients, Window: o.Window.String(), Lead: o.Lead.String(), Rate: o.Rate, Policy: o.policies[0].String()}
	end := cli.Measure()
	failed := c.Each(ctx, "drain", o.rounds*len(o.ways), 1, func(i int) error {
		o.Way = o.ways[i%len(o.ways)]
		r, err := Run(ctx, o.Drain)
		if err == nil {
			f.Runs = append(f.Runs, r)
		}
		return err
	})
	slices.SortStableFunc(f.Runs, func(a, b *Result) int { return slices.Index(o.ways, a.Way) - slices.Index(o.ways, b.Way) })
	f.Conditions = end().String()
	return f, failed
}

// table has a row for each way, with medians.
func (f *drainFile) table() table.Table {
	t := table.Table{{"way", "rounds", "dials in the busiest 100 ms", "failed dials", "clients cut", "away: mean, s", "longest, s", "all back after, s", "server ended after, s", "messages sent", "lost", "twice"}}
	for from, until := 0, 0; from < len(f.Runs); from = until {
		for until = from; until < len(f.Runs) && f.Runs[until].Way == f.Runs[from].Way; until++ {
		}
		runs := f.Runs[from:until]
		of := func(digits int, value func(*Result) float64) string {
			var all []float64
			for _, r := range runs {
				all = append(all, value(r))
			}
			return fmt.Sprintf("%.*f", digits, lab.Median(all))
		}
		sum := func(value func(*Result) uint64) string {
			all := uint64(0)
			for _, r := range runs {
				all += value(r)
			}
			return fmt.Sprint(all)
		}
		t.Row(runs[0].Way, fmt.Sprint(len(runs)),
			of(0, func(r *Result) float64 { return float64(r.Peak) }),
			of(0, func(r *Result) float64 { return float64(r.Vain()) }),
			of(0, func(r *Result) float64 { return float64(r.Cut) }),
			of(2, func(r *Result) float64 { return r.Mean }),
			of(2, func(r *Result) float64 { return r.Away }),
			of(1, func(r *Result) float64 { return r.Back }),
			of(1, func(r *Result) float64 { return r.Drained }),
			sum(func(r *Result) uint64 { return r.Sent }),
			sum(func(r *Result) uint64 { return r.Lost }),
			sum(func(r *Result) uint64 { return r.Twice }))
	}
	return t
}

func (f *drainFile) save(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(f)
}

func readDrains(name string) (*drainFile, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := &drainFile{}
	if err := json.Unmarshal(text, f); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(f.Runs) == 0 || slices.Contains(f.Runs, nil) {
		return nil, fmt.Errorf("read %s: there are no runs in it", name)
	}
	return f, nil
}
