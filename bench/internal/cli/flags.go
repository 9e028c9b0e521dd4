package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Flags are the flags of a command, and what belongs to them.
type Flags struct {
	*flag.FlagSet
	checks []func() error
	files  []*file
	listed bool // -list is given
	list   func(w io.Writer)
}

func newFlags() *Flags { return &Flags{FlagSet: flag.NewFlagSet("", flag.ContinueOnError)} }

// Seconds adds a flag for a length of time: "1.5s", "2m", or a number of seconds. What d is
// before is the default.
func (f *Flags) Seconds(d *time.Duration, name, help string) { f.Var(seconds{d}, name, help) }

// Pause is [Flags.Seconds] for a time above 0.
func (f *Flags) Pause(d *time.Duration, name, help string) { f.Var(pause{d}, name, help) }

// Count adds a flag for a whole number that is not too small.
func (f *Flags) Count(n *int, least int, name, help string) { f.Var(count{n, least}, name, help) }

// Number adds a flag for a number above 0 that is not too small.
func (f *Flags) Number(x *float64, least float64, name, help string) {
	f.Var(number{x: x, least: least}, name, help)
}

// NumberOrNone is [Flags.Number] for one of which 0 means none, and is stored as -1.
func (f *Flags) NumberOrNone(x *float64, name, help string) {
	f.Var(number{x: x, orNone: true}, name, help)
}

// pause is a flag for a length of time above 0: "1.5s", "2m", or a number of seconds.
type pause struct{ d *time.Duration }

func (p pause) String() string { return seconds(p).String() }

func (p pause) Set(text string) error {
	if err := (seconds(p)).Set(text); err != nil {
		return err
	}
	if *p.d == 0 {
		return errors.New("must be above 0")
	}
	return nil
}

// count is a flag for a whole number that is not too small.
type count struct {
	n     *int
	least int
}

func (c count) String() string {
	if c.n == nil || *c.n == 0 {
		return "" // so that package flag prints no default
	}
	return strconv.Itoa(*c.n)
}

func (c count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < c.least {
		return fmt.Errorf("must be a whole number, at least %d", c.least)
	}
	*c.n = n
	return nil
}

// number is a flag for a number that is not too small. With orNone, 0 is allowed too and
// is stored as -1, which in a policy means: none.
type number struct {
	x      *float64
	least  float64
	orNone bool
}

func (n number) String() string {
	if n.x == nil || *n.x == 0 {
		return "" // so that package flag prints no default
	}
	return strconv.FormatFloat(*n.x, 'g', -1, 64)
}

func (n number) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < n.least:
		return fmt.Errorf("must be a number, at least %g", n.least)
	case x == 0 && n.orNone:
		x = -1
	case x == 0:
		return errors.New("must be above 0")
	}
	*n.x = x
	return nil
}

// seconds is a flag for a length of time: "1.5s", "2m", or a number of seconds.
type seconds struct{ d *time.Duration }

func (s seconds) String() string {
	if s.d == nil || *s.d == 0 {
		return "" // so that package flag prints no default
	}
	return s.d.String()
}

func (s seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d < 0 {
		return errors.New("must be a time, such as 1.5s or 20, which is 20s")
	}
	*s.d = d
	return nil
}

// List returns what is between the commas.
func List(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
