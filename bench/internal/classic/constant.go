package classic

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Fixed waits the same time before each attempt, as most hand-written loops do. Clients that
// lost their connections at one instant all dial at one instant, again and again.
type Fixed struct {
	Wait time.Duration // default 1 s; negative: 0
}

// Next returns the wait, and never gives up.
func (f *Fixed) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: span.Delay(f.Wait, time.Second)}, true
}

// NATS is the rule of nats.go (as of August 2026): Wait + U[0, Jitter), without growth.
// With TLS its Jitter is 1 s. This policy does not model several servers, nor that nats.go
// drops a server after 60 tries.
type NATS struct {
	Wait   time.Duration // default 2 s; negative: 0
	Jitter time.Duration // default 100 ms; negative: none
}

// Next returns the wait, and never gives up.
func (n *NATS) Next(_ backoff.History, r *rand.Rand) (backoff.Step, bool) {
	wait := span.Delay(n.Wait, 2*time.Second)
	jitter := span.Delay(n.Jitter, 100*time.Millisecond)
	return backoff.Step{Wait: span.Uniform(r, wait, wait+jitter)}, true
}
