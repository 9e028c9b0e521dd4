package herd

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/table"
)

// defaults is "bench defaults": it prints the tables by which the library's defaults were
// chosen, or puts them into a file.
type defaults struct {
	tables  []defaultTable
	largest int
	file    string
}

func (o *defaults) Flags(f *cli.Flags) {
	cli.SomeOf(f, &o.tables, "table", "all", "make these tables", defaultTables, nameOfTable)
	f.IntVar(&o.largest, "largest", 1_000_000, "leave out herds of more connections than this: 100000 takes about 5 minutes, 1000000 a quarter of an hour")
	f.StringVar(&o.file, "o", "", "write the tables to this file, between its marks, instead of printing them")
}

// Run makes the tables. If it fails or ctx is done, it prints the completed rows of the current table. The file has
// only complete tables.
func (o *defaults) Run(ctx context.Context, c *cli.Console) error {
	m := &tableMaker{ctx: ctx, largest: o.largest, workers: runtime.GOMAXPROCS(0)}
	p := cli.NewProgress(c, "make tables", len(o.tables))
	defer p.End()
	for _, t := range o.tables {
		made := t.make(m)
		if m.err != nil {
			if len(made) > 1 {
				fmt.Fprintf(c.Out, "## %s, the rows until it ended\n\n%s\n", t.name, made.Markdown())
			}
			return m.err
		}
		if o.file == "" {
			fmt.Fprintf(c.Out, "## %s\n\n%s\n", t.name, made.Markdown())
		} else {
			if err := putTable(o.file, t.name, made.Markdown()); err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "table %s is in %s\n", t.name, o.file)
		}
		p.Add(1)
	}
	return nil
}

// putTable replaces what lies between the marks of a table in a file.
func putTable(file, name, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	mark := fmt.Sprintf("<!-- table %s -->\n", name)
	before, rest, found := strings.Cut(string(old), mark)
	_, after, ended := strings.Cut(rest, "<!-- end -->")
	if !found || !ended {
		return fmt.Errorf("put table %s: %s has no marks for it", name, file)
	}
	return os.WriteFile(file, []byte(before+mark+text+"<!-- end -->"+after), 0o644)
}

// tableMaker runs herds for tables and remembers the first error, after which it runs no
// more.
type tableMaker struct {
	ctx     context.Context
	err     error
	largest int // herd
	workers int
}

// average is like fleet.Average, but makes fewer runs the larger the herd is, and tries fleet.LentLimits for a client
// without a limit of its own.
func (m *tableMaker) average(h fleet.Herd) fleet.Summary {
	if m.err != nil {
		return fleet.Summary{}
	}
	runs := 1
	for _, size := range []struct{ n, runs int }{{10_000, 3}, {1000, 10}, {100, 30}, {10, 100}, {1, 300}} {
		if h.N <= size.n {
			runs = size.runs
		}
	}
	h.Seed = 1
	results, _, err := fleet.Soonest(m.ctx, h.Client, sameHerd(h), runs, m.workers, nil)
	if m.err = err; err != nil {
		return fleet.Summary{}
	}
	return fleet.Summarize(results)
}

// row appends a row to a table, unless one of its cells has failed.
func (m *tableMaker) row(t *table.Table, cells ...string) {
	if m.err == nil {
		t.Row(cells...)
	}
}
