package fleet

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/classic"
)

// Clients returns those that are compared: the library as it is ("redial") and as it was
// ("paced"), a rule that was tried on the way ("v2"), and what others do, one dial at a
// time and with the limits on a try that they have. The first dial of most comes at once.
func Clients() []Client {
	const second = time.Second
	whole := func(name string, limit time.Duration, p backoff.Policy) Client {
		once := backoff.Timeout{Base: limit, Factor: 1, Cap: limit}
		return Client{Name: name, Policy: backoff.WithTimeouts(p, once, once), Whole: true, OneConnection: true, StableAfter: -1, Credit: -1}
	}
	atOnce := func(p backoff.Policy) backoff.Policy { return backoff.First(0, p) }
	return []Client{
		{Name: "redial", Policy: &backoff.Prompt{}, Addresses: true},
		{Name: "paced", Policy: Paced(&backoff.Paced{}), OneConnection: true, Credit: -1},
		{Name: "v2", Policy: v2{}},
		whole("full 0.5-30s", 2*second, &backoff.Exponential{Base: second / 2}),
		whole("full 1-30s", 2*second, &backoff.Exponential{}),
		whole("full 1-5s", 2*second, &backoff.Exponential{Cap: 5 * second}),
		whole("full 1-10s", 2*second, &backoff.Exponential{Cap: 10 * second}),
		whole("full 0.5-15s, 5s", 5*second, &backoff.Exponential{Base: second / 2, Cap: 15 * second}),
		whole("fixed 1s", 2*second, &classic.Fixed{}),
		whole("exponential 1-30s", 2*second, &backoff.Exponential{Jitter: backoff.JitterNone}),
		whole("cenkalti", 2*second, atOnce(&classic.Cenkalti{})),
		whole("recws", 2*second, atOnce(&classic.JPillora{Min: 2 * second, Max: 30 * second, Factor: 1.5})),
		whole("nats.go", 2*second, &classic.NATS{}),
		whole("nats.go TLS", 2*second, &classic.NATS{Jitter: second}),
		whole("autopaho", 10*second, atOnce(&classic.Fixed{Wait: 10 * second})),
		whole("centrifuge-go", 5*second, backoffFrom1(&classic.JPillora{Min: second / 5, Max: 20 * second})),
		{Name: "gRPC", Policy: atOnce(&classic.GRPC{}), Whole: true, OneConnection: true, StableAfter: -1, Credit: -1},
		whole("gRPC, 2s", 2*second, atOnce(&classic.GRPC{})),
		whole("tailscale", 10*second, &classic.Tailscale{}),
		whole("decorrelated 1-30s", 2*second, &backoff.Decorrelated{}),
		whole("stubborn-io", 10*second, &classic.Stubborn{}),
	}
}

// Paced returns p with the limits that the library's default had before it was
// [backoff.Prompt], when it dialed once at a time and a short session counted for nothing:
// after an overload they grow with the outage.
func Paced(p backoff.Policy) backoff.Policy {
	return backoff.WithTimeouts(p, backoff.Timeout{Share: 0.25, Cap: time.Minute}, backoff.Timeout{Share: 4, Cap: 6 * time.Hour})
}

// Named returns the client of that name among Clients.
func Named(name string) (Client, bool) {
	for _, c := range Clients() {
		if c.Name == name {
			return c, true
		}
	}
	return Client{}, false
}

// backoffFrom1 is p for those who count their attempts from 1.
func backoffFrom1(p backoff.Policy) backoff.Policy { return from1{p} }

type from1 struct{ backoff.Policy }

func (f from1) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	a.N++
	return f.Policy.Next(a, r)
}
