package classic

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/span"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Cenkalti is the delay of cenkalti/backoff v5: uniform around
// d = min(Max, Initial*Multiplier^n), from d*(1-Randomization) to d*(1+Randomization).
// The cap comes first and the jitter after it, so that the longest wait is 90 s. Put
// [backoff.Limit] around it to give up after 15 min, as that package does.
type Cenkalti struct {
	Initial       time.Duration // default 500 ms; negative: no wait
	Multiplier    float64       // default 1.5; below 1: no growth
	Randomization float64       // default 0.5; above 1: 1; negative: none
	Max           time.Duration // default 60 s; negative: no wait
}

// Next returns the wait, and never gives up.
func (c *Cenkalti) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	d := span.Grow(span.Delay(c.Initial, 500*time.Millisecond), span.OrUsual(c.Multiplier, 1.5), a.N, span.Delay(c.Max, time.Minute))
	return backoff.Step{Wait: around(r, d, c.Randomization, 0.5)}, true
}

// GRPC is the connection backoff of grpc-go. The first wait is exactly Base for all clients.
// Each further wait is uniform within Jitter around min(Max, Base*Multiplier^n). The limit
// on connecting is the longer of Connect and the wait.
type GRPC struct {
	Base       time.Duration // default 1 s; negative: no wait
	Multiplier float64       // default 1.6; below 1: no growth
	Jitter     float64       // default 0.2; above 1: 1; negative: none
	Max        time.Duration // default 120 s; negative: no wait
	Connect    time.Duration // MinConnectTimeout; default 20 s; negative: 0
}

// Next returns the wait, and never gives up.
func (g *GRPC) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	base := span.Delay(g.Base, time.Second)
	wait := base
	if a.N > 0 {
		d := span.Grow(base, span.OrUsual(g.Multiplier, 1.6), a.N, span.Delay(g.Max, 2*time.Minute))
		wait = around(r, d, g.Jitter, 0.2)
	}
	return backoff.Step{Wait: wait, Connect: max(span.Delay(g.Connect, 20*time.Second), wait)}, true
}

// Tailscale is tailscale's util/backoff: uniform within a half around
// min(Max, k^2 * 10 ms), with k = N+1. It grows slowly: 1 s at the tenth wait, 30 s at the
// 55th. The first waits of all clients lie within 10 ms.
type Tailscale struct {
	Max time.Duration // default 30 s (an argument there); negative: no wait
}

// Next returns the wait, and never gives up.
func (t *Tailscale) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	k := time.Duration(min(max(a.N, 0), 500_000)) + 1 // the original overflows at 960,384
	d := min(k*k*10*time.Millisecond, span.Delay(t.Max, 30*time.Second))
	return backoff.Step{Wait: around(r, d, 0.5, 0.5)}, true
}

// around draws from d*(1-spread) to d*(1+spread), as [span.Around] says.
func around(r *rand.Rand, d time.Duration, spread, usual float64) time.Duration {
	low, high := span.Around(d, spread, usual)
	return span.Uniform(r, low, high)
}
