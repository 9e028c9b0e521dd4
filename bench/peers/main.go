package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/redial-go/redial/bench/internal/cli"
)

func main() {
	if IsChild() { // a server or a client of the table
		os.Exit(ChildMain())
	}
	os.Exit(program.Main())
}

var program = cli.Program{Name: "peers", Commands: []cli.Command{{Run: measurePeers}}}

// peersOptions are the flags of the program.
type peersOptions struct {
	Options
	from, json, svg, more, markdown string
}

func measurePeers(ctx context.Context, c *cli.Console, args []string) error {
	o, err := parsePeers(c, args)
	if err != nil {
		return err
	}
	var (
		report, saved *Report
		failure       error
	)
	if o.from != "" {
		if report, err = ReadFile(o.from); err != nil {
			return err
		}
		saved = report
	} else {
		if saved, err = o.stored(); err != nil {
			return err
		}
		p := cli.NewProgress(c, "measure", o.Steps())
		o.Progress = func() { p.Add(1) }
		report, failure = Run(ctx, o.Options)
		p.End()
		saved.Replace(report)
	}
	table := c.Out
	if o.svg == "-" || o.more == "-" || o.markdown == "-" || o.json == "-" {
		table = c.Errs
	}
	return errors.Join(failure, report.Write(table), o.write(c, saved))
}

// stored is what the file of -json has already; nothing if it is empty.
func (o *peersOptions) stored() (*Report, error) {
	if o.json == "" || o.json == "-" {
		return &Report{}, nil
	}
	if about, err := os.Stat(o.json); err != nil || about.Size() == 0 {
		return &Report{}, err
	}
	return ReadFile(o.json)
}

// write writes the files, if there is something to write.
func (o *peersOptions) write(c *cli.Console, saved *Report) error {
	if len(saved.Rows) == 0 {
		return nil
	}
	err := errors.Join(cli.WriteFile(c, o.json, saved.Save), cli.WriteFile(c, o.markdown, saved.WriteMarkdown))
	pictures := saved.Pictures()
	for i, file := range []string{o.svg, o.more} {
		switch {
		case file == "":
		case i < len(pictures):
			err = errors.Join(err, cli.WriteFile(c, file, pictures[i].WriteSVG))
		default:
			err = errors.Join(err, fmt.Errorf("draw %s: none of the rows has ratios", file))
		}
	}
	return err
}

func parsePeers(c *cli.Console, args []string) (*peersOptions, error) {
	o := &peersOptions{}
	usual, long := Rows()
	flags := cli.NewFlags()
	only := flags.String("only", "", "the `rows` to measure, separated by commas (default: all that do not take long)\n"+
		strings.Join(usual, ", ")+"; and these take long: "+strings.Join(long, ", "))
	among := flags.String("peers", "", "the `peers` to measure, separated by commas; the first of them all is the base, and always measured (default: all)\n"+
		strings.Join(Names(), ", "))
	flags.IntVar(&o.Rounds, "rounds", 9, "rounds of each row, each in a random order")
	flags.BoolVar(&o.Long, "long", os.Getenv("REDIAL_LONG") == "1", "the rows that take long as well; so says REDIAL_LONG=1")
	flags.StringVar(&o.json, "json", "", "keep the figures in this file: a row that is measured takes the place of the one that the file has, and its other rows stay; - is standard output")
	flags.StringVar(&o.from, "from", "", "measure nothing: print and draw what this `file` of -json has")
	flags.StringVar(&o.svg, "svg", "", "draw the ratios of receiving, sending and idle connections to this file, with the rows that -json has; - is standard output")
	flags.StringVar(&o.more, "more", "", "draw the ratios of the other rows to this file; - is standard output")
	flags.StringVar(&o.markdown, "markdown", "", "write the medians to this file as the table of README.md, with the rows that -json has; - is standard output")
	if err := cli.Parse(c, flags, args); err != nil {
		return nil, err
	}
	var measures []string // flags about a measurement
	flags.Visit(func(f *flag.Flag) {
		if !slices.Contains([]string{"from", "svg", "markdown", "more"}, f.Name) {
			measures = append(measures, "-"+f.Name)
		}
	})
	if o.from != "" && len(measures) > 0 {
		return nil, cli.Usagef("-from measures nothing, and %s is about a measurement", strings.Join(measures, ", "))
	}
	if o.Rounds < 1 {
		return nil, cli.Usagef("want at least one of -rounds, not %d", o.Rounds)
	}
	o.Rows, o.Peers = cli.List(*only), cli.List(*among)
	if err := o.Validate(); err != nil {
		return nil, cli.Usage(err)
	}
	toOutput := 0
	for _, path := range []string{o.json, o.svg, o.more, o.markdown} {
		if path == "-" {
			toOutput++
		}
		if err := cli.CheckFile(path); err != nil {
			return nil, cli.Usage(err)
		}
	}
	if toOutput > 1 {
		return nil, cli.Usage(errors.New("only one of -json, -svg, -more and -markdown can go to standard output"))
	}
	return o, nil
}
