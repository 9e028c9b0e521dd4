package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/bench/herd/lone"
)

func init() {
	register(command{"lone", "compute how late one client is back, by circumstance and policy", loneClients})
}

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

func loneClients(ctx context.Context, c *console, args []string) error {
	o, err := parseLone(c, args)
	if err != nil {
		return err
	}
	for _, file := range []string{o.csv, o.svg} {
		if err := checkFile(file); err != nil {
			return err
		}
	}
	rows := rowsNamed(o.only)
	if rows == nil {
		return usageError{fmt.Errorf("no circumstance has %q in its name", o.only)}
	}
	p := newProgress(c, "simulate", len(rows)*len(o.clients))
	all, err := lone.RunAll(ctx, rows, o.clients, o.seeds, 1, runtime.GOMAXPROCS(0), func() { p.add(1) })
	p.end()
	if err != nil {
		return err
	}
	t := lone.Table(rows, o.clients, all)
	if o.csv != "-" {
		w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
		for _, row := range t {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
		w.Flush()
		fmt.Fprintln(c.out, "Seconds after the server is back, median / p95, where nothing else is said.")
	}
	if err := writeTable(c, o.csv, t); err != nil {
		return err
	}
	return writeFile(c, o.svg, lone.Picture(rows, o.clients, all).WriteSVG)
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

func parseLone(c *console, args []string) (*loneOptions, error) {
	var o loneOptions
	flags := flag.NewFlagSet("lone", flag.ContinueOnError)
	names := flags.String("policy", lonePolicies, "the policies to compare, separated by commas: "+strings.Join(lab.Clients(), ", "))
	flags.IntVar(&o.seeds, "seeds", 40, fmt.Sprintf("runs of each, with %d lone clients in each", lone.Side))
	flags.StringVar(&o.only, "only", "", "only circumstances that have this in their name")
	flags.StringVar(&o.csv, "csv", "", "write the table to this file as CSV; - is standard output")
	flags.StringVar(&o.svg, "svg", "", "draw the table to this file; - is standard output")
	if err := parse(c, flags, args); err != nil {
		return nil, err
	}
	if o.seeds < 1 {
		return nil, usageError{fmt.Errorf("-seeds must be above 0")}
	}
	for name := range strings.SplitSeq(*names, ",") {
		client, err := lab.FindClient(name)
		if err != nil {
			return nil, usageError{err}
		}
		o.clients = append(o.clients, client)
	}
	return &o, nil
}
