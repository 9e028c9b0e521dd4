package classic_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/reconnect/backoff"
)

// policies returns one policy of each kind, made from four arbitrary numbers.
func policies(base, limit int64, factor, spread float64) map[string]backoff.Policy {
	d, l := time.Duration(base), time.Duration(limit)
	return map[string]backoff.Policy{
		"fixed":         &classic.Fixed{Wait: d},
		"nats":          &classic.NATS{Wait: d, Jitter: l},
		"celery":        &classic.Celery{Factor: int(base), Maximum: int(limit)},
		"celery old":    &classic.CeleryOld{Factor: int(base), Maximum: int(limit)},
		"ethernet":      &classic.Ethernet{Slot: d},
		"connect retry": &classic.ConnectRetry{MaxSleep: d},
		"cenkalti":      &classic.Cenkalti{Initial: d, Multiplier: factor, Randomization: spread, Max: l},
		"grpc":          &classic.GRPC{Base: d, Multiplier: factor, Jitter: spread, Max: l, Connect: d},
		"tailscale":     &classic.Tailscale{Max: d},
		"jpillora":      &classic.JPillora{Min: d, Max: l, Factor: factor},
		"stubborn":      &classic.Stubborn{Base: d, Factor: factor, Spread: spread, Max: l},
		"aws legacy":    &classic.AWSLegacy{Max: d},
		"aws":           &classic.AWS{Base: d, Max: l},
		"paced":         &classic.Paced{Spread: d, Base: d, Share: factor, Cap: l, OverloadCap: l},
		"decorrelated":  &classic.Decorrelated{Base: d, Cap: l},
		"no atom":       &classic.Decorrelated{Base: d, Cap: l, NoAtom: true},
		"normal":        &classic.Normal{Min: d, Factor: factor, Jitter: spread, Max: l},
		"ocpp":          &backoff.OCPP{WaitMinimum: d, RepeatTimes: int(limit), RandomRange: l},
	}
}

// longest is the longest wait of all, 146 years. NATS adds two of them.
const longest = time.Duration(1<<62 - 1)

// sound asserts that after n waits no policy returns a wait or a limit that is negative or
// has overflowed.
func sound(t *testing.T, policies map[string]backoff.Policy, n int) {
	t.Helper()
	for name, p := range policies {
		for _, source := range []rand.Source{constant(0), highest, rand.NewPCG(3, 4)} {
			s, _ := p.Next(backoff.History{N: n, Prev: 1 << 61}, rand.New(source))
			if min(s.Wait, s.Connect, s.Handshake) < 0 || s.Wait > longest && name != "nats" {
				t.Fatalf("%s: %+v after %d", name, s, n)
			}
		}
	}
}

func TestNoPolicyOverflowsOrGoesBelowZero(t *testing.T) {
	whole := []int64{0, 1, -1, 1e9, 3e10, 1 << 62, math.MaxInt64, math.MinInt64}
	broken := []float64{0, 1, -1, 0.2, 1.6, 2, 1e300, math.NaN(), math.Inf(1), math.Inf(-1)}
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		all := policies(whole[r.IntN(len(whole))], whole[r.IntN(len(whole))], broken[r.IntN(len(broken))], broken[r.IntN(len(broken))])
		sound(t, all, int(whole[r.IntN(len(whole))]))
		sound(t, all, r.IntN(70))
	}
}

func FuzzPolicies(f *testing.F) {
	f.Add(int64(1e9), int64(3e10), 2.0, 0.2, 5)
	f.Add(int64(math.MaxInt64), int64(math.MinInt64), math.NaN(), math.Inf(1), math.MaxInt)
	f.Fuzz(func(t *testing.T, base, limit int64, factor, spread float64, n int) {
		sound(t, policies(base, limit, factor, spread), n)
	})
}

// Run this with -race: goroutines share the policies. It also asserts that they do not
// allocate.
func TestPoliciesMayBeShared(t *testing.T) {
	for name, p := range policies(1e9, 3e10, 1.6, 0.2) {
		want := waits(p, 14, rand.NewPCG(5, 6))
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if got := waits(p, 14, rand.NewPCG(5, 6)); len(got) != len(want) || len(got) > 0 && got[len(got)-1] != want[len(want)-1] {
					t.Errorf("%s: %v, not %v", name, got, want)
				}
			})
		}
		group.Wait()
		r := rand.New(rand.NewPCG(1, 2))
		require.Zero(t, testing.AllocsPerRun(10, func() { p.Next(backoff.History{N: 3}, r) }), name)
	}
}
