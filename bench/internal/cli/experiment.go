package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/table"
)

// Experiment is what a command does: it has flags, runs, and then shows what came of it if
// it is [Tabled], [Charted] or [Shown]. Nothing is run if a flag is wrong or a file cannot be
// written.
type Experiment interface {
	// Flags adds the flags, what checks them, and the files that can be written.
	Flags(f *Flags)
	// Run runs. When it fails or ctx ends, what it has found until then is shown, but not
	// drawn.
	Run(ctx context.Context, c *Console) error
}

// New returns a new Experiment of a type.
func New[T any, P interface {
	*T
	Experiment
}]() Experiment {
	return P(new(T))
}

// Tabled is an [Experiment] that comes to a table, which is printed with a note below it, or
// written to the file of -csv. A table without rows is neither.
type Tabled interface {
	Table() (t table.Table, note string)
}

// Charted is an [Experiment] that -svg draws.
type Charted interface{ Chart() *chart.Picture }

// Shown is an [Experiment] that prints in its own way what came of it.
type Shown interface{ Show(w io.Writer) error }

// file is one that an experiment can write.
type file struct {
	name, path string
	write      func(io.Writer) error
}

// File adds a flag for a file to be written when the run is over; "-" is standard
// output. It returns what the user has given.
func (f *Flags) File(name, help string, write func(io.Writer) error) (path *string) {
	one := &file{name: name, write: write}
	f.files = append(f.files, one)
	f.StringVar(&one.path, name, "", help+" to this `file`; - is standard output")
	return &one.path
}

// List adds the flag -list, with which there is no run but a list, or one more list to it.
func (f *Flags) List(what string, write func(w io.Writer)) {
	f.ListOrFail(what, func(w io.Writer) error { write(w); return nil })
}

// ListOrFail is [Flags.List] for a list that other flags may spoil.
func (f *Flags) ListOrFail(what string, write func(w io.Writer) error) {
	f.lists = append(f.lists, write)
	if list := f.Lookup("list"); list != nil {
		list.Usage += ", and " + what
		return
	}
	f.BoolVar(&f.listed, "list", false, "list "+what)
}

// Check adds a check of the flags, which is made when they are parsed.
func (f *Flags) Check(check func() error) { f.checks = append(f.checks, check) }

// Given reports whether the user has given a flag.
func (f *Flags) Given(name string) (given bool) {
	f.Visit(func(one *flag.Flag) { given = given || one.Name == name })
	return given
}

// Only returns an error for a flag that the user has given and that means nothing with another flag. The
// others are names with spaces between; -csv, -svg and -list always mean something.
func (f *Flags) Only(with, others string) (err error) {
	known := append(strings.Fields(others), "csv", "svg", "list")
	f.Visit(func(one *flag.Flag) {
		if !slices.Contains(known, one.Name) && err == nil {
			err = fmt.Errorf("-%s means nothing with -%s", one.Name, with)
		}
	})
	return err
}

// do does all of an experiment.
func (c *Console) do(ctx context.Context, command Command, args []string) error {
	x, f := command.New(), newFlags()
	x.Flags(f)
	tabled, _ := x.(Tabled)
	if tabled != nil {
		f.File("csv", "write the table as CSV", func(w io.Writer) error { t, _ := tabled.Table(); return t.WriteCSV(w) })
	}
	if charted, ok := x.(Charted); ok {
		f.File("svg", "draw a picture", func(w io.Writer) error { return charted.Chart().WriteSVG(w) })
	}
	if err := c.parse(command, f, args); err != nil {
		return err
	}
	if f.listed {
		for _, list := range f.lists {
			if err := list(c.Out); err != nil {
				return Usage(err)
			}
		}
		return nil
	}
	for _, check := range append(f.checks, f.checkFiles) {
		if err := check(); err != nil {
			return Usage(err)
		}
	}
	failed := x.Run(ctx, c)
	shown, err := c.show(x, f)
	if err != nil || !shown && failed != nil {
		return errors.Join(failed, err)
	}
	for _, one := range f.files {
		if failed != nil && one.name == "svg" {
			continue
		}
		if err := one.writeTo(c); err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

// show prints what came of x, where no file goes. It reports whether there was something.
func (c *Console) show(x Experiment, f *Flags) (something bool, err error) {
	w := c.Out
	if slices.ContainsFunc(f.files, func(one *file) bool { return one.path == "-" }) {
		w = c.Errs
	}
	switch x := x.(type) {
	case Tabled:
		t, note := x.Table()
		if len(t) < 2 {
			return false, nil
		}
		if err := t.Print(w); err != nil || note == "" {
			return true, err
		}
		_, err = fmt.Fprintln(w, note)
	case Shown:
		err = x.Show(w)
	}
	return true, err
}

// checkFiles reports whether the files can be written, before there is something to lose. What
// is in them stays.
func (f *Flags) checkFiles() error {
	var toOutput []string
	for _, one := range f.files {
		switch one.path {
		case "":
		case "-":
			toOutput = append(toOutput, "-"+one.name)
		default:
			opened, err := os.OpenFile(one.path, os.O_WRONLY|os.O_CREATE, 0o666)
			if err == nil {
				err = opened.Close()
			}
			if err != nil {
				return err
			}
		}
	}
	if len(toOutput) > 1 {
		return fmt.Errorf("%s cannot both go to standard output", strings.Join(toOutput, " and "))
	}
	return nil
}

// writeTo writes the file, if it is wanted and there is something to be written.
func (f *file) writeTo(c *Console) error {
	if f.path == "" {
		return nil
	}
	var b bytes.Buffer
	err := f.write(&b)
	switch {
	case err != nil:
		return fmt.Errorf("write %s: %w", f.path, err)
	case f.path == "-":
		_, err = b.WriteTo(c.Out)
	case b.Len() > 0:
		err = os.WriteFile(f.path, b.Bytes(), 0o666)
	}
	return err
}
