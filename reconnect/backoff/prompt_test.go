package backoff_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// prompt returns the range of the wait, and the steps at its ends.
func prompt(p *backoff.Prompt, a backoff.Attempt) (low, high backoff.Step) {
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
		a         backoff.Attempt
		low, high float64
	}{
		"first":                       {backoff.Attempt{}, 0, 2},
		"refused in the first second": {backoff.Attempt{N: 1, Elapsed: sec / 2}, 0.5, 1.6},
		"not after an overload":       {backoff.Attempt{N: 1, Elapsed: sec / 2, Verdict: overload}, 1.2, 2.4},
		"young":                       {backoff.Attempt{N: 2, Elapsed: 2 * sec}, 1.2, 2.4},
		"half of the age":             {backoff.Attempt{N: 4, Elapsed: 12 * sec}, 3, 6},
		"old":                         {backoff.Attempt{N: 9, Elapsed: time.Hour}, 5, 10},
		"old, overload":               {backoff.Attempt{N: 9, Elapsed: time.Hour, Verdict: overload}, 7.5, 15},
		"hung":                        {backoff.Attempt{N: 9, Elapsed: time.Hour, Hung: true, Hang: time.Minute, Verdict: overload}, 0, 0},
		"refused beside a hang":       {backoff.Attempt{N: 9, Elapsed: time.Hour, Hang: time.Minute}, 1.5, 3},
		"told 10 s":                   {backoff.Attempt{Verdict: told(10 * sec)}, 0, 2.5},
		"told 10 s for a minute":      {backoff.Attempt{ToldFor: time.Minute, Verdict: told(10 * sec)}, 0, 15},
		"told an hour for a day":      {backoff.Attempt{ToldFor: 24 * time.Hour, Verdict: told(time.Hour)}, 0, 3600},
		"extremes":                    {backoff.Attempt{N: math.MaxInt, Elapsed: math.MaxInt64, Hang: math.MaxInt64, ToldFor: math.MinInt64}, 5, 10},
		"negative":                    {backoff.Attempt{N: -1, Elapsed: -1, Hang: -1}, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			low, high := prompt(&backoff.Prompt{}, c.a)
			require.Equal(t, []float64{c.low, c.high}, []float64{low.Wait.Seconds(), high.Wait.Seconds()})
			require.Equal(t, 16*sec, low.Connect)
		})
	}
}

func TestPromptKnowsWhenAHandshakeHangs(t *testing.T) {
	for name, c := range map[string]struct {
		a         backoff.Attempt
		low, high float64
		swap      bool
	}{
		"the first":                  {backoff.Attempt{}, 8.333, 10, false},
		"the first beside":           {backoff.Attempt{Hang: 10 * sec}, 8.333, 10, true},
		"the second beside":          {backoff.Attempt{Hang: 20 * sec, Beside: 1}, 8.333, 10, false},
		"the first after a refusal":  {backoff.Attempt{Hang: 10 * sec, Refused: true}, 8.333, 10, false},
		"a 20th of the hang's age":   {backoff.Attempt{Hang: 10 * time.Minute, Beside: 50}, 25, 30, false},
		"whatever the age of a hang": {backoff.Attempt{Hang: math.MaxInt64, Beside: math.MaxInt}, 384307168, 461168602, false},
	} {
		t.Run(name, func(t *testing.T) {
			low, high := prompt(&backoff.Prompt{}, c.a)
			require.InDelta(t, c.low, low.Handshake.Seconds(), 1)
			require.InDelta(t, c.high, high.Handshake.Seconds(), 1)
			require.Equal(t, c.swap, low.Swap)
		})
	}
}

func TestTheFieldsOfPrompt(t *testing.T) {
	p := &backoff.Prompt{
		Spread: 4 * sec, Base: sec, Share: 1, Cap: 20 * sec, OverloadCap: 40 * sec, ToldShare: 0.5,
		Connect: 7 * sec, Hang: 6 * sec, HangShare: 0.5,
	}
	top := func(a backoff.Attempt) backoff.Step { _, high := prompt(p, a); return high }
	overload := backoff.Verdict{Class: backoff.ClassOverload}
	require.Equal(t, 4*sec, top(backoff.Attempt{}).Wait)
	require.Equal(t, 12*sec, top(backoff.Attempt{N: 3, Elapsed: 12 * sec}).Wait)
	require.Equal(t, 20*sec, top(backoff.Attempt{N: 3, Elapsed: time.Hour}).Wait)
	require.Equal(t, 40*sec, top(backoff.Attempt{N: 3, Elapsed: time.Hour, Verdict: overload}).Wait)
	require.Equal(t, sec, top(backoff.Attempt{N: 3, Verdict: overload}).Wait)
	require.Equal(t, 5*sec, top(backoff.Attempt{Verdict: backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: 10 * sec}}).Wait)
	require.Equal(t, 7*sec, top(backoff.Attempt{}).Connect)
	require.Equal(t, 6*sec, top(backoff.Attempt{}).Handshake)
	require.Equal(t, time.Minute, top(backoff.Attempt{Hang: 2 * time.Minute}).Handshake)
}
