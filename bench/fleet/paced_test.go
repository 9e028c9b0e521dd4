package fleet_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/fleet"
	"github.com/redial-go/redial/reconnect/backoff"
)

// spread returns the least and the greatest of many draws, in seconds.
func spread(p backoff.Policy, a backoff.Attempt) []float64 {
	r := rand.New(rand.NewPCG(1, 2))
	low, high := time.Duration(1<<62), time.Duration(0)
	for range 20_000 {
		s, _ := p.Next(a, r)
		low, high = min(low, s.Wait), max(high, s.Wait)
	}
	return []float64{low.Seconds(), high.Seconds()}
}

func TestPacedWaitsGoByTheOutage(t *testing.T) {
	cheap, dear := backoff.Verdict{Class: backoff.ClassRetry}, backoff.Verdict{Class: backoff.ClassOverload}
	ms := time.Millisecond
	for _, c := range []struct {
		a    backoff.Attempt
		want []float64
	}{
		{backoff.Attempt{Verdict: cheap}, []float64{0, 2}},
		{backoff.Attempt{N: 1, Elapsed: 300 * ms, Verdict: cheap}, []float64{0.7, 1.7}},
		{backoff.Attempt{N: 1, Elapsed: 300 * ms, Verdict: dear}, []float64{1.2, 2.4}},
		{backoff.Attempt{N: 2, Elapsed: 1500 * ms, Verdict: cheap}, []float64{1.2, 2.4}},
		{backoff.Attempt{N: 9, Elapsed: 20 * second, Verdict: cheap}, []float64{5, 10}},
		{backoff.Attempt{N: 9, Elapsed: time.Hour, Verdict: cheap}, []float64{15, 30}},
		{backoff.Attempt{N: 9, Elapsed: time.Hour, Verdict: dear}, []float64{30, 60}},
		{backoff.Attempt{N: 9, Elapsed: 20 * second, Verdict: backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: 3 * second}}, []float64{0, 7}},
		{backoff.Attempt{N: 9, Elapsed: 20 * second, Verdict: backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: 8 * second}}, []float64{0, 8}},
		{backoff.Attempt{N: 1, Elapsed: second / 2, Verdict: backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: second}}, []float64{0, 2.4}},
		{backoff.Attempt{N: 9, Elapsed: 20 * second, Verdict: backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Hour}}, []float64{0, 60}},
		{backoff.Attempt{N: 9, Elapsed: 1 << 62, Verdict: dear}, []float64{30, 60}},
	} {
		require.InDeltaSlice(t, c.want, spread(&fleet.Paced{}, c.a), 0.01, "%+v", c.a)
	}
}

func TestLimitsLastAsLongAsTheOutage(t *testing.T) {
	for _, c := range []struct {
		overloads int
		elapsed   time.Duration
		want      [2]time.Duration
	}{
		{0, time.Hour, [2]time.Duration{10 * second, 30 * second}},
		{1, second, [2]time.Duration{10 * second, 30 * second}},
		{1, 80 * second, [2]time.Duration{20 * second, 320 * second}},
		{99, time.Hour, [2]time.Duration{60 * second, 4 * time.Hour}},
	} {
		s, ok := fleet.Proposed().Next(backoff.Attempt{N: 5, Overloads: c.overloads, Elapsed: c.elapsed}, backoff.Rand())
		require.True(t, ok)
		require.Equal(t, c.want, [2]time.Duration{s.Connect, s.Handshake}, "%+v", c)
	}
}
