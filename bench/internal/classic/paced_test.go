package classic_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/reconnect/backoff"
)

// paced returns the least and the greatest wait after a, in seconds.
func paced(p *classic.Paced, n int, elapsed float64, class backoff.Class) (low, high float64) {
	a := backoff.History{N: n, Elapsed: time.Duration(elapsed * 1e9), Verdict: backoff.Verdict{Class: class}}
	least, goesOn := p.Next(a, rand.New(constant(0)))
	most, too := p.Next(a, rand.New(highest))
	if !goesOn || !too {
		return -1, -1 // it never gives up
	}
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
		{1, 1, backoff.ClassRetry, 1.2, 2.4}, // not in the first half of Spread
		{1, 1.1, backoff.ClassRetry, 1.2, 2.4},
		{2, 4.8, backoff.ClassRetry, 1.2, 2.4},
		{3, 20, backoff.ClassRetry, 5, 10},
		{9, 60, backoff.ClassRetry, 15, 30},
		{9, 1e6, backoff.ClassRetry, 15, 30},
		{9, 100, backoff.ClassOverload, 25, 50},
		{9, 1e6, backoff.ClassOverload, 30, 60},
	} {
		low, high := paced(&classic.Paced{}, c.n, c.elapsed, c.class)
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
		least, _ := new(classic.Paced).Next(a, rand.New(constant(0)))
		most, _ := new(classic.Paced).Next(a, rand.New(highest))
		require.Zero(t, least.Wait)
		require.Equal(t, c.high, most.Wait.Round(time.Millisecond), "%+v", c)
	}
}

func TestPacedWithoutASpreadHasNoFirstWaitOfItsOwn(t *testing.T) {
	low, high := paced(&classic.Paced{Spread: -1}, 0, 0, backoff.ClassRetry)
	require.Equal(t, []float64{1.2, 2.4}, []float64{low, high})
}

func TestPacedWithoutACapGoesOnGrowing(t *testing.T) {
	low, high := paced(&classic.Paced{Cap: -1, Share: 2}, 5, 1000, backoff.ClassRetry)
	require.Equal(t, []float64{1000, 2000}, []float64{low, high})
}
