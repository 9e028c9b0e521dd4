package backoff_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// prompt returns the range of the wait, and the steps at its ends.
func prompt(p *backoff.Adaptive, a backoff.History) (low, high backoff.Step) {
	low, _ = p.Next(a, rand.New(constant(0)))
	high, _ = p.Next(a, rand.New(highest))
	low.Wait, high.Wait = low.Wait.Round(time.Millisecond), high.Wait.Round(time.Millisecond)
	low.Handshake, high.Handshake = low.Handshake.Round(time.Millisecond), high.Handshake.Round(time.Millisecond)
	return low, high
}

func TestPromptWaits(t *testing.T) {
	overload := backoff.Verdict{Class: backoff.ClassOverload}
	told := func(d time.Duration) backoff.Verdict {
		return backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: d}
	}
	for name, c := range map[string]struct {
		a         backoff.History
		low, high float64
	}{
		"first":                       {backoff.History{}, 0, 2},
		"refused in the first second": {backoff.History{N: 1, Elapsed: sec / 2}, 0.5, 1.6},
		"not after an overload":       {backoff.History{N: 1, Elapsed: sec / 2, Verdict: overload}, 1.2, 2.4},
		"young":                       {backoff.History{N: 2, Elapsed: 2 * sec}, 1.2, 2.4},
		"half of the age":             {backoff.History{N: 4, Elapsed: 12 * sec}, 3, 6},
		"old":                         {backoff.History{N: 9, Elapsed: time.Hour}, 5, 10},
		"old, overload":               {backoff.History{N: 9, Elapsed: time.Hour, Verdict: overload}, 7.5, 15},
		"hung":                        {backoff.History{N: 9, Elapsed: time.Hour, Hung: true, Hang: time.Minute, Verdict: overload}, 0, 0},
		"refused beside a hang":       {backoff.History{N: 9, Elapsed: time.Hour, Hang: time.Minute}, 1.5, 3},
		"told 10 s":                   {backoff.History{Verdict: told(10 * sec)}, 0, 2.5},
		"told 10 s for a minute":      {backoff.History{RetryAfterFor: time.Minute, Verdict: told(10 * sec)}, 0, 15},
		"told an hour for a day":      {backoff.History{RetryAfterFor: 24 * time.Hour, Verdict: told(time.Hour)}, 0, 3600},
		"extremes":                    {backoff.History{N: math.MaxInt, Elapsed: math.MaxInt64, Hang: math.MaxInt64, RetryAfterFor: math.MinInt64}, 5, 10},
		"negative":                    {backoff.History{N: -1, Elapsed: -1, Hang: -1}, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			low, high := prompt(&backoff.Adaptive{}, c.a)
			require.Equal(t, []float64{c.low, c.high}, []float64{low.Wait.Seconds(), high.Wait.Seconds()})
			require.Equal(t, 16*sec, low.Connect)
		})
	}
}

func TestPromptKnowsWhenAHandshakeHangs(t *testing.T) {
	for name, c := range map[string]struct {
		a         backoff.History
		low, high float64
		swap      bool
	}{
		"the first":                  {backoff.History{}, 8.333, 10, false},
		"the first beside":           {backoff.History{Hang: 10 * sec}, 8.333, 10, true},
		"the second beside":          {backoff.History{Hang: 20 * sec, DialsBeside: 1}, 8.333, 10, false},
		"the first after a refusal":  {backoff.History{Hang: 10 * sec, Refused: true}, 8.333, 10, false},
		"a 20th of the hang's age":   {backoff.History{Hang: 10 * time.Minute, DialsBeside: 50}, 25, 30, false},
		"whatever the age of a hang": {backoff.History{Hang: math.MaxInt64, DialsBeside: math.MaxInt}, 384307168, 461168602, false},
	} {
		t.Run(name, func(t *testing.T) {
			low, high := prompt(&backoff.Adaptive{}, c.a)
			require.InDelta(t, c.low, low.Handshake.Seconds(), 1)
			require.InDelta(t, c.high, high.Handshake.Seconds(), 1)
			require.Equal(t, c.swap, low.Swap)
		})
	}
}

func TestADialBesideThatFindsTheBacklogFullTakesThePlace(t *testing.T) {
	for _, a := range []backoff.History{{}, {Hang: sec}, {Hang: time.Hour, DialsBeside: 9, Refused: true}} {
		low, high := prompt(&backoff.Adaptive{}, a)
		require.Equal(t, a.Hang > 0, low.SwapIfFull)
		require.Equal(t, a.Hang > 0, high.SwapIfFull)
	}
}

func TestTheFieldsOfAdaptive(t *testing.T) {
	p := &backoff.Adaptive{
		Spread: 4 * sec, Base: sec, Share: 1, Cap: 20 * sec, OverloadCap: 40 * sec, RetryAfterShare: 0.5,
		Connect: 7 * sec, Hang: 6 * sec, HangShare: 0.5,
	}
	top := func(a backoff.History) backoff.Step { _, high := prompt(p, a); return high }
	overload := backoff.Verdict{Class: backoff.ClassOverload}
	require.Equal(t, 4*sec, top(backoff.History{}).Wait)
	require.Equal(t, 12*sec, top(backoff.History{N: 3, Elapsed: 12 * sec}).Wait)
	require.Equal(t, 20*sec, top(backoff.History{N: 3, Elapsed: time.Hour}).Wait)
	require.Equal(t, 40*sec, top(backoff.History{N: 3, Elapsed: time.Hour, Verdict: overload}).Wait)
	require.Equal(t, sec, top(backoff.History{N: 3, Verdict: overload}).Wait)
	require.Equal(t, 5*sec, top(backoff.History{Verdict: backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: 10 * sec}}).Wait)
	require.Equal(t, 7*sec, top(backoff.History{}).Connect)
	require.Equal(t, 6*sec, top(backoff.History{}).Handshake)
	require.Equal(t, time.Minute, top(backoff.History{Hang: 2 * time.Minute}).Handshake)
}

// These are the defaults that bench/DEFAULTS.md has chosen. If you change them, make its
// tables again.
func TestDefaultWaitsAsItSays(t *testing.T) {
	p := backoff.Default()
	require.Equal(t, []float64{2, 2.4, 2.4, 3.4, 5.1, 7.65, 10, 10}, waits(p, 8, backoff.ClassRetry, highest))
	require.Equal(t, []float64{0, 1, 1.2, 1.2, 1.2, 1.2}, waits(p, 6, backoff.ClassRetry, constant(0)), "refused at once: again in the second second")
	require.Equal(t, []float64{2, 2.4, 2.4, 3.4, 5.1, 7.65, 11.475, 15, 15}, waits(p, 9, backoff.ClassOverload, highest))
	require.Equal(t, []float64{0, 1.2, 1.2, 1.2}, waits(p, 4, backoff.ClassOverload, constant(0)))
	for _, class := range []backoff.Class{backoff.ClassRetry, backoff.ClassOverload} {
		require.Equal(t, waits(&backoff.Adaptive{}, 99, class, highest), waits(p, 99, class, highest))
	}
}

// Promise 2: ten thousand clients that are dropped at one instant.
func TestDefaultSpreadsTheFirstRedial(t *testing.T) {
	const clients, even = 10_000, 10_000 / 20 // in each 100 ms of 2 s
	r, bins := seeded(), map[time.Duration]int{}
	for range clients {
		s, _ := backoff.Default().Next(backoff.History{}, r)
		bins[s.Wait/(100*time.Millisecond)]++
	}
	require.Len(t, bins, 20)
	for bin, n := range bins {
		require.Less(t, n, even*5/4, "bin %d", bin)
	}
}

func TestALoneClientIsBackSoonAfterABlip(t *testing.T) {
	r, back := seeded(), make([]time.Duration, 10_000)
	for i := range back {
		var a backoff.History
		for ; back[i] < time.Second; a.N++ {
			a.Elapsed = back[i]
			s, _ := backoff.Default().Next(a, r)
			back[i] += s.Wait
		}
	}
	slices.Sort(back)
	require.InDelta(t, 1.5, back[len(back)/2].Seconds(), 0.05, "median")
}

func TestNilIsTheDefaultPolicy(t *testing.T) {
	const everything = backoff.ClassOverload
	want := waits(backoff.Default(), 9, everything, highest)
	require.Equal(t, want, waits(nil, 9, everything, highest))
	require.Equal(t, want, waits(backoff.Limit(nil, 0, 0), 9, everything, highest))
	limited := backoff.WithTimeouts(nil, backoff.Timeout{}, backoff.Timeout{})
	require.Equal(t, want, waits(limited, 9, everything, highest))
	require.Equal(t, waits(backoff.First(time.Second, &backoff.Adaptive{}), 9, everything, highest), waits(backoff.First(time.Second, nil), 9, everything, highest))
}

func TestDefaultDoesNotAllocate(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() { backoff.Default() }))
}
