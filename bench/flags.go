package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/articles/waits"
)

// addParams adds the flags for the parameters of waiting rules.
func addParams(flags *flag.FlagSet, p *waits.Params) {
	flags.Var(pause{&p.Base}, string(waits.Base), "the first wait, before jitter, of the policies that have it; default: their own, as for the five that follow")
	flags.Var(number{x: &p.Multiplier, least: 1}, string(waits.Multiplier), "how many times longer each wait is")
	flags.Var(pause{&p.Cap}, string(waits.Cap), "the longest wait, before jitter")
	flags.Var(number{x: &p.Jitter, orNone: true}, string(waits.Jitter), "how wide the jitter is, as a share of the wait; 0: none")
	flags.Var(pause{&p.Spread}, string(waits.Spread), "the range of the first wait, or of what is added to each")
	flags.Var(number{x: &p.Share}, string(waits.Share), "the share of the outage's age that a wait is")
}

// chooseRules is waits.Choose with an error that names the flag.
func chooseRules(name string, from []waits.Rule, names string, p waits.Params) ([]waits.Rule, error) {
	rules, err := waits.Choose(from, names, p)
	if err != nil && !strings.HasPrefix(err.Error(), "-") {
		err = fmt.Errorf("-%s: %w", name, err)
	}
	return rules, err
}

// ruleHelp returns the names of the rules and the flags that they take.
func ruleHelp(rules []waits.Rule) string {
	var lines []string
	for _, r := range rules {
		line := r.Name + ": " + r.Summary
		for i, p := range r.Takes {
			if i == 0 {
				line += ";"
			}
			line += " -" + string(p)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
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
