package policy

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/pick"
)

// Params are the parameters of a rule. Zero means the rule's default.
type Params struct {
	Base    time.Duration // the first wait, before jitter
	Factor  float64       // growth per wait; at least 1
	Cap     time.Duration // the longest wait, before jitter
	Jitter  float64       // relative width of the jitter, or its standard deviation; negative: none
	Law     string        // of the jitter: none, full, equal, proportional, decorrelated
	Spread  time.Duration // range of the first wait, or of what is added to each
	Share   float64       // of the outage's age that a wait is
	Repeats float64       // how often the wait doubles, a whole number; negative: never
	Limit   time.Duration // on a dial
}

// Param is the name of a parameter, as it stands after the name of a policy.
type Param string

// The parameters.
const (
	Base    Param = "base"
	Factor  Param = "factor"
	Cap     Param = "cap"
	Jitter  Param = "jitter"
	Law     Param = "law"
	Spread  Param = "spread"
	Share   Param = "share"
	Repeats Param = "repeats"
	Limit   Param = "limit"
)

// Laws of jitter that the parsing and the making of a policy know by name.
const (
	proportional = "proportional"
	decorrelated = "decorrelated"
)

var laws = []string{"none", "full", "equal", proportional, decorrelated}

// param is one of the parameters: a time, a number or a word.
type param struct {
	name  Param
	d     *time.Duration
	x     *float64
	least float64 // of x
	law   *string
}

// all returns the parameters, which are those of p itself.
func (p *Params) all() []param {
	return []param{
		{name: Base, d: &p.Base}, {name: Factor, x: &p.Factor, least: 1}, {name: Cap, d: &p.Cap}, {name: Jitter, x: &p.Jitter},
		{name: Law, law: &p.Law}, {name: Spread, d: &p.Spread}, {name: Share, x: &p.Share}, {name: Repeats, x: &p.Repeats}, {name: Limit, d: &p.Limit},
	}
}

// set takes the parameter from a text.
func (p param) set(text string) (err error) {
	switch {
	case p.d != nil:
		if *p.d, err = cli.Time(text); err == nil && *p.d == 0 {
			err = errors.New("must be above 0")
		}
	case p.law != nil:
		*p.law, err = pick.One("law", text, laws, pick.Itself)
	default:
		*p.x, err = strconv.ParseFloat(text, 64)
		switch {
		case err != nil || math.IsNaN(*p.x) || math.IsInf(*p.x, 0) || *p.x < p.least:
			err = fmt.Errorf("must be a number, at least %g", p.least)
		case p.name == Repeats && *p.x != math.Trunc(*p.x):
			err = errors.New("must be a whole number")
		case *p.x == 0 && p.name == Share:
			err = errors.New("must be above 0")
		case *p.x == 0:
			*p.x = -1 // none, for 0 is the default
		}
	}
	return err
}

func (p param) given() bool {
	return p.d != nil && *p.d != 0 || p.x != nil && *p.x != 0 || p.law != nil && *p.law != ""
}

// String returns the parameter as it was given, such as "base=1s".
func (p param) String() string {
	switch {
	case p.d != nil:
		return fmt.Sprintf("%s=%s", p.name, short(*p.d))
	case p.law != nil:
		return fmt.Sprintf("%s=%s", p.name, *p.law)
	}
	return fmt.Sprintf("%s=%v", p.name, max(*p.x, 0))
}

// short is a time without units of which there are none: "1m", not "1m0s".
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Given returns the names of the parameters that are not zero.
func (p Params) Given() (given []Param) {
	for _, one := range p.all() {
		if one.given() {
			given = append(given, one.name)
		}
	}
	return given
}

// String lists the parameters that are not zero, such as "base=1s,cap=30s".
func (p Params) String() string {
	var all []string
	for _, one := range p.all() {
		if one.given() {
			all = append(all, one.String())
		}
	}
	return strings.Join(all, ",")
}

// check returns an error for parameters that mean nothing together.
func (p Params) check() error {
	switch {
	case p.Law == decorrelated && (p.Factor != 0 || p.Jitter != 0):
		return errors.New("factor and jitter mean nothing with law=decorrelated, which draws from base to three times the wait before")
	case p.Jitter != 0 && p.Law != "" && p.Law != proportional:
		return fmt.Errorf("jitter means nothing with law=%s", p.Law)
	}
	return nil
}
