package storm

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/bench/internal/policy"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Client is how the clients of a storm wait after a failure: as one of the three kinds of
// the original does, or by a rule of package policy. The zero value is [Simple].
type Client struct {
	Kind   string        // simple, described, coded, or the name of a rule
	Params policy.Params // zero fields have the kind's own values; what the kind does not take does not matter
}

// The kinds of client of the original.
var (
	Simple    = Client{Kind: "simple"}    // tries again 100 ms after a failure
	Described = Client{Kind: "described"} // exponential as the original describes it: 0.1, 0.27, 0.74 s ... up to 5 min, with 10 % of noise
	Coded     = Client{Kind: "coded"}     // exponential as its program does it: see [AsCoded]
)

// Clients returns the three.
func Clients() []Client { return []Client{Simple, Described, Coded} }

// The constants of the original's clients.
const (
	clientMax    = 5 * time.Minute
	clientFactor = 2.71828
	clientJitter = 0.1
)

// Kinds returns the rules by which clients can wait: all there are, and the one that needs a client that
// thinks.
func Kinds() []policy.Rule {
	coded := policy.Rule{
		Name: Coded.Kind, Summary: "exponential as the retry storm's program does it: first 2.7 times the last time it thought",
		Takes: []policy.Param{policy.Factor, policy.Cap, policy.Jitter},
		New: func(p policy.Params) backoff.Policy {
			return &AsCoded{Factor: p.Factor, Jitter: p.Jitter, Max: p.Cap}
		},
	}
	return append(policy.Rules(), coded)
}

// Of returns the client of a choice among [Kinds].
func Of(c policy.Choice) Client { return Client{Kind: c.Name, Params: c.Params} }

// String returns the kind, with the parameters that it was given, as [policy.Parse] takes it.
func (c Client) String() string {
	return policy.Choice{Rule: policy.Rule{Name: cmp.Or(c.Kind, Simple.Kind)}, Params: c.Params}.String()
}

// Policy returns how one client waits. It may remember, so each client needs its own.
func (c Client) Policy() (backoff.Policy, error) {
	r, err := pick.One("client", cmp.Or(c.Kind, Simple.Kind), Kinds(), policy.NameOf)
	if err != nil {
		return nil, err
	}
	return r.New(c.Params), nil
}

// AsCoded is the backoff of the original program, with its faults: the delay that
// it remembers is overwritten by the time it thinks after a success; so the first
// pause is min(2.718 x that, 5 min), and each further one 2.718 times the one before;
// the noise is 0.1 s whatever the delay, and remembered with it; and a
// negative sum fires at once. Unlike the library's policies it belongs to one client
// and remembers.
type AsCoded struct {
	Factor float64       // default 2.71828
	Jitter float64       // standard deviation of the noise in seconds; default 0.1; negative: none
	Max    time.Duration // default 5 min

	last time.Duration
}

// Think tells it how long the client thinks after a success.
func (a *AsCoded) Think(d time.Duration) { a.last = d }

// Next never gives up.
func (a *AsCoded) Next(_ backoff.History, r *rand.Rand) (backoff.Step, bool) {
	d := min(cmp.Or(a.Factor, clientFactor)*a.last.Seconds(), cmp.Or(a.Max, clientMax).Seconds())
	d += float64(max(cmp.Or(a.Jitter, clientJitter), 0) * r.NormFloat64())
	a.last = time.Duration(d * float64(time.Second))
	return backoff.Step{Wait: max(a.last, 0)}, true
}
