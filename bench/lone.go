package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/redial-go/redial/bench/fleet"
	"github.com/redial-go/redial/bench/realherd"
)

func init() {
	register(command{"lone", "compute how late one client is back, by circumstance and policy", lone})
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

func lone(ctx context.Context, c *console, args []string) error {
	o, err := parseLone(c, args)
	if err != nil {
		return err
	}
	for _, file := range []string{o.csv, o.svg} {
		if err := checkFile(file); err != nil {
			return err
		}
	}
	rows := circumstances()
	if o.only != "" {
		rows = nil
		for _, r := range circumstances() {
			if strings.Contains(r.name, o.only) {
				rows = append(rows, r)
			}
		}
		if rows == nil {
			return usageError{fmt.Errorf("no circumstance has %q in its name", o.only)}
		}
	}
	p := newProgress(c, "simulate", len(rows)*len(o.clients))
	all, err := runLone(ctx, rows, o.clients, o.seeds, runtime.GOMAXPROCS(0), func() { p.add(1) })
	p.end()
	if err != nil {
		return err
	}
	t := loneTable(rows, o.clients, all)
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
	return writeFile(c, o.svg, drawLone(rows, o.clients, all).WriteSVG)
}

func parseLone(c *console, args []string) (*loneOptions, error) {
	var o loneOptions
	flags := flag.NewFlagSet("lone", flag.ContinueOnError)
	names := flags.String("policy", lonePolicies, "the policies to compare, separated by commas: "+strings.Join(realherd.Clients(), ", "))
	flags.IntVar(&o.seeds, "seeds", 40, fmt.Sprintf("runs of each, with %d lone clients in each", side))
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
		client, err := realherd.FindClient(name)
		if err != nil {
			return nil, usageError{err}
		}
		o.clients = append(o.clients, client)
	}
	return &o, nil
}

// runLone returns what came of each circumstance (first index) with each client, and calls
// each after every one of them. What it returns does not depend on workers.
func runLone(ctx context.Context, rows []circumstance, clients []fleet.Client, seeds, workers int, each func()) ([][]*alone, error) {
	all := make([][]*alone, len(rows))
	errs := make([]error, len(rows))
	next := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range next {
				for _, c := range clients {
					o, err := rows[i].run(ctx, c, seeds)
					if err != nil {
						errs[i] = err
						break
					}
					all[i] = append(all[i], o)
					each()
				}
			}
		})
	}
	for i := range rows {
		next <- i
	}
	close(next)
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// loneTable is the table of circumstance by client.
func loneTable(rows []circumstance, clients []fleet.Client, all [][]*alone) table {
	t := table{{"circumstance", "wanted"}}
	for _, c := range clients {
		t[0] = append(t[0], c.Name)
	}
	for i, r := range rows {
		row := []string{r.name, r.wanted}
		for _, o := range all[i] {
			row = append(row, r.show(o))
		}
		t.row(row...)
	}
	return t
}
