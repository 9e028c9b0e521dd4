package retrystorm

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/classic"
)

// Client is one of the three kinds of client of a storm.
type Client int

// The kinds of client.
const (
	Fixed     Client = iota // tries again 100 ms after a failure
	Described               // exponential as the original describes it: 0.1, 0.27, 0.74 s ... up to 5 min, with 10 % of noise
	Coded                   // exponential as its program does it: see [AsCoded]
)

var clients = [...]string{"fixed", "described", "coded"}

// Clients returns all kinds.
func Clients() []Client { return []Client{Fixed, Described, Coded} }

// String returns the kind's name: fixed, described or coded.
func (c Client) String() string {
	if c < 0 || int(c) >= len(clients) {
		return fmt.Sprintf("client %d", int(c))
	}
	return clients[c]
}

// ParseClient returns the kind of that name.
func ParseClient(name string) (Client, error) {
	for c, n := range clients {
		if n == name {
			return Client(c), nil
		}
	}
	return 0, fmt.Errorf("find client %q: there are fixed, described, coded", name)
}

// The constants of the clients.
const (
	clientMin    = 100 * time.Millisecond
	clientMax    = 5 * time.Minute
	clientFactor = 2.71828
	clientJitter = 0.1
)

// policy returns how a client of the kind waits. All but Coded is the library's.
func (c Client) policy() backoff.Policy {
	switch c {
	case Described:
		return &backoff.Normal{Min: clientMin, Factor: clientFactor, Jitter: clientJitter, Max: clientMax}
	case Coded:
		return &AsCoded{}
	default:
		return &classic.Fixed{Wait: clientMin}
	}
}

// AsCoded is the backoff of the original program, with its faults: the delay that
// it remembers is overwritten by the time it thinks after a success; so the first
// pause is min(2.718 x that, 5 min), and each further one 2.718 times the one before;
// the noise is 0.1 s whatever the delay, and remembered with it; and a
// negative sum fires at once. Unlike the library's policies it belongs to one client
// and remembers.
type AsCoded struct{ last time.Duration }

// Think tells it how long the client thinks after a success.
func (a *AsCoded) Think(d time.Duration) { a.last = d }

// Next never gives up.
func (a *AsCoded) Next(_ backoff.Attempt, r *rand.Rand) (backoff.Step, bool) {
	d := min(clientFactor*a.last.Seconds(), clientMax.Seconds())
	d += float64(clientJitter * r.NormFloat64())
	a.last = time.Duration(d * float64(time.Second))
	return backoff.Step{Wait: max(a.last, 0)}, true
}
