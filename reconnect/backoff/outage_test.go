package backoff_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

func verdict(c backoff.Class) backoff.Verdict { return backoff.Verdict{Class: c} }

func TestOutageTellsThePolicyWhatItCounts(t *testing.T) {
	var p seen
	var o backoff.Outage
	p.step.Wait = 3 * time.Second
	o.Begin(start.Add(-time.Second))
	for i, class := range []backoff.Class{backoff.ClassOverload, backoff.ClassRetry, backoff.ClassOverload} {
		o.Next(&p, verdict(class), start.Add(time.Duration(i)*time.Minute), seeded())
	}
	require.Equal(t, []backoff.Attempt{
		{N: 0, Overloads: 1, Elapsed: time.Second, Verdict: verdict(backoff.ClassOverload)},
		{N: 1, Overloads: 1, Prev: 3 * time.Second, Elapsed: 61 * time.Second, Verdict: verdict(backoff.ClassRetry)},
		{N: 2, Overloads: 2, Prev: 3 * time.Second, Elapsed: 121 * time.Second, Verdict: verdict(backoff.ClassOverload)},
	}, p.attempts)
	require.Equal(t, p.attempts[2], o.Attempt())
}

func TestOutageBeginsWithItsFirstFailure(t *testing.T) {
	var o backoff.Outage
	o.Next(nil, verdict(backoff.ClassRetry), start, nil)
	require.Zero(t, o.Attempt().Elapsed)
	o.Next(nil, verdict(backoff.ClassRetry), start.Add(time.Minute), nil)
	require.Equal(t, time.Minute, o.Attempt().Elapsed)
	o.Next(nil, verdict(backoff.ClassRetry), start.Add(-time.Minute), nil)
	require.Zero(t, o.Attempt().Elapsed, "a clock that was set back")
}

func TestStopEndsAnyPolicy(t *testing.T) {
	var p seen
	var o backoff.Outage
	_, ok := o.Next(&p, verdict(backoff.ClassStop), start, seeded())
	require.False(t, ok)
	require.Empty(t, p.attempts)
}

func TestAPolicyMayGiveUp(t *testing.T) {
	var o backoff.Outage
	s, ok := o.Next(backoff.Limit(nil, 0, 1), backoff.Verdict{RetryAfter: time.Hour}, start, seeded())
	require.False(t, ok)
	require.Zero(t, s)
}

// Promises 9 and 2: slow means minutes apart, and jittered.
func TestSlowIsMinutesApart(t *testing.T) {
	for source, want := range map[rand.Source]time.Duration{constant(0): time.Minute, highest: 3*time.Minute - 1} {
		var o backoff.Outage
		s, _ := o.Next(&backoff.Exponential{}, verdict(backoff.ClassSlow), start, rand.New(source))
		require.Equal(t, want, s.Wait)
		require.Equal(t, want, o.Attempt().Least)
	}
}

func TestSlowRaisesTheWaitOnly(t *testing.T) {
	var o backoff.Outage
	p := &seen{step: backoff.Step{Wait: time.Hour, Connect: 1, Handshake: 2}}
	s, _ := o.Next(p, verdict(backoff.ClassSlow), start, rand.New(highest))
	require.Equal(t, p.step, s)
}

func TestSlowIsNotFedBackIntoThePolicy(t *testing.T) {
	var p seen
	var o backoff.Outage
	p.step.Wait = time.Second
	for range 2 {
		o.Next(&p, verdict(backoff.ClassSlow), start, seeded())
	}
	require.Equal(t, time.Second, p.attempts[1].Prev)
}

func TestLimitSeesTheWaitThatSlowMeans(t *testing.T) {
	var o backoff.Outage
	_, ok := o.Next(backoff.Limit(nil, 0, 59*time.Second), verdict(backoff.ClassSlow), start, seeded())
	require.False(t, ok)
}

func TestASecondRefreshInARowIsSlow(t *testing.T) {
	var o backoff.Outage
	var got []backoff.Class
	for _, c := range []backoff.Class{backoff.ClassRefresh, backoff.ClassRefresh, backoff.ClassRefresh, backoff.ClassRetry, backoff.ClassRefresh} {
		o.Next(nil, verdict(c), start, seeded())
		got = append(got, o.Attempt().Verdict.Class)
	}
	want := []backoff.Class{backoff.ClassRefresh, backoff.ClassSlow, backoff.ClassSlow, backoff.ClassRetry, backoff.ClassRefresh}
	require.Equal(t, want, got)
}

// Promise 9: an hour is the most, whatever the Classify of the user returns.
func TestOutageClampsRetryAfter(t *testing.T) {
	for told, want := range map[time.Duration]time.Duration{-1: 0, 5: 5, math.MaxInt64: time.Hour} {
		var o backoff.Outage
		s, _ := o.Next(&seen{}, backoff.Verdict{RetryAfter: told}, start, seeded())
		require.Equal(t, want, o.Attempt().Verdict.RetryAfter)
		require.Zero(t, s.Wait, "it is not part of the wait")
	}
}

func TestOutageMendsWhatAPolicyReturns(t *testing.T) {
	var o backoff.Outage
	s, _ := o.Next(&seen{step: backoff.Step{Wait: -1, Connect: -1, Handshake: -1}}, verdict(backoff.ClassRetry), start, seeded())
	require.Equal(t, backoff.Step{}, s)
	s, _ = o.Next(&seen{step: backoff.Step{Wait: math.MaxInt64}}, verdict(backoff.ClassRetry), start, seeded())
	require.Positive(t, s.Wait+backoff.MaxRetryAfter, "no overflow")
}

func TestOutageTellsTheDialWhatToExpect(t *testing.T) {
	var o backoff.Outage
	require.Equal(t, backoff.Try{}, o.Try(backoff.Step{}))
	p := &seen{step: backoff.Step{Wait: 1, Connect: 2, Handshake: 3}}
	s, _ := o.Next(p, verdict(backoff.ClassRefresh), start, seeded())
	require.Equal(t, backoff.Try{N: 1, Connect: 2, Handshake: 3, Refresh: true}, o.Try(s))
	s, _ = o.Next(p, verdict(backoff.ClassRetry), start, seeded())
	require.Equal(t, backoff.Try{N: 2, Connect: 2, Handshake: 3}, o.Try(s))
}

func TestTheZeroOutageStartsAfresh(t *testing.T) {
	var o backoff.Outage
	for range 5 {
		o.Next(nil, verdict(backoff.ClassOverload), start, seeded())
		o.Try(backoff.Step{})
	}
	o = backoff.Outage{}
	s, _ := o.Next(nil, verdict(backoff.ClassRetry), start, rand.New(highest))
	require.Equal(t, 2*time.Second-1, s.Wait)
	require.Zero(t, o.Try(s).N, "after a drop the first dial comes after the first wait")
}

func TestTryTravelsInTheContext(t *testing.T) {
	want := backoff.Try{N: 3, Connect: time.Second, Handshake: time.Minute, Refresh: true}
	require.Equal(t, want, backoff.TryFrom(backoff.WithTry(t.Context(), want)))
	require.Equal(t, backoff.Try{}, backoff.TryFrom(t.Context()))
}
