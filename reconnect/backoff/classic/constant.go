package classic

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Fixed waits the same each time, as most hand-written loops do. A herd that was dropped
// at one instant dials at one instant, again and again.
type Fixed struct {
	Wait time.Duration // default 1 s; negative: 0
}

// Next waits and never gives up.
func (f *Fixed) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: orDefault(f.Wait, time.Second)}, true
}

// NATS is the rule of nats.go (as of August 2026): Wait + U[0, Jitter), without growth.
// With TLS its Jitter is 1 s. What nats.go does with several servers, and that it drops
// a server after 60 tries, is not in here.
type NATS struct {
	Wait   time.Duration // default 2 s; negative: 0
	Jitter time.Duration // default 100 ms; negative: none
}

// Next waits and never gives up.
func (n *NATS) Next(_ backoff.History, r *rand.Rand) (backoff.Step, bool) {
	wait := orDefault(n.Wait, 2*time.Second)
	jitter := orDefault(n.Jitter, 100*time.Millisecond)
	return backoff.Step{Wait: backoff.Uniform(r, wait, wait+jitter)}, true
}
