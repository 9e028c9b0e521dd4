package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/reconnect/backoff"
)

const second = time.Second

// lost is a herd at a server of 500 handshakes per second that was away for 5 s.
func lost(t *testing.T, n int, client string, q fleet.Queue) fleet.Herd {
	t.Helper()
	c, err := fleet.Find(client)
	require.NoError(t, err)
	h := fleet.Herd{N: n, Client: c, Outage: fleet.Outage{Length: 5 * second}, Server: fleet.Server{Capacity: 500, Queue: q}, Watch: 3 * time.Minute}
	if q == fleet.Reject {
		h.Server.Backlog = 50 // 100 ms of work
	}
	return h
}

// t99 is over ideal, -1 for never, as the mean of three runs.
func t99(t *testing.T, h fleet.Herd) float64 {
	t.Helper()
	s, err := fleet.Average(t.Context(), h, 3, 1, nil)
	require.NoError(t, err)
	if s.T99 == fleet.Never {
		return -1
	}
	return s.T99.Seconds() / s.Ideal.Seconds()
}

// Seen with real supervisors: N = 10,000, Linux's backlog, 3 min watched.
func TestWhatNeverRecoversWithTenThousand(t *testing.T) {
	for _, client := range []string{
		"full:base=1s,cap=5s,limit=2s", "full:base=1s,cap=10s,limit=2s", "full:base=1s,limit=2s",
		"fixed:limit=2s", "nats",
	} {
		require.EqualValues(t, -1, t99(t, lost(t, 10_000, client, fleet.Drop)), client)
	}
	require.EqualValues(t, -1, t99(t, lost(t, 10_000, "full:cap=15s,limit=5s", fleet.Unbounded)))
}

func TestWhatTakesFourToSixTimesTheIdeal(t *testing.T) {
	for _, client := range []string{"recws", "cenkalti:limit=2s", "grpc:limit=2s"} {
		over := t99(t, lost(t, 10_000, client, fleet.Drop))
		require.True(t, 4 <= over && over <= 6, "%s: %.2f", client, over)
	}
}

// The lever of patience, at an unbounded queue.
func TestLongTimeoutsAreTheLever(t *testing.T) {
	for _, c := range []struct {
		base   time.Duration
		factor float64
		n      int
		want   float64
	}{
		{10 * second, 3, 50_000, 3.6}, {10 * second, 3, 500_000, 6.9},
		{30 * second, 4, 10_000, 1.0}, {30 * second, 4, 50_000, 1.8}, {30 * second, 4, 500_000, 4.9},
	} {
		if c.n > 100_000 && (raceEnabled || testing.Short()) {
			continue
		}
		h := lost(t, c.n, "redial", fleet.Unbounded)
		patience := backoff.Timeout{Base: c.base, Factor: c.factor, Cap: -1}
		policy := backoff.First(second, &backoff.Exponential{OverloadCap: 5 * time.Minute})
		h.Client = client(backoff.WithTimeouts(policy, patience, patience))
		h.Watch = 10 * h.Ideal()
		r, err := fleet.Run(t.Context(), h)
		require.NoError(t, err)
		require.InEpsilon(t, c.want, r.T99.Seconds()/r.Ideal.Seconds(), 0.1, "%v x %v^n, %d", c.base, c.factor, c.n)
	}
}

// A table of real herds on real sockets, where the model has what decides:
// it has no processor that N instant dials keep busy, so a herd in step differs.
func TestRealHerdsDidTheSame(t *testing.T) {
	for _, c := range []struct {
		client      string
		n           int
		q           fleet.Queue
		want, dials float64
	}{
		{"cenkalti:limit=2s", 2000, fleet.Drop, 1.17, 6.0}, {"cenkalti:limit=2s", 2000, fleet.Reject, 1.84, 0},
		{"recws", 2000, fleet.Drop, 1.28, 3.9}, {"recws", 2000, fleet.Reject, 2.47, 0},
		{"nats", 2000, fleet.Drop, 1.73, 3.4}, {"nats", 2000, fleet.Reject, 6.0, 0},
		{"autopaho", 2000, fleet.Drop, 2.24, 2.0}, {"autopaho", 2000, fleet.Reject, -1, 0},
		{"grpc:limit=2s", 2000, fleet.Drop, 1.20, 4.3}, {"grpc:limit=2s", 2000, fleet.Reject, 3.08, 0},
		{"full:limit=2s", 2000, fleet.Drop, 3.8, 5.0}, {"full:limit=2s", 2000, fleet.Reject, 3.7, 0},
		{"cenkalti:limit=2s", 10_000, fleet.Reject, 1.25, 0}, {"recws", 10_000, fleet.Reject, 1.45, 0},
		{"grpc:limit=2s", 10_000, fleet.Reject, 2.14, 0}, {"full:limit=2s", 10_000, fleet.Reject, 1.66, 0},
		{"autopaho", 10_000, fleet.Drop, 1.75, 0},
	} {
		t.Run(fmt.Sprintf("%s, %d, %v", c.client, c.n, c.q), func(t *testing.T) {
			h := lost(t, c.n, c.client, c.q)
			h.Watch = 85 * second
			s, err := fleet.Average(t.Context(), h, 5, 1, nil)
			require.NoError(t, err)
			if c.want < 0 {
				require.Equal(t, fleet.Never, s.T99)
				return
			}
			require.InEpsilon(t, c.want, s.T99.Seconds()/s.Ideal.Seconds(), 0.15, "t99 over ideal")
			if c.dials > 0 {
				require.InEpsilon(t, c.dials, s.Dials, 0.05, "dials per client")
			}
		})
	}
}
