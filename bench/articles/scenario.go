package articles

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/articles/queueing"
	"github.com/redial-go/redial/bench/internal/cli"
)

// ownFigures are the user's own, which take the place of a scenario's.
type ownFigures struct {
	flags              *cli.Flags
	timeouts           times
	latency, from, to  time.Duration
	length, base, most time.Duration
	share, limit       float64
	cpus, retries      int
	jitter, budget     string
}

// times is a flag for one or more times, separated by commas.
type times []time.Duration

func (t *times) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]time.Duration(*t)), " ", ","), "[]")
}

func (t *times) Set(text string) error {
	*t = nil
	for _, word := range cli.List(text) {
		d, err := cli.Time(word)
		if err != nil {
			return err
		}
		*t = append(*t, d)
	}
	return nil
}

// add adds the flags.
func (x *ownFigures) add(f *cli.Flags) {
	x.flags = f
	f.Var(&x.timeouts, "timeout", "own figures: the `time` for which a client waits for a request; of 100ms,200ms each call draws one")
	f.Pause(&x.latency, "latency", "own figures: the median time in which the server serves a request")
	f.Count(&x.cpus, 1, "cpus", "own figures: how many requests the server serves at once")
	f.Seconds(&x.from, "fail-from", "own figures: when the failure begins")
	f.Seconds(&x.to, "fail-to", "own figures: when the failure ends")
	f.Float64Var(&x.share, "fail-share", 0, "own figures: the share of the requests that fail in it, 0 to 1")
	f.Pause(&x.length, "length", "own figures: how long calls come")
	f.Float64Var(&x.limit, "limit", 0, "own figures: calls under way at most, in seconds of -rps (0.1: a tenth of it); 0: any number")
	f.Count(&x.retries, 0, "retries", "own figures: how often a strategy retries at most, if it retries")
	f.Seconds(&x.base, "base", "own figures: the wait before the first retry, which doubles with each; 0: at once")
	f.Seconds(&x.most, "cap", "own figures: the longest wait before a retry")
	f.StringVar(&x.jitter, "jitter", "", "own figures: how a wait is drawn: none, full, equal")
	f.StringVar(&x.budget, "budget", "", "own figures: the retry budget: none, a share such as 10%, grpc, aws, aws-2026, envoy")
}

// apply changes a scenario and its strategies, whose names then say so.
func (x *ownFigures) apply(s *queueing.Scenario) error {
	s.Name += x.given("timeout", "latency", "cpus", "fail-from", "fail-to", "fail-share", "length", "limit")
	set(x.flags, "timeout", (*[]time.Duration)(&x.timeouts), &s.Timeouts)
	set(x.flags, "latency", &x.latency, &s.Latency)
	set(x.flags, "cpus", &x.cpus, &s.Processors)
	set(x.flags, "fail-from", &x.from, &s.Failure.From)
	set(x.flags, "fail-to", &x.to, &s.Failure.To)
	set(x.flags, "fail-share", &x.share, &s.Failure.Share)
	set(x.flags, "length", &x.length, &s.Length)
	set(x.flags, "limit", &x.limit, &s.Limit)
	s.Strategies = slices.Clone(s.Strategies)
	for i := range s.Strategies {
		if s.Strategies[i].Retries > 0 {
			x.change(&s.Strategies[i])
		}
	}
	if err := s.Check(); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	return nil
}

// change changes a strategy that retries. A cap and a jitter mean nothing to one that retries at once.
func (x *ownFigures) change(y *queueing.Strategy) {
	y.Name += x.given("retries", "base")
	set(x.flags, "retries", &x.retries, &y.Retries)
	set(x.flags, "base", &x.base, &y.Base)
	if y.Base == 0 {
		y.Cap, y.Jitter = 0, ""
	} else {
		y.Name += x.given("cap", "jitter")
		set(x.flags, "cap", &x.most, &y.Cap)
		set(x.flags, "jitter", &x.jitter, &y.Jitter)
	}
	y.Name += x.given("budget")
	set(x.flags, "budget", &x.budget, &y.Budget)
}

// set sets what the user has given.
func set[T any](f *cli.Flags, name string, from, into *T) {
	if f.Given(name) {
		*into = *from
	}
}

// given returns what the user has given of some flags, as it stands in a command.
func (x *ownFigures) given(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		if x.flags.Given(name) {
			fmt.Fprintf(&b, " -%s %s", name, cmp.Or(x.flags.Lookup(name).Value.String(), "0"))
		}
	}
	return b.String()
}

// listScenarios lists the scenarios and their strategies.
func listScenarios(w io.Writer) {
	also, _ := queueing.Find("retry_cb_vs_budget") // part of another, and so not in the list of all
	for _, s := range slices.Concat(queueing.Scenarios(), queueing.MoreScenarios(), []queueing.Scenario{also}) {
		fmt.Fprintln(w, s.Name)
		for _, y := range s.Strategies {
			fmt.Fprintln(w, "   ", y.Name)
		}
	}
}
