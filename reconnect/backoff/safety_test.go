package backoff_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// odd holds the numbers that break formulas.
var odd = []float64{0, 1, -1, 0.5, 2, 1.6, 1e9, -1e9, 1e30, 1e-300, math.MaxInt64, math.MinInt64,
	math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64}

// duration converts x, and cuts what would overflow, because platforms differ in that.
func duration(x float64) time.Duration {
	switch {
	case x != x:
		return 0
	case x >= math.MaxInt64:
		return math.MaxInt64
	case x <= math.MinInt64:
		return math.MinInt64
	}
	return time.Duration(x)
}

// policies makes one of each kind, from four numbers that may be anything.
func policies(base, limit, factor, spread float64) map[string]backoff.Policy {
	d, l := duration(base), duration(limit)
	byAge := backoff.Timeout{Base: d, Share: factor, Cap: l}
	grows := backoff.Timeout{Base: d, Factor: factor, Cap: l}
	all := map[string]backoff.Policy{
		"lasting": backoff.WithTimeouts(&backoff.Adaptive{}, byAge, backoff.Timeout{Share: spread, Cap: -1}),
		"ocpp":    &backoff.OCPP{WaitMinimum: d, RepeatTimes: int(l), RandomRange: l},
		"first":   backoff.First(d, &backoff.Exponential{Cap: l}),
		"limit":   backoff.Limit(&backoff.Exponential{Base: d}, int(l), d),
		"patient": backoff.WithTimeouts(&backoff.Exponential{}, grows, backoff.Timeout{Base: l, Factor: spread}),
	}
	for jitter := range backoff.JitterNone + 2 {
		all["exponential "+string('0'+rune(jitter))] = &backoff.Exponential{
			Base: d, Factor: factor, Cap: l, OverloadCap: 2 * l, Jitter: jitter, Spread: spread,
		}
	}
	return all
}

// sound asserts that after a no policy returns a wait or a limit that is negative or has
// overflowed.
func sound(t *testing.T, policies map[string]backoff.Policy, a backoff.History) {
	t.Helper()
	for name, p := range policies {
		for _, source := range []rand.Source{constant(0), highest, rand.NewPCG(3, 4)} {
			s, _ := p.Next(a, rand.New(source))
			least, most := min(s.Wait, s.Connect, s.Handshake), max(s.Wait, s.Connect, s.Handshake)
			if least < 0 || most > 1<<62 {
				t.Fatalf("%s: %+v after %+v", name, s, a)
			}
		}
	}
}

func attempt(n, overloads int, prev, elapsed time.Duration, class uint8) backoff.History {
	verdict := backoff.Verdict{Class: backoff.Class(class), RetryAfter: elapsed}
	return backoff.History{N: n, Overloads: overloads, Prev: prev, Elapsed: elapsed, MinWait: prev, Verdict: verdict}
}

func TestNoPolicyOverflowsOrGoesBelowZero(t *testing.T) {
	r := seeded()
	pick := func() float64 { return odd[r.IntN(len(odd))] }
	for range 3000 {
		a := attempt(int(duration(pick())), int(duration(pick())), duration(pick()), duration(pick()), uint8(r.IntN(7)))
		sound(t, policies(pick(), pick(), pick(), pick()), a)
	}
}

func FuzzPolicies(f *testing.F) {
	f.Add(1e9, 3e10, 2.0, 0.2, 5, 0, int64(1e9), int64(0), uint8(1))
	f.Add(-1.0, math.Inf(1), math.NaN(), 1e300, math.MaxInt, math.MinInt, int64(math.MaxInt64), int64(math.MinInt64), uint8(2))
	f.Fuzz(func(t *testing.T, base, limit, factor, spread float64, n, overloads int, prev, elapsed int64, class uint8) {
		a := attempt(n, overloads, time.Duration(prev), time.Duration(elapsed), class)
		sound(t, policies(base, limit, factor, spread), a)
	})
}

func TestNoPolicyAllocates(t *testing.T) {
	r := seeded()
	a := backoff.History{N: 3, Prev: time.Second}
	for name, p := range policies(1e9, 3e10, 1.6, 0.2) {
		require.Zero(t, testing.AllocsPerRun(10, func() { p.Next(a, r) }), name)
	}
}

// Run with -race: policies are immutable and safe to share. The same numbers
// bring the same waits, whatever others do.
func TestPoliciesMayBeShared(t *testing.T) {
	all := policies(1e9, 3e10, 2, 0.2)
	all["default"] = backoff.Default()
	for name, p := range all {
		want := waits(p, 20, backoff.ClassOverload, rand.NewPCG(5, 6))
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if got := waits(p, 20, backoff.ClassOverload, rand.NewPCG(5, 6)); len(got) != len(want) || got[0] != want[0] || got[len(got)-1] != want[len(want)-1] {
					t.Errorf("%s: %v, not %v", name, got, want)
				}
			})
		}
		group.Wait()
	}
}

func TestUniformHoldsItsBounds(t *testing.T) {
	for _, c := range []struct{ low, high, least, most time.Duration }{
		{5, 8, 5, 7}, {5, 5, 5, 5}, {5, 4, 5, 5}, {-5, 8, 0, 7}, {-5, -4, 0, 0}, {0, math.MaxInt64, 0, math.MaxInt64 - 1},
	} {
		require.Equal(t, c.least, backoff.Uniform(rand.New(constant(0)), c.low, c.high))
		require.Equal(t, c.most, backoff.Uniform(rand.New(highest), c.low, c.high))
	}
}

func TestRandIsForAllGoroutines(t *testing.T) {
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if backoff.Rand().Uint64() == backoff.Rand().Uint64() {
				t.Error("the same number twice")
			}
		})
	}
	group.Wait()
}
