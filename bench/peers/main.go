package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/redial-go/redial/bench/internal/cli"
)

func main() {
	if IsChild() { // a server or a client of the table
		os.Exit(ChildMain())
	}
	os.Exit(program.Main())
}

var program = cli.Program{Name: "peers", Commands: []cli.Command{{Summary: "measure redial beside other clients: messages, idle connections, redials", Example: "-only receive-128,send-64 -rounds 3", New: cli.New[measurement]}}}

// measurement is the flags of the program, and what came of them.
type measurement struct {
	Options
	from          string
	report, saved *Report // what was measured now, and with what was measured before
}

func (o *measurement) Flags(f *cli.Flags) {
	usual, long := Rows()
	only := f.String("only", "", "the `rows` to measure, separated by commas (default: all that do not take long)\n"+
		strings.Join(usual, ", ")+"; and these take long: "+strings.Join(long, ", "))
	among := f.String("peers", "", "the `peers` to measure, separated by commas; the first of them all is the base, and always measured (default: all)\n"+
		strings.Join(Names(), ", "))
	o.Rounds = 9
	f.Count(&o.Rounds, 1, "rounds", "rounds of each row, each in a random order")
	f.BoolVar(&o.Long, "long", os.Getenv("REDIAL_LONG") == "1", "the rows that take long as well; so says REDIAL_LONG=1")
	f.StringVar(&o.from, "from", "", "measure nothing: print and draw what this `file` of -json has")
	json := f.File("json", "keep the figures, where the file's other rows stay,", func(w io.Writer) error { return o.saved.Save(w) })
	f.File("svg", "draw the ratios of receiving, sending and idle connections, with the rows that -json has,", func(w io.Writer) error {
		p, err := o.saved.Picture()
		if err != nil {
			return err
		}
		return p.WriteSVG(w)
	})
	f.File("markdown", "write the medians, with the rows that -json has, as the table of README.md", func(w io.Writer) error {
		_, err := io.WriteString(w, o.saved.Markdown())
		return err
	})
	f.Check(func() (err error) {
		var measures []string // flags about a measurement
		for _, name := range []string{"json", "long", "only", "peers", "rounds"} {
			if f.Given(name) {
				measures = append(measures, "-"+name)
			}
		}
		if o.from != "" && len(measures) > 0 {
			return fmt.Errorf("-from measures nothing, and %s is about a measurement", strings.Join(measures, ", "))
		}
		o.Rows, o.Peers = cli.List(*only), cli.List(*among)
		if err := o.Validate(); err != nil {
			return err
		}
		if o.from != "" {
			o.saved, err = ReadFile(o.from)
		} else {
			o.saved, err = stored(*json)
		}
		return err
	})
}

func (o *measurement) Run(ctx context.Context, c *cli.Console) (err error) {
	if o.from != "" {
		o.report = o.saved
		return nil
	}
	p := cli.NewProgress(c, "measure", o.Steps())
	defer p.End()
	o.Progress = func() { p.Add(1) }
	o.report, err = Run(ctx, o.Options)
	o.saved.Replace(o.report)
	return err
}

// Show prints what was measured now.
func (o *measurement) Show(w io.Writer) error { return o.report.Write(w) }

// stored is what a file of -json has already; nothing if it is empty.
func stored(file string) (*Report, error) {
	if file == "" || file == "-" {
		return &Report{}, nil
	}
	if about, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) || err == nil && about.Size() == 0 {
		return &Report{}, nil
	}
	return ReadFile(file)
}
