package classic_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// constant is a random source that always returns one number: 0 draws the least value of
// a range, highest the greatest.
type constant uint64

const highest = constant(1<<64 - 1)

func (c constant) Uint64() uint64 { return uint64(c) }

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// waits returns the waits 0 to n-1 of p, or fewer if p gives up.
func waits(p backoff.Policy, n int, source rand.Source) (seconds []float64) {
	var a backoff.History
	for ; a.N < n; a.N++ {
		s, ok := p.Next(a, rand.New(source))
		if !ok {
			break
		}
		seconds = append(seconds, s.Wait.Round(1000).Seconds())
		a.Prev = s.Wait
	}
	return seconds
}

// This tests the range of each rule with its own defaults; moments_test.go tests how
// the draws are distributed.
func TestRulesRangeAsInTheirSources(t *testing.T) {
	for name, c := range map[string]struct {
		policy      backoff.Policy
		least, most []float64
	}{
		"fixed":      {&classic.Fixed{}, []float64{1, 1, 1}, []float64{1, 1, 1}},
		"nats":       {&classic.NATS{}, []float64{2, 2}, []float64{2.1, 2.1}},
		"celery":     {&classic.Celery{}, []float64{0, 0, 0}, []float64{1, 2, 4}},
		"celery old": {&classic.CeleryOld{Maximum: 3}, []float64{0, 0, 0}, []float64{1, 2, 3}},
		"no jitter":  {&classic.Celery{NoJitter: true, Factor: 2, Maximum: 7}, []float64{2, 4, 7}, []float64{2, 4, 7}},
		"cenkalti":   {&classic.Cenkalti{}, []float64{0.25, 0.375}, []float64{0.75, 1.125}},
		"grpc":       {&classic.GRPC{}, []float64{1, 1.28}, []float64{1, 1.92}},
		"tailscale":  {&classic.Tailscale{}, []float64{0.005, 0.02, 0.045}, []float64{0.015, 0.06, 0.135}},
		"jpillora":   {&classic.JPillora{}, []float64{0.1, 0.1, 0.1}, []float64{0.1, 0.2, 0.4}},
		"recws":      {&classic.JPillora{Min: 2 * time.Second, Max: 4 * time.Second, Factor: 1.5}, []float64{2, 2, 2}, []float64{2, 3, 4}},
		"stubborn":   {&classic.Stubborn{}, []float64{3.8, 7.6}, []float64{4.2, 8.4}},
		"aws legacy": {&classic.AWSLegacy{}, []float64{0, 0, 0, 0, 20}, []float64{2, 4, 8, 16, 20}},
		"aws":        {&classic.AWS{}, []float64{0, 0}, []float64{0.05, 0.1}},
	} {
		require.Equal(t, c.least, waits(c.policy, len(c.least), constant(0)), name)
		require.Equal(t, c.most, waits(c.policy, len(c.most), highest), name)
	}
}

// The last waits of a long outage, with the defaults of each rule.
func TestRulesHaveTheLongestWaitOfTheirSources(t *testing.T) {
	for name, c := range map[string]struct {
		policy      backoff.Policy
		least, most time.Duration
	}{
		"celery":              {&classic.Celery{}, 0, 10 * time.Minute},
		"celery old":          {&classic.CeleryOld{NoJitter: true}, 10 * time.Minute, 10 * time.Minute},
		"celery old, in step": {&classic.CeleryOld{NoJitter: true, Factor: 2, Maximum: 7}, 7 * time.Second, 7 * time.Second},
		"cenkalti":            {&classic.Cenkalti{}, 30 * time.Second, 90 * time.Second},
		"grpc":                {&classic.GRPC{}, 96 * time.Second, 144 * time.Second},
		"tailscale":           {&classic.Tailscale{}, 15 * time.Second, 45 * time.Second},
		"jpillora":            {&classic.JPillora{}, 100 * time.Millisecond, 10 * time.Second},
		"stubborn":            {&classic.Stubborn{}, 30 * time.Minute, 30 * time.Minute},
		"aws legacy":          {&classic.AWSLegacy{}, 20 * time.Second, 20 * time.Second},
		"aws":                 {&classic.AWS{}, 0, 20 * time.Second},
		"decorrelated":        {&classic.Decorrelated{}, time.Second, 30 * time.Second},
		"normal":              {&classic.Normal{Jitter: -1}, 15 * time.Minute, 15 * time.Minute},
	} {
		a := backoff.History{N: 99, Prev: time.Hour}
		least, _ := c.policy.Next(a, rand.New(constant(0)))
		most, _ := c.policy.Next(a, rand.New(highest))
		require.Equal(t, c.least, least.Wait, name)
		require.Equal(t, c.most, most.Wait.Round(1000), name)
	}
}

// The ranges that begin at 0 have it: a client may dial at once.
func TestTheLeastDrawIsNoWaitAtAll(t *testing.T) {
	told := backoff.Verdict{RetryAfter: time.Minute}
	for name, c := range map[string]struct {
		policy backoff.Policy
		a      backoff.History
	}{
		"aws legacy":            {&classic.AWSLegacy{}, backoff.History{N: 1}},
		"aws legacy, up to Max": {&classic.AWSLegacy{Max: 16 * time.Second}, backoff.History{N: 3}},
		"aws":                   {&classic.AWS{}, backoff.History{N: 1}},
		"celery":                {&classic.Celery{}, backoff.History{N: 1}},
		"celery old":            {&classic.CeleryOld{}, backoff.History{N: 1}},
		"ethernet":              {&classic.Ethernet{}, backoff.History{N: 1}},
		"paced":                 {&classic.Paced{}, backoff.History{}},
		"paced, told":           {&classic.Paced{}, backoff.History{N: 1, Verdict: told}},
		"normal, off":           {&classic.Normal{Min: -1}, backoff.History{N: 9, Prev: time.Second}},
	} {
		s, ok := c.policy.Next(c.a, rand.New(constant(0)))
		require.True(t, ok, name)
		require.Zero(t, s.Wait, name)
	}
}

func TestASpreadAboveOneIsOne(t *testing.T) {
	for name, p := range map[string]backoff.Policy{
		"cenkalti": &classic.Cenkalti{Initial: time.Second, Randomization: 5},
		"stubborn": &classic.Stubborn{Base: time.Second, Spread: 5},
	} {
		require.Equal(t, []float64{0}, waits(p, 1, constant(0)), name)
		require.Equal(t, []float64{2}, waits(p, 1, highest), name)
	}
	require.Equal(t, []float64{1, 4}, waits(&classic.GRPC{Multiplier: 2, Jitter: 5}, 2, highest))
}

// The waits are 1 to 64 s, and there is no sleep after the last try.
func TestConnectRetrySleepsSevenTimes(t *testing.T) {
	require.Equal(t, []float64{1, 2, 4, 8, 16, 32, 64}, waits(&classic.ConnectRetry{}, 20, constant(0)))
	require.Equal(t, []float64{1, 2}, waits(&classic.ConnectRetry{MaxSleep: 7 * time.Second}, 20, constant(0)))
	require.Empty(t, waits(&classic.ConnectRetry{MaxSleep: -1}, 20, constant(0)))
}

// IEEE 802.3: slots of 51.2 us, at most 1023 of them, 16 attempts.
func TestEthernetWaitsInSlots(t *testing.T) {
	p := &classic.Ethernet{Slot: time.Second}
	require.Equal(t, []float64{1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 1023, 1023, 1023, 1023, 1023}, waits(p, 20, highest))
	require.Len(t, waits(p, 20, constant(0)), 15)
	s, _ := (&classic.Ethernet{}).Next(backoff.History{}, rand.New(highest))
	require.Equal(t, 51200*time.Nanosecond, s.Wait)
}

func TestGRPCIsAtLeastAsPatientAsItsWait(t *testing.T) {
	for n, want := range map[int]time.Duration{0: 20 * time.Second, 99: 96 * time.Second} {
		s, _ := (&classic.GRPC{}).Next(backoff.History{N: n}, rand.New(constant(0)))
		require.Equal(t, want, s.Connect)
	}
}

func TestTailscaleDoesNotOverflowWhereTheOriginalDoes(t *testing.T) {
	for _, n := range []int{960_383, 960_384, math.MaxInt} {
		s, _ := (&classic.Tailscale{}).Next(backoff.History{N: n}, rand.New(constant(0)))
		require.Equal(t, 15*time.Second, s.Wait)
	}
}

func TestNegativeIsOff(t *testing.T) {
	for name, p := range map[string]backoff.Policy{
		"fixed": &classic.Fixed{Wait: -1}, "celery": &classic.Celery{Factor: -1}, "celery old": &classic.CeleryOld{Maximum: -1},
		"nats": &classic.NATS{Wait: -1, Jitter: -1}, "ethernet": &classic.Ethernet{Slot: -1},
		"cenkalti": &classic.Cenkalti{Initial: -1}, "grpc": &classic.GRPC{Base: -1}, "tailscale": &classic.Tailscale{Max: -1},
		"jpillora": &classic.JPillora{Min: -1}, "stubborn": &classic.Stubborn{Base: -1}, "aws": &classic.AWS{Base: -1},
		"aws legacy": &classic.AWSLegacy{Max: -1},
	} {
		require.Equal(t, []float64{0, 0, 0}, waits(p, 3, highest), name)
	}
	require.Equal(t, []float64{2, 2}, waits(&classic.NATS{Jitter: -1}, 2, highest))
	require.Equal(t, []float64{0.5, 0.5}, waits(&classic.Cenkalti{Multiplier: -1, Randomization: -1}, 2, highest))
}
