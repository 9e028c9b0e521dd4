package herd

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/redial-go/redial/bench/internal/cli"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/bench/herd/lone"
)

// lonePolicies are compared if nothing is said.
const lonePolicies = "redial,paced,v2,grpc,cenkalti,full,fixed"

// loneOptions are the flags of "bench lone".
type loneOptions struct {
	clients []fleet.Client
	seeds   int
	only    string
	csv     string
	svg     string
}

func loneClients(ctx context.Context, c *cli.Console, args []string) error {
	o, err := parseLone(c, args)
	if err != nil {
		return err
	}
	for _, file := range []string{o.csv, o.svg} {
		if err := cli.CheckFile(file); err != nil {
			return err
		}
	}
	rows := rowsNamed(o.only)
	if rows == nil {
		return cli.Usagef("no circumstance has %q in its name", o.only)
	}
	p := cli.NewProgress(c, "simulate", len(rows)*len(o.clients))
	all, err := lone.RunAll(ctx, rows, o.clients, o.seeds, 1, runtime.GOMAXPROCS(0), func() { p.Add(1) })
	p.End()
	if err != nil {
		return err
	}
	t := cli.Table(lone.Table(rows, o.clients, all))
	if o.csv != "-" {
		if err := t.Print(c.Out); err != nil {
			return err
		}
		fmt.Fprintln(c.Out, "Seconds after the server is back, median / p95, where nothing else is said.")
	}
	if err := cli.WriteFile(c, o.csv, t.WriteCSV); err != nil {
		return err
	}
	return cli.WriteFile(c, o.svg, lone.Picture(rows, o.clients, all).WriteSVG)
}

// rowsNamed returns the circumstances that have part in their names.
func rowsNamed(part string) (rows []lone.Circumstance) {
	for _, r := range lone.Circumstances() {
		if strings.Contains(r.Name, part) {
			rows = append(rows, r)
		}
	}
	return rows
}

func parseLone(c *cli.Console, args []string) (*loneOptions, error) {
	var o loneOptions
	flags := cli.NewFlags()
	names := flags.String("policy", lonePolicies, "the policies to compare, separated by commas: "+strings.Join(lab.Clients(), ", "))
	flags.IntVar(&o.seeds, "seeds", 40, fmt.Sprintf("runs of each, with %d lone clients in each", lone.Side))
	flags.StringVar(&o.only, "only", "", "only circumstances that have this in their name")
	flags.StringVar(&o.csv, "csv", "", "write the table to this file as CSV; - is standard output")
	flags.StringVar(&o.svg, "svg", "", "draw the table to this file; - is standard output")
	if err := cli.Parse(c, flags, args); err != nil {
		return nil, err
	}
	if o.seeds < 1 {
		return nil, cli.Usagef("-seeds must be above 0")
	}
	for name := range strings.SplitSeq(*names, ",") {
		client, err := lab.FindClient(name)
		if err != nil {
			return nil, cli.Usage(err)
		}
		o.clients = append(o.clients, client)
	}
	return &o, nil
}
