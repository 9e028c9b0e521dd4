package queueing

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExpIsGoodToTenDigits(t *testing.T) {
	for x := -3.0; x <= 3; x += 0.01 {
		require.InEpsilon(t, math.Exp(x), exp(x), 1e-9, "%v", x)
	}
}

// 10 ms x LogNormal(0, 0.25).
func TestServiceTimesAreLogNormal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var sum, above float64
	const n = 200_000
	for range n {
		d := 10 * exp(sigma*r.NormFloat64())
		sum += d
		if d > 10 {
			above++
		}
	}
	require.InDelta(t, 1000*meanLatency, sum/n, 0.03)
	require.InDelta(t, 0.5, above/n, 0.005)
}

// The network's trick must not be seen: times of Exp(5 ms), independent of how many
// are on their way.
func TestANetworkTripIsExponential(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := network{rand: r, mean: 5e6}
	var sum, squares float64
	sent, now := make([]int64, 0, 200_000), int64(0)
	for done := 0; done < cap(sent); {
		at, ok := n.next()
		if next := now + 10_000 + r.Int64N(2000); len(sent) < cap(sent) && (!ok || next < at) {
			now = next
			n.push(now, request{call: uint32(len(sent))})
			sent = append(sent, now)
			continue
		}
		now = at
		took := float64(now - sent[n.pop(now).call])
		sum += took
		squares += took * took
		done++
	}
	mean := sum / float64(len(sent))
	require.InEpsilon(t, 5e6, mean, 0.02)
	require.InEpsilon(t, 5e6, math.Sqrt(squares/float64(len(sent))-mean*mean), 0.02)
}

// Past the deadline after 1/20, and if it would pass in the service after
// what is left and 1/5, but never longer than normally.
func TestAServerThatKnowsTheDeadlineHurries(t *testing.T) {
	s, err := Find("dp_vs_retry_budget")
	require.NoError(t, err)
	r, err := newRun(&Setup{Scenario: s, Strategy: s.Strategies[1], RPS: 100, Bucket: 50 * ms})
	require.NoError(t, err)
	r.calls = []call{{began: 0}} // its timeout is 100 ms
	for _, w := range []struct {
		now, took int64
		late      bool
	}{
		{90e6, 10e6, false}, // it is done at the deadline
		{94e6, 8e6, true},   // 6 ms are left, and 2
		{99e6, 3e6, true},
		{91e6, 10e6, true}, // 9 and 2 would be more than 10
		{100e6, 2e6, true},
		{101e6, 500_000, true},
	} {
		r.now = w.now
		took, late := r.hurry(0, 10e6)
		require.Equal(t, w.took, took, w.now)
		require.Equal(t, w.late, late, w.now)
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	s, err := Find("mfs")
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	s.Length = 10 * time.Second
	o := Setup{Scenario: s, Strategy: s.Strategies[0], RPS: 20_000}
	_, err = runUntil(ctx, o)
	require.ErrorIs(t, err, enough)
	o.RPS = 1000
	_, err = runUntil(ctx, o)
	require.NoError(t, err, "a short run is not worth breaking off")
}

func TestPermitsAreNeverExceeded(t *testing.T) {
	s, err := Find("simple_retry_vs_backoff_closed_loop")
	require.NoError(t, err)
	r, err := newRun(&Setup{Scenario: s, Strategy: s.Strategies[1], RPS: 1000, Seed: 1, Bucket: 50 * ms})
	require.NoError(t, err)
	least := r.permits
	for r.step() {
		require.GreaterOrEqual(t, r.permits, 0)
		least = min(least, r.permits)
	}
	require.Zero(t, least, "there are too few of them")
	require.Equal(t, 100, r.permits, "all are given back")
	require.Len(t, r.idle, len(r.calls), "and nothing is left")
}
