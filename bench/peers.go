package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/redial-go/redial/bench/peers"
)

func init() {
	if peers.IsChild() { // a server or a client of the table: it never gets as far as main
		os.Exit(peers.ChildMain())
	}
	register(command{"peers", "measure redial beside other libraries on real sockets: one table", measurePeers})
}

// peersOptions are the flags of "bench peers".
type peersOptions struct {
	peers.Options
	from, json, svg, markdown string
}

func measurePeers(ctx context.Context, c *console, args []string) error {
	o, err := parsePeers(c, args)
	if err != nil {
		return err
	}
	var (
		report, saved *peers.Report
		failure       error
	)
	if o.from != "" {
		if report, err = peers.ReadFile(o.from); err != nil {
			return err
		}
		saved = report
	} else {
		if saved, err = o.stored(); err != nil {
			return err
		}
		p := newProgress(c, "measure", o.Steps())
		o.Progress = func() { p.add(1) }
		report, failure = peers.Run(ctx, o.Options)
		p.end()
		saved.Replace(report)
	}
	table := c.out
	if o.svg == "-" || o.markdown == "-" || o.json == "-" {
		table = c.errs
	}
	return errors.Join(failure, report.Write(table), o.write(c, saved))
}

// stored is what the file of -json has already; nothing if it is empty.
func (o *peersOptions) stored() (*peers.Report, error) {
	if o.json == "" || o.json == "-" {
		return &peers.Report{}, nil
	}
	if about, err := os.Stat(o.json); err != nil || about.Size() == 0 {
		return &peers.Report{}, err
	}
	return peers.ReadFile(o.json)
}

// write writes the files, if there is something to write.
func (o *peersOptions) write(c *console, saved *peers.Report) error {
	if len(saved.Rows) == 0 {
		return nil
	}
	err := errors.Join(writeFile(c, o.json, saved.Save), writeFile(c, o.markdown, saved.WriteMarkdown))
	if o.svg == "" {
		return err
	}
	pictures := saved.Pictures()
	if len(pictures) == 0 {
		return errors.Join(err, fmt.Errorf("draw %s: none of the rows has ratios", o.svg))
	}
	return errors.Join(err, writeFile(c, o.svg, pictures[0].WriteSVG))
}

func parsePeers(c *console, args []string) (*peersOptions, error) {
	o := &peersOptions{}
	usual, long := peers.Rows()
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	only := flags.String("only", "", "the `rows` to measure, separated by commas (default: all that do not take long)\n"+
		strings.Join(usual, ", ")+"; and these take long: "+strings.Join(long, ", "))
	among := flags.String("peers", "", "the `peers` to measure, separated by commas; the first of them all is the base, and always measured (default: all)\n"+
		strings.Join(peers.Names(), ", "))
	flags.IntVar(&o.Rounds, "rounds", 9, "rounds of each row, each in a random order")
	flags.BoolVar(&o.Long, "long", os.Getenv("REDIAL_LONG") == "1", "the rows that take long as well; so says REDIAL_LONG=1")
	flags.StringVar(&o.json, "json", "", "keep the figures in this file: a row that is measured takes the place of the one that the file has, and its other rows stay; - is standard output")
	flags.StringVar(&o.from, "from", "", "measure nothing: print and draw what this `file` of -json has")
	flags.StringVar(&o.svg, "svg", "", "draw the ratios of receiving, sending and idle connections to this file, with the rows that -json has; - is standard output. \"bench report -peers\" draws the other ratios too")
	flags.StringVar(&o.markdown, "markdown", "", "write the medians to this file as the table of README.md, with the rows that -json has; - is standard output")
	if err := parse(c, flags, args); err != nil {
		return nil, err
	}
	var measures []string // flags about a measurement
	flags.Visit(func(f *flag.Flag) {
		if !slices.Contains([]string{"from", "svg", "markdown"}, f.Name) {
			measures = append(measures, "-"+f.Name)
		}
	})
	if o.from != "" && len(measures) > 0 {
		return nil, usageError{fmt.Errorf("-from measures nothing, and %s is about a measurement", strings.Join(measures, ", "))}
	}
	if o.Rounds < 1 {
		return nil, usageError{fmt.Errorf("want at least one of -rounds, not %d", o.Rounds)}
	}
	o.Rows, o.Peers = list(*only), list(*among)
	if err := o.Validate(); err != nil {
		return nil, usageError{err}
	}
	toOutput := 0
	for _, path := range []string{o.json, o.svg, o.markdown} {
		if path == "-" {
			toOutput++
		}
		if err := checkFile(path); err != nil {
			return nil, usageError{err}
		}
	}
	if toOutput > 1 {
		return nil, usageError{errors.New("only one of -json, -svg and -markdown can go to standard output")}
	}
	return o, nil
}
