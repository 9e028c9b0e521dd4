package herd

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/table"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lone"
)

// lonePolicies are compared if nothing is said.
const lonePolicies = "redial,paced,grpc,cenkalti,full,fixed"

// loneClients is "bench lone".
type loneClients struct {
	clients []fleet.Client
	seeds   int
	rows    []lone.Circumstance
	all     [][]*lone.Result
}

func (o *loneClients) Flags(f *cli.Flags) {
	o.seeds = 40
	chooseClients(f, &o.clients, lonePolicies, "how the client waits")
	f.Count(&o.seeds, 1, "seeds", fmt.Sprintf("runs of each, with %d lone clients in each", lone.Side))
	only := f.String("only", "", "only circumstances that have this in their name")
	f.Check(func() error {
		for _, r := range lone.Circumstances() {
			if strings.Contains(r.Name, *only) {
				o.rows = append(o.rows, r)
			}
		}
		if o.rows == nil {
			return fmt.Errorf("no circumstance has %q in its name; \"bench lone -seeds 1\" prints them all", *only)
		}
		return nil
	})
}

func (o *loneClients) Run(ctx context.Context, c *cli.Console) (err error) {
	p := cli.NewProgress(c, "simulate", len(o.rows)*len(o.clients))
	defer p.End()
	o.all, err = lone.RunAll(ctx, o.rows, o.clients, o.seeds, 1, runtime.GOMAXPROCS(0), func() { p.Add(1) })
	return err
}

func (o *loneClients) Table() (table.Table, string) {
	if o.all == nil {
		return nil, ""
	}
	note := "Seconds after the server is back, median / p95, where nothing else is said."
	if lent := lent(o.clients); lent != "" {
		note += "\n" + lent
	}
	return lone.Table(o.rows, o.clients, o.all), note
}

func (o *loneClients) Chart() *chart.Picture { return lone.Picture(o.rows, o.clients, o.all) }
