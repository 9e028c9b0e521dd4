package waits

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/classic"
)

// Rule is a waiting rule with a name.
type Rule struct {
	Name    string
	Summary string  // one line, without a full stop
	Takes   []Param // the parameters that it has

	// New returns the rule's policy. Parameters that the rule does not take do not matter,
	// so that rules with different parameters can be compared.
	New func(Params) backoff.Policy
}

// Param is the name of a parameter, which is that of a flag too.
type Param string

// The parameters.
const (
	Base       Param = "base"
	Multiplier Param = "multiplier"
	Cap        Param = "cap"
	Jitter     Param = "jitter"
	Spread     Param = "spread"
	Share      Param = "share"
)

// Params are the parameters of a rule. Zero means the rule's default.
type Params struct {
	Base       time.Duration // the first wait, before jitter
	Multiplier float64       // growth per wait; at least 1
	Cap        time.Duration // the longest wait, before jitter
	Jitter     float64       // relative width of the jitter, or its standard deviation; negative: none
	Spread     time.Duration // range of the first wait, or of what is added to each
	Share      float64       // of the outage's age that a wait is
}

// param is one of the parameters: a time or a number.
type param struct {
	name Param
	d    *time.Duration
	x    *float64
}

// all returns the parameters, which are those of p itself.
func (p *Params) all() []param {
	return []param{
		{Base, &p.Base, nil}, {Multiplier, nil, &p.Multiplier}, {Cap, &p.Cap, nil},
		{Jitter, nil, &p.Jitter}, {Spread, &p.Spread, nil}, {Share, nil, &p.Share},
	}
}

func (p param) given() bool { return p.d != nil && *p.d != 0 || p.x != nil && *p.x != 0 }

// Given returns the names of the parameters that are not zero.
func (p Params) Given() (given []Param) {
	for _, one := range p.all() {
		if one.given() {
			given = append(given, one.name)
		}
	}
	return given
}

// Only returns p with the parameters that r takes, and the others zero.
func (p Params) Only(r Rule) Params {
	for _, one := range p.all() {
		switch {
		case slices.Contains(r.Takes, one.name):
		case one.d != nil:
			*one.d = 0
		default:
			*one.x = 0
		}
	}
	return p
}

// String lists the parameters that are not zero, such as "base=1s,cap=30s".
func (p Params) String() string {
	var all []string
	for _, one := range p.all() {
		switch {
		case !one.given():
		case one.d != nil:
			all = append(all, fmt.Sprintf("%s=%v", one.name, *one.d))
		default:
			all = append(all, fmt.Sprintf("%s=%v", one.name, max(*one.x, 0)))
		}
	}
	return strings.Join(all, ",")
}

// Rules returns all rules: first those of the library, then those of package classic.
func Rules() []Rule {
	exponential := func(j backoff.Jitter) func(Params) backoff.Policy {
		return func(p Params) backoff.Policy {
			return &backoff.Exponential{Base: p.Base, Factor: p.Multiplier, Cap: p.Cap, Spread: p.Jitter, Jitter: j}
		}
	}
	grows := []Param{Base, Multiplier, Cap}
	jitters := []Param{Base, Multiplier, Cap, Jitter}
	ages := []Param{Base, Cap, Spread, Share}
	return []Rule{
		{"redial", "the library's default, Adaptive: half of the outage's age, at most 10 s, or 15 s after an overload", ages, func(p Params) backoff.Policy {
			return &backoff.Adaptive{Spread: p.Spread, Base: p.Base, Share: p.Share, Cap: p.Cap, OverloadCap: p.Cap}
		}},
		{"paced", "Paced: half of the outage's age, at most 30 s, or 60 s after an overload", ages, func(p Params) backoff.Policy {
			return &classic.Paced{Spread: p.Spread, Base: p.Base, Share: p.Share, Cap: p.Cap, OverloadCap: p.Cap}
		}},
		{"exponential", "1, 2, 4 s and so on, up to 30 s", grows, exponential(backoff.JitterNone)},
		{"full", "exponential with full jitter", grows, exponential(backoff.JitterFull)},
		{"equal", "exponential with equal jitter: half is certain", grows, exponential(backoff.JitterEqual)},
		{"proportional", "exponential within 20 %", jitters, exponential(backoff.JitterProportional)},
		{"decorrelated", "from 1 s to three times the wait before, at most 30 s", []Param{Base, Cap}, func(p Params) backoff.Policy {
			return &classic.Decorrelated{Base: p.Base, Cap: p.Cap}
		}},
		{"normal", "exponential with normal noise of 10 %, which compounds: 100 ms to 15 min", jitters, func(p Params) backoff.Policy {
			return &classic.Normal{Min: p.Base, Factor: p.Multiplier, Jitter: p.Jitter, Max: p.Cap}
		}},
		{"fixed", "1 s each time", []Param{Base}, func(p Params) backoff.Policy { return &classic.Fixed{Wait: p.Base} }},
		{"nats", "nats.go: 2 to 2.1 s", []Param{Base, Spread}, func(p Params) backoff.Policy {
			return &classic.NATS{Wait: p.Base, Jitter: p.Spread}
		}},
		{"celery", "Celery: whole seconds from 0 to 1, 2, 4 and so on, up to 600; both parameters are rounded up to whole seconds", []Param{Base, Cap}, func(p Params) backoff.Policy {
			return &classic.Celery{Factor: whole(p.Base), Maximum: whole(p.Cap)}
		}},
		{"celery-old", "an older Celery: the cap comes after the jitter; rounded up likewise", []Param{Base, Cap}, func(p Params) backoff.Policy {
			return &classic.CeleryOld{Factor: whole(p.Base), Maximum: whole(p.Cap)}
		}},
		{"connect-retry", "connect_retry of APUE: 1, 2, 4 s up to half of 128 s, then the end", []Param{Cap}, func(p Params) backoff.Policy {
			return &classic.ConnectRetry{MaxSleep: p.Cap}
		}},
		{"ethernet", "IEEE 802.3: slots of 51.2 us, from 0 to 1, 3, 7 and so on, up to 1,023; 15 times", []Param{Base}, func(p Params) backoff.Policy {
			return &classic.Ethernet{Slot: p.Base}
		}},
		{"cenkalti", "cenkalti/backoff: 0.5 s, 1.5 times each, up to 60 s, within 50 %", jitters, func(p Params) backoff.Policy {
			return &classic.Cenkalti{Initial: p.Base, Multiplier: p.Multiplier, Randomization: p.Jitter, Max: p.Cap}
		}},
		{"grpc", "gRPC: 1 s, 1.6 times each, up to 2 min, within 20 %", jitters, func(p Params) backoff.Policy {
			return &classic.GRPC{Base: p.Base, Multiplier: p.Multiplier, Jitter: p.Jitter, Max: p.Cap}
		}},
		{"tailscale", "tailscale: 10 ms times the square of the number, up to 30 s, within 50 %", []Param{Cap}, func(p Params) backoff.Policy {
			return &classic.Tailscale{Max: p.Cap}
		}},
		{"jpillora", "jpillora/backoff: from 100 ms, jitter and then the cap of 10 s", grows, func(p Params) backoff.Policy {
			return &classic.JPillora{Min: p.Base, Factor: p.Multiplier, Max: p.Cap}
		}},
		{"recws", "recws: jpillora/backoff with 2 s, 1.5 and 30 s", nil, func(Params) backoff.Policy {
			return &classic.JPillora{Min: 2 * time.Second, Max: 30 * time.Second, Factor: 1.5}
		}},
		{"stubborn", "stubborn-io: 4 s, doubling, within 5 %, up to 30 min", jitters, func(p Params) backoff.Policy {
			return &classic.Stubborn{Base: p.Base, Factor: p.Multiplier, Spread: p.Jitter, Max: p.Cap}
		}},
		{"aws-legacy", "aws-sdk-go-v2: up to 2, 4, 8, 16 s, then exactly 20 s", []Param{Cap}, func(p Params) backoff.Policy {
			return &classic.AWSLegacy{Max: p.Cap}
		}},
		{"aws", "the 2026 mode of aws-sdk-go-v2: full jitter from 50 ms up to 20 s", []Param{Base, Cap}, func(p Params) backoff.Policy {
			return &classic.AWS{Base: p.Base, Max: p.Cap}
		}},
	}
}

// whole returns d in seconds, rounded up; 0 if d is 0.
func whole(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// NameOf returns the name of a rule.
func NameOf(r Rule) string { return r.Name }

// Check returns an error that names a parameter in p that none of the rules takes.
func (p Params) Check(rules []Rule) error {
	for _, given := range p.Given() {
		if !slices.ContainsFunc(rules, func(r Rule) bool { return slices.Contains(r.Takes, given) }) {
			return fmt.Errorf("-%s means nothing here: %s", given, strings.Join(pick.Names(rules, Rule.takes), "; "))
		}
	}
	return nil
}

// takes returns the names of the parameters that the rule takes, in words.
func (r Rule) takes() string {
	if len(r.Takes) == 0 {
		return r.Name + " has no parameters"
	}
	return r.Name + " takes " + r.flags(", ")
}

// Help returns the name of the rule, what it is, and the flags that it takes.
func (r Rule) Help() string {
	if len(r.Takes) == 0 {
		return r.Name + ": " + r.Summary
	}
	return r.Name + ": " + r.Summary + "; " + r.flags(" ")
}

func (r Rule) flags(between string) string {
	return strings.Join(pick.Names(r.Takes, func(p Param) string { return "-" + string(p) }), between)
}
