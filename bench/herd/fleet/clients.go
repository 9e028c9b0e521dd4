package fleet

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/classic"
	"github.com/redial-go/redial/reconnect/backoff/schedule"
)

// LentLimit is the limit on a dial that [Clients] gives to the makes that have none of their
// own. It is that of nats.go and recws.
const LentLimit = 2 * time.Second

// Clients returns the clients that are compared: the library as it is ("redial") and as it
// was ("paced"), and what others do, one dial at a time and with the limits on a dial that they have, or [LentLimit]. The first dial of most
// comes at once.
func Clients() []Client {
	const second = time.Second
	whole := func(name string, limit time.Duration, p backoff.Policy) Client {
		return Client{Name: name, Policy: p, Whole: true, OneConnection: true, StableAfter: 1, Credit: -1}.limited(limit)
	}
	lent := func(name string, p backoff.Policy) Client {
		c := whole(name, LentLimit, p)
		c.Lent = true
		return c
	}
	atOnce := func(p backoff.Policy) backoff.Policy { return backoff.First(0, p) }
	return []Client{
		{Name: "redial", Policy: &backoff.Adaptive{}, Addresses: true},
		{Name: "paced", Policy: Paced(&classic.Paced{}), OneConnection: true, Credit: -1},
		lent("full", &backoff.Exponential{Base: second / 2}),
		lent("full-1-30s", &backoff.Exponential{}),
		lent("full-1-5s", &backoff.Exponential{Cap: 5 * second}),
		lent("full-1-10s", &backoff.Exponential{Cap: 10 * second}),
		whole("full-0.5-15s-5s", 5*second, &backoff.Exponential{Base: second / 2, Cap: 15 * second}),
		lent("fixed", &classic.Fixed{}),
		lent("exponential", &backoff.Exponential{Jitter: backoff.JitterNone}),
		lent("cenkalti", atOnce(&classic.Cenkalti{})),
		whole("recws", 2*second, atOnce(&classic.JPillora{Min: 2 * second, Max: 30 * second, Factor: 1.5})),
		whole("nats", 2*second, &classic.NATS{}),
		whole("nats-tls", 2*second, &classic.NATS{Jitter: second}),
		whole("autopaho", 10*second, atOnce(&classic.Fixed{Wait: 10 * second})),
		whole("centrifuge", 5*second, from1{&classic.JPillora{Min: second / 5, Max: 20 * second}}),
		{Name: "grpc", Policy: wholeGRPC{atOnce(&classic.GRPC{})}, Whole: true, OneConnection: true, StableAfter: 1, Credit: -1},
		whole("grpc-2s", 2*second, atOnce(&classic.GRPC{})),
		whole("tailscale", 10*second, &classic.Tailscale{}),
		lent("decorrelated", &classic.Decorrelated{}),
		whole("stubborn", 10*second, &classic.Stubborn{}),
	}
}

// Lend returns c with another limit on a dial if c has none of its own, and else c.
func (c Client) Lend(limit time.Duration) Client {
	if !c.Lent {
		return c
	}
	return c.limited(limit)
}

// limited returns c with one limit on a dial.
func (c Client) limited(limit time.Duration) Client {
	always := schedule.Timeout{Base: limit, Factor: 1, Cap: limit}
	c.Policy, c.Limit = schedule.WithTimeouts(c.Policy, always, always), limit
	return c
}

// Paced returns p with the limits that the library's default had before it was
// [backoff.Adaptive], when it dialed once at a time and a short session counted for nothing:
// after an overload they grow with the outage.
func Paced(p backoff.Policy) backoff.Policy {
	return schedule.WithTimeouts(p, schedule.Timeout{Base: 15 * time.Second, Share: 0.25, Cap: time.Minute}, schedule.Timeout{Share: 4, Cap: 6 * time.Hour})
}

// NameOf returns the name of a client.
func NameOf(c Client) string { return c.Name }

// Find returns the client of a name among Clients.
func Find(name string) (Client, error) { return pick.One("policy", name, Clients(), NameOf) }

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

// from1 is a policy of a client that counts its attempts from 1.
type from1 struct{ backoff.Policy }

func (f from1) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	a.N++
	return f.Policy.Next(a, r)
}
