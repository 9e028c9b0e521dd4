package fleet

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/internal/policy"
	"github.com/redial-go/redial/reconnect/backoff"
)

// compared are the policies whose tables DEFAULTS.md has: the library as it is and as it was, and what
// others do.
const compared = "redial,paced,full,full:base=1s,full:base=1s,cap=5s,full:base=1s,cap=10s,full:cap=15s,limit=5s,fixed,exponential,cenkalti,recws," +
	"nats,nats:spread=1s,autopaho,centrifuge,grpc,grpc:limit=2s,tailscale,decorrelated,stubborn"

// Clients returns the clients that are compared.
func Clients() []Client {
	all, err := Parse("policy", compared)
	if err != nil {
		panic(err)
	}
	return all
}

// makes are the rules that are those of a library whose limit on a dial, or first dial, is known.
var makes = map[string]struct {
	limit  time.Duration // 0: none of its own
	atOnce bool          // the first dial comes at once
}{
	"cenkalti": {0, true}, "recws": {2 * time.Second, true}, "nats": {2 * time.Second, false},
	"autopaho": {10 * time.Second, true}, "centrifuge": {5 * time.Second, false}, "grpc": {0, true},
	"tailscale": {10 * time.Second, false}, "stubborn": {10 * time.Second, false},
}

// Rules returns the rules by which a client can wait. Each but the library's own takes a limit on a
// dial too.
func Rules() []policy.Rule {
	all := policy.Rules()
	for i, r := range all {
		if r.Name != "redial" && r.Name != "paced" {
			all[i].Takes = append(slices.Clone(r.Takes), policy.Limit)
		}
	}
	return all
}

// Of returns the client that waits as it is chosen. The library is as it is ("redial") and as it
// was ("paced"). All others dial one connection at a time, with the limit on a dial that is chosen, or that the
// make has, or [LentLimit].
func Of(choice policy.Choice) Client {
	c := Client{Name: choice.String(), Policy: choice.New()}
	if choice.Rule.Name == "redial" {
		c.Addresses = true
		return c
	}
	c.OneConnection, c.Credit = true, -1
	if choice.Rule.Name == "paced" {
		c.Policy = backoff.WithSlow(Paced(c.Policy), backoff.SlowWait{Min: 2 * time.Minute})
		return c
	}
	c.Whole, c.StableAfter = true, 1
	kind := makes[choice.Rule.Name]
	if kind.atOnce {
		c.Policy = backoff.First(0, c.Policy)
	}
	limit := cmp.Or(choice.Limit, kind.limit)
	switch {
	case limit == 0 && choice.Rule.Name == "grpc":
		c.Policy = wholeGRPC{c.Policy}
		return c
	case limit == 0:
		c.Lent = true
	}
	return c.limited(cmp.Or(limit, LentLimit))
}

// Parse returns the clients of a list of policies: see [policy.Parse].
func Parse(what, text string) (all []Client, err error) {
	choices, err := policy.Parse(what, text, Rules())
	for _, c := range choices {
		all = append(all, Of(c))
	}
	return all, err
}

// limited returns c with one limit on a dial.
func (c Client) limited(limit time.Duration) Client {
	always := backoff.Timeout{Base: limit, Factor: 1, Cap: limit}
	c.Policy, c.Limit = backoff.WithTimeouts(c.Policy, always, always), limit
	return c
}

// Paced returns p with the limits that the library's default had before it was
// [backoff.Adaptive], when it dialed once at a time and a short session counted for nothing:
// after an overload they grow with the outage.
func Paced(p backoff.Policy) backoff.Policy {
	connect := backoff.Timeout{Base: 15 * time.Second, Share: 0.25, Cap: time.Minute}
	handshake := backoff.Timeout{Share: 4, Cap: 6 * time.Hour}
	return backoff.WithTimeouts(p, connect, handshake)
}

// NameOf returns the name of a client.
func NameOf(c Client) string { return c.Name }

// Find returns the client of one policy, such as "full:base=500ms,cap=15s".
func Find(text string) (Client, error) {
	all, err := Parse("policy", text)
	switch {
	case err != nil:
		return Client{}, err
	case len(all) != 1:
		return Client{}, fmt.Errorf("want one policy, not %q", text)
	}
	return all[0], nil
}

// wholeGRPC makes gRPC's limit the one limit on each dial: on the first too, which has none by
// [backoff.First], and on a handshake, which package lab would otherwise let take
// [backoff.DefaultHandshake].
type wholeGRPC struct{ backoff.Policy }

func (g wholeGRPC) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	s, ok := g.Policy.Next(a, r)
	s.Connect = cmp.Or(s.Connect, 20*time.Second)
	s.Handshake = s.Connect
	return s, ok
}
