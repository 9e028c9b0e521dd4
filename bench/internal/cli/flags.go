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

	"github.com/redial-go/redial/bench/internal/pick"
)

// Flags are the flags of a command, and what belongs to them.
type Flags struct {
	*flag.FlagSet
	About  string // what -h prints of the command, below its first line
	checks []func() error
	files  []*file
	listed bool // -list is given
	lists  []func(w io.Writer) error
}

func newFlags() *Flags { return &Flags{FlagSet: flag.NewFlagSet("", flag.ContinueOnError)} }

// value is a flag of a type. The value that it has before is the default.
type value[T comparable] struct {
	x     *T
	parse func(text string) (T, error)
}

func (v value[T]) String() string {
	var none T
	if v.x == nil || *v.x == none {
		return "" // so that package flag prints no default
	}
	return fmt.Sprint(*v.x)
}

func (v value[T]) Set(text string) error {
	x, err := v.parse(text)
	if err == nil {
		*v.x = x
	}
	return err
}

// Word returns what stands for the value in the help.
func (v value[T]) Word() string {
	switch any(v.x).(type) {
	case *time.Duration:
		return "time"
	case *int:
		return "n"
	}
	return "number"
}

// Seconds adds a flag for a length of time: "1.5s", "2m", or a number of seconds.
func (f *Flags) Seconds(d *time.Duration, name, help string) {
	f.Var(value[time.Duration]{d, Time}, name, help)
}

// Time returns a length of time: "1.5s", "2m", or a number of seconds.
func Time(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d < 0 {
		return 0, errors.New("must be a time, such as 1.5s or 20, which is 20s")
	}
	return d, nil
}

var errNone = errors.New("must be above 0")

// Pause is [Flags.Seconds] for a time above 0.
func (f *Flags) Pause(d *time.Duration, name, help string) {
	f.Var(value[time.Duration]{d, func(text string) (time.Duration, error) {
		d, err := Time(text)
		if err == nil && d == 0 {
			err = errNone
		}
		return d, err
	}}, name, help)
}

// Count adds a flag for a whole number that is not too small.
func (f *Flags) Count(n *int, least int, name, help string) {
	f.Var(value[int]{n, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least {
			return 0, fmt.Errorf("must be a whole number, at least %d", least)
		}
		return n, nil
	}}, name, help)
}

// Number adds a flag for a number above 0 that is not too small.
func (f *Flags) Number(x *float64, least float64, name, help string) {
	f.number(x, least, name, help, func() (float64, error) { return 0, errNone })
}

// NumberOrNone is [Flags.Number] for one of which 0 means none, and is stored as -1.
func (f *Flags) NumberOrNone(x *float64, name, help string) {
	f.number(x, 0, name, help, func() (float64, error) { return -1, nil })
}

func (f *Flags) number(x *float64, least float64, name, help string, zero func() (float64, error)) {
	f.Var(value[float64]{x, func(text string) (float64, error) {
		x, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < least:
			return 0, fmt.Errorf("must be a number, at least %g", least)
		case x == 0:
			return zero()
		}
		return x, nil
	}}, name, help)
}

// Seed adds the flag -seed for runs that count up from it.
func (f *Flags) Seed(seed *uint64) {
	f.Uint64Var(seed, "seed", 1, "seed of the first run; the next runs count up")
}

// OneOf adds a flag for the name of one of some things. The names follow the first line of help.
func OneOf[T any](f *Flags, into *T, name, usual, help string, all []T, nameOf func(T) string) {
	wanted := f.String(name, usual, inFirstLine(help, ": "+strings.Join(pick.Names(all, nameOf), ", ")))
	f.Check(func() (err error) {
		*into, err = pick.One("-"+name, *wanted, all, nameOf)
		return err
	})
}

// SomeOf adds a flag for the names of some things, separated by commas, or "all". Without a default it
// may be empty.
func SomeOf[T any](f *Flags, into *[]T, name, usual, help string, all []T, nameOf func(T) string) {
	names := f.String(name, usual, inFirstLine(help, ", separated by commas, or all"))
	f.Check(func() (err error) {
		if *names == "" && usual == "" {
			return nil
		}
		*into, err = Some("-"+name, *names, all, nameOf)
		return err
	})
}

// inFirstLine puts words at the end of the first line of help.
func inFirstLine(help, words string) string {
	first, more, several := strings.Cut(help, "\n")
	if several {
		words += "\n"
	}
	return first + words + more
}

// Some returns the things of a list of names, or all. A list without names is an error.
func Some[T any](what, names string, all []T, nameOf func(T) string) (some []T, err error) {
	if names == "all" {
		return all, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		x, err := pick.One(what, strings.TrimSpace(name), all, nameOf)
		if err != nil {
			return nil, err
		}
		some = append(some, x)
	}
	return some, nil
}

// List returns what is between the commas.
func List(text string) []string {
	if text == "" {
		return nil
	}
	words := strings.Split(text, ",")
	for i, word := range words {
		words[i] = strings.TrimSpace(word)
	}
	return words
}
