package schedule_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

func verdict(c backoff.Class) backoff.Verdict { return backoff.Verdict{Class: c} }

func TestOutageTellsThePolicyWhatItCounts(t *testing.T) {
	var p seen
	var o schedule.Outage
	p.step.Wait = 3 * time.Second
	o.Begin(start.Add(-time.Second))
	for i, class := range []backoff.Class{backoff.ClassOverload, backoff.ClassRetry, backoff.ClassOverload} {
		o.Next(&p, verdict(class), start.Add(time.Duration(i)*time.Minute), seeded())
	}
	require.Equal(t, []backoff.History{
		{N: 0, Overloads: 1, Elapsed: time.Second, Verdict: verdict(backoff.ClassOverload)},
		{N: 1, Overloads: 1, Prev: 3 * time.Second, Elapsed: 61 * time.Second, Verdict: verdict(backoff.ClassRetry)},
		{N: 2, Overloads: 2, Prev: 3 * time.Second, Elapsed: 121 * time.Second, Verdict: verdict(backoff.ClassOverload)},
	}, p.attempts)
	require.Equal(t, p.attempts[2], o.History())
}

// A run of answers with a Retry-After counts from the first of them, and ends with an answer without.
func TestARunOfRetryAfterEndsWithAnAnswerWithout(t *testing.T) {
	var p seen
	var o schedule.Outage
	told := backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Second}
	for i, v := range []backoff.Verdict{told, told, verdict(backoff.ClassRetry), told, told} {
		o.Next(&p, v, start.Add(time.Duration(i)*time.Minute), seeded())
	}
	var got []time.Duration
	for _, a := range p.attempts {
		got = append(got, a.RetryAfterFor)
	}
	require.Equal(t, []time.Duration{0, time.Minute, 0, 0, time.Minute}, got)
}

func TestOutageBeginsWithItsFirstFailure(t *testing.T) {
	var o schedule.Outage
	o.Next(nil, verdict(backoff.ClassRetry), start, nil)
	require.Zero(t, o.History().Elapsed)
	o.Next(nil, verdict(backoff.ClassRetry), start.Add(time.Minute), nil)
	require.Equal(t, time.Minute, o.History().Elapsed)
	o.Next(nil, verdict(backoff.ClassRetry), start.Add(-time.Minute), nil)
	require.Zero(t, o.History().Elapsed, "a clock that was set back")
}

func TestStopEndsAnyPolicy(t *testing.T) {
	var p seen
	var o schedule.Outage
	_, ok := o.Next(&p, verdict(backoff.ClassStop), start, seeded())
	require.False(t, ok)
	require.Empty(t, p.attempts)
}

func TestAPolicyMayGiveUp(t *testing.T) {
	var o schedule.Outage
	s, ok := o.Next(backoff.Limit(nil, 0, 1), backoff.Verdict{RetryAfter: time.Hour}, start, seeded())
	require.False(t, ok)
	require.Zero(t, s)
}

// Promises 9 and 2: slow waits begin at 5 to 15 s and grow to 1 to 3 min, jittered.
func TestSlowWaitsGrowToMinutes(t *testing.T) {
	low, high := schedule.Outage{}, schedule.Outage{}
	d := 10 * time.Second
	for range 30 {
		s, _ := low.Next(&backoff.Exponential{}, verdict(backoff.ClassSlow), start, rand.New(constant(0)))
		require.InDelta(t, d/2, s.Wait, 1000)
		require.Equal(t, s.Wait, low.History().MinWait)
		s, _ = high.Next(&backoff.Exponential{Base: -1}, verdict(backoff.ClassSlow), start, rand.New(highest))
		require.InDelta(t, d*3/2-1, s.Wait, 1000)
		d = min(d*12/10, 2*time.Minute)
	}
	require.Equal(t, 2*time.Minute, d)
}

// The least and the greatest draw of the wait after the slow verdict n of a row, from 0 on.
func slowRange(p backoff.Policy, n int) (low, high time.Duration) {
	for source, to := range map[rand.Source]*time.Duration{constant(0): &low, highest: &high} {
		var o schedule.Outage
		for range n + 1 {
			s, _ := o.Next(p, verdict(backoff.ClassSlow), start, rand.New(source))
			*to = s.Wait
		}
	}
	return low, high
}

func TestThePolicyHasTheSlowWait(t *testing.T) {
	const sec = time.Second
	none := &backoff.Exponential{Base: -1}
	wait := backoff.SlowWait{Min: 2 * sec, Max: 2500 * time.Millisecond}
	own := backoff.WithSlow(none, wait)
	limited := backoff.WithTimeouts(own, backoff.Timeout{}, backoff.Timeout{})
	for name, p := range map[string]backoff.Policy{
		"itself": own, "first": backoff.First(-1, own), "limit": backoff.Limit(own, 9, 0),
		"limits on tries": limited,
		"all of them":     backoff.First(-1, backoff.Limit(limited, 9, 0)),
		"the outermost":   backoff.WithSlow(backoff.WithSlow(none, backoff.SlowWait{Min: sec}), wait),
	} {
		for n, d := range []time.Duration{2 * sec, 2400 * time.Millisecond, wait.Max, wait.Max} {
			low, high := slowRange(p, n)
			require.Equal(t, d/2, low, name)
			require.Equal(t, d*3/2-1, high, name)
		}
	}
	for _, test := range []struct {
		wait      backoff.SlowWait
		n         int
		low, high time.Duration
	}{
		{wait: backoff.SlowWait{Min: -1}, n: 50},
		{wait: backoff.SlowWait{Min: time.Hour}, n: 50, low: time.Hour / 2, high: time.Hour*3/2 - 1},
		{wait: backoff.SlowWait{Min: sec, Max: -1}, n: 20, low: 19168799962, high: 57506399885}, // d is 38.337599924 s
		{wait: backoff.SlowWait{Min: 1}, n: 500, low: time.Minute, high: 3*time.Minute - 1},
	} {
		low, high := slowRange(backoff.WithSlow(none, test.wait), test.n)
		require.Equal(t, test.low, low, "%+v", test.wait)
		require.Equal(t, test.high, high, "%+v", test.wait)
	}
	low, _ := slowRange(backoff.WithSlow(none, backoff.SlowWait{Min: 1, Max: -1}), 1<<20)
	require.Positive(t, low+backoff.MaxRetryAfter, "no overflow")
	_, high := slowRange(backoff.WithSlow(none, backoff.SlowWait{Min: math.MaxInt64}), 1)
	require.LessOrEqual(t, high, time.Duration(math.MaxInt64/2), "no longer than the longest wait of all")
}

// Another verdict ends the row, but not a handshake that hangs (see the walk), and not a session.
func TestAnotherVerdictEndsTheRowOfSlowOnes(t *testing.T) {
	var o schedule.Outage
	var got []time.Duration
	slow, retry := backoff.ClassSlow, backoff.ClassRetry
	for _, c := range []backoff.Class{slow, slow, retry, slow, backoff.ClassRefresh, backoff.ClassRefresh} {
		o.Next(nil, verdict(c), start, rand.New(constant(0)))
		got = append(got, o.History().MinWait)
	}
	const sec = time.Second
	require.Equal(t, []time.Duration{5 * sec, 6 * sec, 0, 5 * sec, 0, 5 * sec}, got)
}

func TestSlowRaisesTheWaitOnly(t *testing.T) {
	var o schedule.Outage
	p := &seen{step: backoff.Step{Wait: time.Hour, Connect: 1, Handshake: 2}}
	s, _ := o.Next(p, verdict(backoff.ClassSlow), start, rand.New(highest))
	require.Equal(t, p.step, s)
}

func TestSlowIsNotFedBackIntoThePolicy(t *testing.T) {
	var p seen
	var o schedule.Outage
	p.step.Wait = time.Second
	for range 2 {
		o.Next(&p, verdict(backoff.ClassSlow), start, seeded())
	}
	require.Equal(t, time.Second, p.attempts[1].Prev)
}

func TestLimitSeesTheWaitThatSlowMeans(t *testing.T) {
	var o schedule.Outage
	_, ok := o.Next(backoff.Limit(nil, 0, 5*time.Second-1), verdict(backoff.ClassSlow), start, seeded())
	require.False(t, ok)
}

func TestASecondRefreshInARowIsSlow(t *testing.T) {
	var o schedule.Outage
	var got []backoff.Class
	for _, c := range []backoff.Class{backoff.ClassRefresh, backoff.ClassRefresh, backoff.ClassRefresh, backoff.ClassRetry, backoff.ClassRefresh} {
		o.Next(nil, verdict(c), start, seeded())
		got = append(got, o.History().Verdict.Class)
	}
	want := []backoff.Class{backoff.ClassRefresh, backoff.ClassSlow, backoff.ClassSlow, backoff.ClassRetry, backoff.ClassRefresh}
	require.Equal(t, want, got)
}

// New credentials are tried at once, but not by all whose old ones expired at one
// instant; whatever the policy says.
func TestTheWaitAfterARefreshIsShort(t *testing.T) {
	var o schedule.Outage
	p := &seen{step: backoff.Step{Wait: time.Hour, Connect: 7}}
	s, _ := o.Next(p, verdict(backoff.ClassRefresh), start, rand.New(highest))
	require.Less(t, s.Wait, time.Second)
	require.GreaterOrEqual(t, s.Wait, time.Second-time.Microsecond)
	require.Equal(t, time.Duration(7), s.Connect)
	require.True(t, o.Attempt(s).Refresh)
	s, _ = o.Next(p, verdict(backoff.ClassRefresh), start, seeded())
	require.Equal(t, time.Hour, s.Wait)
	require.Equal(t, backoff.ClassSlow, o.History().Verdict.Class)
}

// What may pass by itself costs a slow wait only from the second time in a row on.
func TestALenientSlowIsSlowTheSecondTimeInARow(t *testing.T) {
	lenient := backoff.Verdict{Class: backoff.ClassSlow, Lenient: true}
	retry, slow := verdict(backoff.ClassRetry), verdict(backoff.ClassSlow)
	for _, test := range []struct {
		given []backoff.Verdict
		want  []backoff.Class
	}{
		{[]backoff.Verdict{lenient, lenient, lenient}, []backoff.Class{backoff.ClassRetry, backoff.ClassSlow, backoff.ClassSlow}},
		{[]backoff.Verdict{lenient, retry, lenient}, []backoff.Class{backoff.ClassRetry, backoff.ClassRetry, backoff.ClassRetry}},
		{[]backoff.Verdict{slow, lenient}, []backoff.Class{backoff.ClassSlow, backoff.ClassSlow}},
	} {
		var o schedule.Outage
		var got []backoff.Class
		for _, v := range test.given {
			s, _ := o.Next(nil, v, start, seeded())
			got = append(got, o.History().Verdict.Class)
			require.Equal(t, o.History().Verdict.Class == backoff.ClassSlow, s.Wait >= 5*time.Second)
		}
		require.Equal(t, test.want, got)
	}
}

// A stable session ends the outage, and the row.
func TestAStableSessionEndsTheRow(t *testing.T) {
	lenient := backoff.Verdict{Class: backoff.ClassSlow, Lenient: true}
	var o schedule.Outage
	o.Next(nil, lenient, start, seeded())
	o.Stable(start.Add(time.Hour))
	o.Next(nil, lenient, start.Add(time.Hour+time.Second), seeded())
	a := o.History()
	require.Equal(t, backoff.ClassRetry, a.Verdict.Class)
	require.Equal(t, time.Second, a.Elapsed)
	require.Zero(t, a.N)
	o.Next(nil, lenient, start.Add(time.Hour+time.Second), seeded())
	require.Equal(t, backoff.ClassSlow, o.History().Verdict.Class)
}

// Promise 9: an hour is the most, whatever the Classify of the user returns.
func TestOutageClampsRetryAfter(t *testing.T) {
	for told, want := range map[time.Duration]time.Duration{-1: 0, 5: 5, math.MaxInt64: time.Hour} {
		var o schedule.Outage
		s, _ := o.Next(&seen{}, backoff.Verdict{RetryAfter: told}, start, seeded())
		require.Equal(t, want, o.History().Verdict.RetryAfter)
		require.Zero(t, s.Wait, "it is not part of the wait")
	}
}

func TestOutageMendsWhatAPolicyReturns(t *testing.T) {
	var o schedule.Outage
	s, _ := o.Next(&seen{step: backoff.Step{Wait: -1, Connect: -1, Handshake: -1}}, verdict(backoff.ClassRetry), start, seeded())
	require.Equal(t, backoff.Step{}, s)
	s, _ = o.Next(&seen{step: backoff.Step{Wait: math.MaxInt64}}, verdict(backoff.ClassRetry), start, seeded())
	require.Positive(t, s.Wait+backoff.MaxRetryAfter, "no overflow")
}

func TestOutageTellsTheDialWhatToExpect(t *testing.T) {
	var o schedule.Outage
	require.Equal(t, backoff.Attempt{Number: 1}, o.Attempt(backoff.Step{}))
	p := &seen{step: backoff.Step{Wait: 1, Connect: 2, Handshake: 3}}
	s, _ := o.Next(p, verdict(backoff.ClassRefresh), start, seeded())
	require.Equal(t, backoff.Attempt{Number: 2, Connect: 2, Handshake: 3, Refresh: true}, o.Attempt(s))
	s, _ = o.Next(p, verdict(backoff.ClassRetry), start, seeded())
	require.Equal(t, backoff.Attempt{Number: 3, Connect: 2, Handshake: 3}, o.Attempt(s))
}

func TestTheZeroOutageStartsAfresh(t *testing.T) {
	var o schedule.Outage
	for range 5 {
		o.Next(nil, verdict(backoff.ClassOverload), start, seeded())
		o.Attempt(backoff.Step{})
	}
	o = schedule.Outage{}
	s, _ := o.Next(nil, verdict(backoff.ClassRetry), start, rand.New(highest))
	require.Equal(t, 2*time.Second-1, s.Wait)
	require.Equal(t, 1, o.Attempt(s).Number, "after a drop the first dial comes after the first wait")
}
