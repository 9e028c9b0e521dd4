package fleet_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/reconnect/backoff"
)

// script is a policy that waits one time after another, then the last for ever.
type script struct {
	waits              []time.Duration
	connect, handshake time.Duration
}

func (s script) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: s.waits[min(a.N, len(s.waits)-1)], Connect: s.connect, Handshake: s.handshake}, true
}

// every waits the same each time.
func every(d time.Duration) script { return script{waits: []time.Duration{d}} }

func run(t *testing.T, h fleet.Herd) *fleet.Result {
	t.Helper()
	if h.Server.Capacity == 0 {
		h.Server.Capacity = 1000
	}
	r, err := fleet.Run(t.Context(), h)
	require.NoError(t, err)
	return r
}

// client dials once at a time by p, and a short session counts for nothing.
func client(p backoff.Policy) fleet.Client {
	return fleet.Client{Policy: p, OneConnection: true, Credit: -1}
}

func TestTheSameSeedGivesTheSameResult(t *testing.T) {
	h := lost(t, 5000, "redial", fleet.Drop)
	h.Server.Backlog, h.Outage.Again = 200, 3*second
	first := run(t, h)
	require.Equal(t, first, run(t, h))
	h.Seed++
	require.NotEqual(t, first, run(t, h))
}

func TestAQueueIsWorkedOffAtC(t *testing.T) {
	r := run(t, fleet.Herd{N: 1000, Client: client(every(0))})
	require.Equal(t, []time.Duration{second, second / 2, 990 * time.Millisecond, second}, []time.Duration{r.Ideal, r.T50, r.T99, r.T100})
	require.Equal(t, 1000, r.Peak)
	require.EqualValues(t, 1, r.Dials)
	require.Equal(t, []int32{1000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, r.DialsPerBin)
	require.Equal(t, []int32{99, 199, 299, 399, 499, 599, 699, 799, 899, 999, 1000}, r.UpPerBin)
}

// Of ten that come at once one is served and three wait; the others are refused.
func TestWhoFindsNoRoomIsRefused(t *testing.T) {
	r := run(t, fleet.Herd{N: 10, Client: client(every(2 * second)), Server: fleet.Server{Capacity: 2, Backlog: 3, Queue: fleet.Reject}})
	require.Equal(t, 2*second+5*second, r.T100, "4 each at 2, 4 and 6 s, 2 s of work a time")
	require.InDelta(t, 0.6+0.2, r.Refused, 1e-9)
	require.InDelta(t, 1.8, r.Dials, 1e-9)
}

func TestABacklogMayBeAsLongAsOneWants(t *testing.T) {
	r := run(t, fleet.Herd{N: 10, Client: client(every(0)), Server: fleet.Server{Capacity: 1, Backlog: math.MaxInt, Queue: fleet.Reject}})
	require.Equal(t, 10*second, r.T100)
	require.Zero(t, r.Refused)
}

// Linux: 1, 3, 7 and 15 s after the first; connecting is given up after 16 s, and the next
// dial follows at once.
func TestADroppedSYNIsSentAgain(t *testing.T) {
	h := fleet.Herd{N: 1, Client: client(every(0)), Outage: fleet.Outage{Down: fleet.Silent}}
	for away, want := range map[time.Duration][2]float64{1: {1, 1}, 2: {3, 1}, 4: {7, 1}, 8: {15, 1}, 12: {15, 1}, 16: {16, 2}, 17: {17, 2}} {
		h.Outage.Length = away*second - 1
		r := run(t, h)
		require.InDelta(t, want[0]+0.001, (r.T100 + h.Outage.Length).Seconds(), 1e-6, "away for %d s", away)
		require.Equal(t, want[1], r.Dials, "away for %d s", away)
	}
}

// The server works for clients that have left.
func TestGhostsAreServed(t *testing.T) {
	p := script{waits: []time.Duration{0, 3 * second}, handshake: second}
	r := run(t, fleet.Herd{N: 4, Client: client(p), Server: fleet.Server{Capacity: 1}})
	require.Equal(t, 13*second, r.T100, "at 1, 5, 9 and 13 s")
	require.InDelta(t, (3+2+1)/4.0, r.Wasted, 1e-9)
}

func TestLimitsRunApartOrTogether(t *testing.T) {
	p := script{waits: []time.Duration{0}, connect: 4 * second, handshake: 4 * second}
	h := fleet.Herd{N: 1, Client: client(p), Outage: fleet.Outage{Down: fleet.Silent, Length: 2 * second}, Server: fleet.Server{Capacity: 0.5}}
	require.Equal(t, 3*second, run(t, h).T100, "SYN at 3 s, then 2 s")
	h.Client.Whole = true
	require.Equal(t, 5*second, run(t, h).T100, "given up at 4 s; then behind its own ghost, until 7 s")
}

func TestAStoppedServerAnswersWhatItMissed(t *testing.T) {
	h := fleet.Herd{N: 5, Client: client(every(0)), Outage: fleet.Outage{Down: fleet.Stopped, Length: 20 * second}, Server: fleet.Server{Capacity: 1}}
	r := run(t, h)
	require.Equal(t, 5*second, r.T100)
	require.EqualValues(t, 1, r.Dials)
	h.Outage.Down = fleet.Swallowed
	r = run(t, h)
	require.Equal(t, 15*second, r.T100, "given up after 30 s")
	require.EqualValues(t, 2, r.Dials)
}

func TestRetryAfterIsAddedToTheWait(t *testing.T) {
	h := fleet.Herd{N: 1, Client: client(every(second)), Outage: fleet.Outage{Down: fleet.Unavailable, Length: 5 * second}}
	h.Server = fleet.Server{Capacity: 1000, Answers: 1000, RetryAfter: 10 * second}
	r := run(t, h)
	require.Equal(t, 7002*time.Millisecond, r.T100, "answered after 1 s and 1 ms; then 11 s, and 1 ms of work; away for 5 s")
}

func TestWhatTheVerdictIsDependsOnTheLoss(t *testing.T) {
	for loss, overloads := range map[fleet.Loss]int{fleet.Reset: 0, fleet.CloseRetry: 0, fleet.CloseLater: 1} {
		var seen []backoff.History
		p := spy{every(second), &seen}
		run(t, fleet.Herd{N: 1, Client: client(p), Outage: fleet.Outage{Loss: loss}})
		require.Len(t, seen, 1)
		require.Equal(t, overloads, seen[0].Overloads, "%v", loss)
	}
}

// reconnect.Run's rule: a session counts as stable after max(StableAfter, the wait).
func TestTheWaitsStartAgainAfterAStableSession(t *testing.T) {
	for again, want := range map[time.Duration]int{9 * second: 1, 12 * second: 0} {
		var seen []backoff.History
		run(t, fleet.Herd{N: 1, Client: client(spy{every(second), &seen}), Outage: fleet.Outage{Again: again}})
		require.Len(t, seen, 2)
		require.Equal(t, want, seen[1].N, "dies again after %v", again)
	}
}

// spy notes what a policy is asked.
type spy struct {
	backoff.Policy
	seen *[]backoff.History
}

func (s spy) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	*s.seen = append(*s.seen, a)
	return s.Policy.Next(a, r)
}

func TestWhoGivesUpDoesNotComeBack(t *testing.T) {
	h := fleet.Herd{N: 3, Client: client(backoff.Limit(every(second), 2, 0)), Outage: fleet.Outage{Length: 5 * second}}
	r := run(t, h)
	require.Equal(t, 0, r.Up)
	require.False(t, r.Recovered())
	require.EqualValues(t, 2, r.Dials)
}

func TestAHerdIsWatchedForTenMinutesAndTwelveTimesTheIdeal(t *testing.T) {
	h := fleet.Herd{N: 120, Client: client(every(2 * second)), Server: fleet.Server{Capacity: 2}}
	require.Equal(t, 22*time.Minute, run(t, h).Watch)
	h.Watch = 3 * time.Minute
	require.Equal(t, 3*time.Minute, run(t, h).Watch)
	s, err := fleet.Average(t.Context(), h, 2, 1, nil)
	require.NoError(t, err)
	require.Equal(t, 3*time.Minute, s.Watch)
}

func TestATimeThatWasNotReachedIsShownAsNotWithinTheWatch(t *testing.T) {
	require.Equal(t, "1.50", fleet.Seconds(1500*time.Millisecond, time.Minute, 2))
	require.Equal(t, "not within 22m0s", fleet.Seconds(fleet.Never, 22*time.Minute, 2))
	require.Equal(t, "not within 10m0s", fleet.NotWithin(10*time.Minute+24*time.Millisecond))
	require.Equal(t, "not within 100ms", fleet.NotWithin(100*time.Millisecond))
}

func TestABadHerdIsAnError(t *testing.T) {
	for want, h := range map[string]fleet.Herd{
		"fleet: want at least 1 connection, not 0":                               {Server: fleet.Server{Capacity: 1}},
		"fleet: a server cannot complete 0 handshakes per second":                {N: 1},
		"fleet: 1000000000 connections are more than 100000000":                  {N: 1e9, Server: fleet.Server{Capacity: 1}},
		"fleet: 1 handshakes at 1e-12 per second would take more than 1000h0m0s": {N: 1, Server: fleet.Server{Capacity: 1e-12}},
		"fleet: a time is negative, or longer than 1000h0m0s":                    {N: 1, Server: fleet.Server{Capacity: 1}, Watch: -1},
		"fleet: a backlog or a rate of answers is out of range":                  {N: 1, Server: fleet.Server{Capacity: 1, Backlog: -1}},
		"fleet: there cannot be 65 servers of which 0 hang: at most 64":          {N: 1, Server: fleet.Server{Capacity: 1, Count: 65}},
		"fleet: there cannot be 2 servers of which 3 hang: at most 64":           {N: 1, Server: fleet.Server{Capacity: 1, Count: 2, Hung: 3}},
		"fleet: a spell is of an unknown kind or its length is out of range":     {N: 1, Server: fleet.Server{Capacity: 1}, Outage: fleet.Outage{Spells: []fleet.Spell{{Length: -1}}}},
		"fleet: a group's share or time is out of range":                         {N: 1, Server: fleet.Server{Capacity: 1}, Groups: []fleet.Group{{Share: 2}}},
		"fleet: unknown kind of loss, outage or queue":                           {N: 1, Server: fleet.Server{Capacity: 1, Queue: 9}},
	} {
		_, err := fleet.Run(t.Context(), h)
		require.EqualError(t, err, want)
	}
	for _, h := range []fleet.Herd{
		{Watch: 1001 * time.Hour}, {Server: fleet.Server{Ramp: -1}}, {Server: fleet.Server{Rolling: 16 * time.Hour}}, {Outage: fleet.Outage{Again: -1}},
	} {
		h.N, h.Server.Capacity = 1, 1
		_, err := fleet.Run(t.Context(), h)
		require.EqualError(t, err, "fleet: a time is negative, or longer than 1000h0m0s")
	}
}

func TestAnEndOfTheContextEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.Canceled)
	_, err := fleet.Average(ctx, lost(t, 100, "redial", fleet.Drop), 3, 2, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestAnAverageDoesNotDependOnTheWorkers(t *testing.T) {
	h := lost(t, 500, "redial", fleet.Drop)
	one, err := fleet.Average(t.Context(), h, 5, 1, nil)
	require.NoError(t, err)
	var told atomic.Int32
	two, err := fleet.Average(t.Context(), h, 5, 2, func() { told.Add(1) })
	require.NoError(t, err)
	require.Equal(t, one, two)
	require.EqualValues(t, 5, told.Load())
}

func TestServersThatDoNotHangShareTheWork(t *testing.T) {
	h := fleet.Herd{N: 1000, Server: fleet.Server{Capacity: 10, Count: 10, Hung: 5, Rolling: 3 * time.Second}, Outage: fleet.Outage{Length: 2 * time.Second}}
	require.Equal(t, 20*time.Second, h.Ideal())
	require.Equal(t, 29*time.Second, h.Return(), "the last is restarted 27 s after the first")
	h.Server = fleet.Server{Capacity: 10}
	require.Equal(t, 100*time.Second, h.Ideal())
	h.Outage.Again = 4 * time.Second
	require.Equal(t, 8*time.Second, h.Return())
}

func TestAHerdOfOtherServersIsUpWhenTheLastIsBack(t *testing.T) {
	r, err := fleet.Run(t.Context(), fleet.Herd{
		N: 100, Outage: fleet.Outage{Length: 5 * time.Second}, Watch: 5 * time.Minute, Seed: 1,
		Server: fleet.Server{Capacity: 100, Count: 4, Rolling: 10 * time.Second},
	})
	require.NoError(t, err)
	require.True(t, r.Recovered())
	require.Zero(t, r.T50, "and not before")
	require.Len(t, r.Away, r.N)
	require.Less(t, fleet.Mean(r.Away), 5*time.Second, "most find another server before their own is back")
}

func TestAMeanOfWhatIsNeverReachedIsNever(t *testing.T) {
	const second = time.Second
	require.Equal(t, 2*second, fleet.Mean([]time.Duration{second, 3 * second}))
	require.Equal(t, fleet.Never, fleet.Mean([]time.Duration{second, fleet.Never}))
	require.Equal(t, fleet.Never, fleet.Mean(nil))
}

func TestRunsThatAreCutKeepTheFirst(t *testing.T) {
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	n := 0
	all, err := fleet.Runs(ctx, fleet.Herd{N: 50, Server: fleet.Server{Capacity: 100}}, 8, 1, func() {
		if n++; n == 3 {
			cancel(over)
		}
	})
	require.Equal(t, over, err)
	require.Len(t, all, 3)
	require.NotEmpty(t, all[0].DialsPerBin)
	require.Empty(t, all[1].DialsPerBin, "only the first has its series")
	require.Equal(t, 3, fleet.Summarize(all).Runs)
}
