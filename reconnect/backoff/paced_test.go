package backoff_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// paced returns the least and the greatest wait after a, in seconds.
func paced(p *backoff.Paced, n int, elapsed float64, class backoff.Class) (low, high float64) {
	a := backoff.History{N: n, Elapsed: time.Duration(elapsed * 1e9), Verdict: backoff.Verdict{Class: class}}
	least, _ := p.Next(a, rand.New(constant(0)))
	most, _ := p.Next(a, rand.New(highest))
	return least.Wait.Round(1000).Seconds(), most.Wait.Round(1000).Seconds()
}

func TestPacedWaitsByTheOutage(t *testing.T) {
	for _, c := range []struct {
		n         int
		elapsed   float64
		class     backoff.Class
		low, high float64
	}{
		{0, 0, backoff.ClassRetry, 0, 2},
		{1, 0.7, backoff.ClassRetry, 0.3, 1.3}, // until [1 s, 2 s) since the loss
		{1, 0.7, backoff.ClassOverload, 1.2, 2.4},
		{1, 1.1, backoff.ClassRetry, 1.2, 2.4},
		{2, 4.8, backoff.ClassRetry, 1.2, 2.4},
		{3, 20, backoff.ClassRetry, 5, 10},
		{9, 60, backoff.ClassRetry, 15, 30},
		{9, 1e6, backoff.ClassRetry, 15, 30},
		{9, 100, backoff.ClassOverload, 25, 50},
		{9, 1e6, backoff.ClassOverload, 30, 60},
	} {
		low, high := paced(&backoff.Paced{}, c.n, c.elapsed, c.class)
		require.Equal(t, []float64{c.low, c.high}, []float64{low, high}, "%+v", c)
	}
}

// Promise 9: no client comes before the time that the server said, and not all come then.
func TestPacedSpreadsClientsThatWereToldTheSame(t *testing.T) {
	for _, c := range []struct {
		n                   int
		told, elapsed, high time.Duration
	}{
		{0, 20 * time.Second, 0, 20 * time.Second},
		{1, time.Second, 0, 2400 * time.Millisecond},
		{3, 5 * time.Second, 5 * time.Second, 5 * time.Second},
		{3, 5 * time.Second, 40 * time.Second, 15 * time.Second},
		{3, time.Hour, 2 * time.Hour, time.Minute},
	} {
		a := backoff.History{N: c.n, Elapsed: c.elapsed, Verdict: backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: c.told}}
		least, _ := new(backoff.Paced).Next(a, rand.New(constant(0)))
		most, _ := new(backoff.Paced).Next(a, rand.New(highest))
		require.Zero(t, least.Wait)
		require.Equal(t, c.high, most.Wait.Round(time.Millisecond), "%+v", c)
	}
}

func TestPacedWithoutASpreadHasNoFirstWaitOfItsOwn(t *testing.T) {
	low, high := paced(&backoff.Paced{Spread: -1}, 0, 0, backoff.ClassRetry)
	require.Equal(t, []float64{1.2, 2.4}, []float64{low, high})
}

func TestPacedWithoutACapGoesOnGrowing(t *testing.T) {
	low, high := paced(&backoff.Paced{Cap: -1, Share: 2}, 5, 1000, backoff.ClassRetry)
	require.Equal(t, []float64{1000, 2000}, []float64{low, high})
}

func TestATimeoutMayGoByTheOutage(t *testing.T) {
	p := backoff.WithTimeouts(&backoff.Paced{}, backoff.Timeout{Share: 0.25}, backoff.Timeout{Share: 4, Cap: -1})
	for _, c := range []struct {
		overloads          int
		elapsed            time.Duration
		connect, handshake time.Duration
	}{
		{0, time.Hour, 16 * time.Second, 30 * time.Second},
		{1, time.Second, 16 * time.Second, 30 * time.Second},
		{1, 2 * time.Minute, 30 * time.Second, 8 * time.Minute},
		{100, time.Hour, 96 * time.Second, 4 * time.Hour},
	} {
		s, _ := p.Next(backoff.History{N: 1, Overloads: c.overloads, Elapsed: c.elapsed}, seeded())
		require.Equal(t, []time.Duration{c.connect, c.handshake}, []time.Duration{s.Connect, s.Handshake}, "%+v", c)
	}
}
