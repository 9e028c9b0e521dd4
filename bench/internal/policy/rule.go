package policy

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Rule is a waiting rule with a name.
type Rule struct {
	Name    string
	Summary string  // one line, without a full stop
	Takes   []Param // the parameters that it has

	// New returns the rule's policy. Parameters that the rule does not take do not matter.
	New func(Params) backoff.Policy
}

// NameOf returns the name of a rule.
func NameOf(r Rule) string { return r.Name }

// Rules returns all rules: first those of the library, then those of package classic.
func Rules() []Rule {
	exponential := func(j backoff.Jitter) func(Params) backoff.Policy {
		return func(p Params) backoff.Policy {
			return &backoff.Exponential{Base: p.Base, Factor: p.Factor, Cap: p.Cap, Spread: p.Jitter, Jitter: j}
		}
	}
	grows := []Param{Base, Factor, Cap}
	jitters := []Param{Base, Factor, Cap, Jitter}
	ages := []Param{Base, Cap, Spread, Share}
	return []Rule{
		{"redial", "the library's default, Adaptive: half of the outage's age, at most 10 s, or 15 s after an overload", ages, func(p Params) backoff.Policy {
			return &backoff.Adaptive{Spread: p.Spread, Base: p.Base, Share: p.Share, Cap: p.Cap, OverloadCap: p.Cap}
		}},
		{"paced", "Paced: half of the outage's age, at most 30 s, or 60 s after an overload", ages, func(p Params) backoff.Policy {
			return &classic.Paced{Spread: p.Spread, Base: p.Base, Share: p.Share, Cap: p.Cap, OverloadCap: p.Cap}
		}},
		{"exponential", "1, 2, 4 s and so on, up to 30 s", grows, exponential(backoff.JitterNone)},
		{"full", "full jitter: from 0 to 0.5, 1, 2 s and so on, up to 30 s", grows, func(p Params) backoff.Policy {
			p.Base = cmp.Or(p.Base, time.Second/2)
			return exponential(backoff.JitterFull)(p)
		}},
		{"equal", "exponential with equal jitter: half is certain", grows, exponential(backoff.JitterEqual)},
		{"proportional", "exponential within 20 %", jitters, exponential(backoff.JitterProportional)},
		{"decorrelated", "from 1 s to three times the wait before, at most 30 s", []Param{Base, Cap}, func(p Params) backoff.Policy {
			return &classic.Decorrelated{Base: p.Base, Cap: p.Cap}
		}},
		{"normal", "exponential with normal noise of 10 %, which compounds: 100 ms to 15 min", jitters, func(p Params) backoff.Policy {
			return &classic.Normal{Min: p.Base, Factor: p.Factor, Jitter: p.Jitter, Max: p.Cap}
		}},
		{"own", "a law of your own: base, factor, cap, and the law of its jitter: none, full, equal, proportional, decorrelated", []Param{Base, Factor, Cap, Law, Jitter}, own},
		{"simple", "the retry storm's fixed pause of 100 ms", []Param{Base}, func(p Params) backoff.Policy {
			return &classic.Fixed{Wait: cmp.Or(p.Base, time.Second/10)}
		}},
		{"described", "the retry storm's normal noise, as its author describes it: 0.1, 0.27, 0.74 s and so on, up to 5 min", jitters, func(p Params) backoff.Policy {
			return &classic.Normal{Min: p.Base, Factor: cmp.Or(p.Factor, 2.71828), Jitter: p.Jitter, Max: cmp.Or(p.Cap, 5*time.Minute)}
		}},
		{"ocpp", "OCPP 2.0.1, a charging station: 10 to 20 s, three times doubled with as much again added, and then the same", []Param{Base, Spread, Repeats}, func(p Params) backoff.Policy {
			return &backoff.OCPP{WaitMinimum: p.Base, RandomRange: p.Spread, RepeatTimes: int(p.Repeats)}
		}},
		{"fixed", "1 s each time", []Param{Base}, func(p Params) backoff.Policy { return &classic.Fixed{Wait: p.Base} }},
		{"nats", "nats.go: 2 to 2.1 s", []Param{Base, Spread}, func(p Params) backoff.Policy {
			return &classic.NATS{Wait: p.Base, Jitter: p.Spread}
		}},
		{"celery", "Celery: whole seconds from 0 to 1, 2, 4 and so on, up to 600; both options are rounded up to whole seconds", []Param{Base, Cap}, func(p Params) backoff.Policy {
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
			return &classic.Cenkalti{Initial: p.Base, Multiplier: p.Factor, Randomization: p.Jitter, Max: p.Cap}
		}},
		{"grpc", "gRPC: 1 s, 1.6 times each, up to 2 min, within 20 %", jitters, func(p Params) backoff.Policy {
			return &classic.GRPC{Base: p.Base, Multiplier: p.Factor, Jitter: p.Jitter, Max: p.Cap}
		}},
		{"tailscale", "tailscale: 10 ms times the square of the number, up to 30 s, within 50 %", []Param{Cap}, func(p Params) backoff.Policy {
			return &classic.Tailscale{Max: p.Cap}
		}},
		{"jpillora", "jpillora/backoff: from 100 ms, jitter and then the cap of 10 s", grows, func(p Params) backoff.Policy {
			return &classic.JPillora{Min: p.Base, Factor: p.Factor, Max: p.Cap}
		}},
		{"recws", "recws: jpillora/backoff with 2 s, 1.5 and 30 s", nil, func(Params) backoff.Policy {
			return &classic.JPillora{Min: 2 * time.Second, Max: 30 * time.Second, Factor: 1.5}
		}},
		{"autopaho", "autopaho: 10 s each time", nil, func(Params) backoff.Policy { return &classic.Fixed{Wait: 10 * time.Second} }},
		{"centrifuge", "centrifuge-go: jpillora/backoff with 200 ms and 20 s, counted from 1", nil, func(Params) backoff.Policy {
			return from1{&classic.JPillora{Min: time.Second / 5, Max: 20 * time.Second}}
		}},
		{"stubborn", "stubborn-io: 4 s, doubling, within 5 %, up to 30 min", jitters, func(p Params) backoff.Policy {
			return &classic.Stubborn{Base: p.Base, Factor: p.Factor, Spread: p.Jitter, Max: p.Cap}
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

// own is a law of the user's: exponential growth, or decorrelated jitter, which has a growth of its own.
func own(p Params) backoff.Policy {
	if p.Law == decorrelated {
		return &classic.Decorrelated{Base: p.Base, Cap: p.Cap}
	}
	law := backoff.JitterFull
	switch {
	case p.Law == "none":
		law = backoff.JitterNone
	case p.Law == "equal":
		law = backoff.JitterEqual
	case p.Law == proportional, p.Law == "" && p.Jitter != 0:
		law = backoff.JitterProportional
	}
	return &backoff.Exponential{Base: p.Base, Factor: p.Factor, Cap: p.Cap, Spread: p.Jitter, Jitter: law}
}

// from1 is a policy of a client that counts its attempts from 1.
type from1 struct{ backoff.Policy }

func (f from1) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	a.N++
	return f.Policy.Next(a, r)
}
