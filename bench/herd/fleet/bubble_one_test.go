package fleet_test

import (
	"cmp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/internal/line"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Ten thousand real Conns that dial once at a time, and the model, within 10 %.
func TestRealConnsComeBackAsTheModelSays(t *testing.T) {
	n := manyOr(1_000)
	second := time.Second
	paced := client(fleet.Paced(&classic.Paced{}))
	for name, h := range map[string]fleet.Herd{
		"paced, drop":           {Client: paced, Server: fleet.Server{Queue: fleet.Drop}, Outage: fleet.Outage{Length: 5 * second}},
		"restart, drop":         {Client: paced, Server: fleet.Server{Queue: fleet.Drop}},
		"paced, reject":         {Client: paced, Server: fleet.Server{Queue: fleet.Reject, Backlog: n / 20}, Outage: fleet.Outage{Length: 5 * second}},
		"full jitter, drop":     {Client: client(fullJitter()), Server: fleet.Server{Queue: fleet.Drop}, Outage: fleet.Outage{Length: 5 * second}},
		"paced, 503":            {Client: paced, Server: fleet.Server{Queue: fleet.Busy, Backlog: n / 20, RetryAfter: 3 * second}},
		"impatient, unbounded":  {Client: client(impatient()), Outage: fleet.Outage{Length: second}},
		"impatient, short drop": {Client: client(impatient()), Server: fleet.Server{Queue: fleet.Drop, Backlog: n / 10}},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, h, n)
		})
	}
}

// manyOr is how many real Conns there are: 10,000, or few where that would take long.
func manyOr(few int) int {
	if raceEnabled || testing.Short() {
		return few
	}
	return 10_000
}

// toleranceFor is by how much n real Conns and the model may differ.
func toleranceFor(n int) float64 {
	if n < 10_000 {
		return 0.3 // the peak of 1,000 is about 120, whose standard deviation is 11
	}
	return 0.1
}

// compare lets n real Conns and the model come back to a server that needs 20 s for them.
func compare(t *testing.T, h fleet.Herd, n int) {
	t.Helper()
	h.N, h.Seed = n, 7
	h.Watch = cmp.Or(h.Watch, h.Return()+3*time.Minute)
	h.Server.Capacity = cmp.Or(h.Server.Capacity, float64(n)/20)
	if h.Server.Backlog == 0 {
		h.Server.Backlog = 4096 * n / 10_000
	}
	if h.Server.Queue == fleet.Busy {
		h.Server.Answers = 1e9 // at once, as in the bubble
	}
	model, err := fleet.Average(t.Context(), h, 5, 2, nil)
	require.NoError(t, err)
	var real outcome
	synctest.Test(t, func(*testing.T) { real = (&bubble{Herd: h}).measure() })
	t.Logf("t50 %.2f %.2f, t99 %.2f %.2f, peak %.0f %.0f, dials %.3f %.3f", real.t50, model.T50.Seconds(), real.t99, model.T99.Seconds(), real.peak, model.Peak, real.dials, model.Dials)
	tolerance := toleranceFor(n)
	require.InEpsilon(t, model.T50.Seconds(), real.t50, tolerance, "t50")
	require.InEpsilon(t, model.T99.Seconds(), real.t99, tolerance, "t99")
	require.InEpsilon(t, model.Peak, real.peak, tolerance, "peak")
	require.InEpsilon(t, model.Dials, real.dials, tolerance, "dials")
	if h.Groups != nil {
		one, err := fleet.Run(t.Context(), h)
		require.NoError(t, err)
		for g, back := range one.Groups {
			t99 := fleet.Quantile(back, 0.99).Seconds()
			t.Logf("group %d: t99 %.2f %.2f", g, real.groups[g], t99)
			require.InEpsilon(t, t99, real.groups[g], tolerance, "t99 of group %d", g)
		}
	}
}

// The same with gates: 2000 real Conns in 20 processes, each with a real budget.Gate.
func TestRealConnsWithRealGatesComeBackAsTheModelSays(t *testing.T) {
	second := time.Second
	rounds, tolerance := 8, 0.1
	if raceEnabled || testing.Short() {
		rounds, tolerance = 1, 0.3
	}
	paced := client(fleet.Paced(&classic.Paced{}))
	redial, _ := fleet.Find("redial")
	for name, h := range map[string]fleet.Herd{
		"paced":                   {Outage: fleet.Outage{Length: 5 * second}},
		"strong":                  {Server: fleet.Server{Capacity: 5000}, Outage: fleet.Outage{Length: 5 * second}},
		"reject":                  {Server: fleet.Server{Queue: fleet.Reject, Backlog: 100}, Outage: fleet.Outage{Length: 5 * second}},
		"503, told":               {Server: fleet.Server{Queue: fleet.Busy, Backlog: 100, RetryAfter: 3 * second}},
		"503, told long":          {Server: fleet.Server{Queue: fleet.Busy, Backlog: 100, RetryAfter: 120 * second}},
		"429":                     {Server: fleet.Server{Queue: fleet.Busy, Backlog: 100, Status429: true}},
		"429, told":               {Server: fleet.Server{Queue: fleet.Busy, Backlog: 100, RetryAfter: 3 * second, Status429: true}},
		"slow gates":              {Gate: line.Options{Rate: 4, Burst: 2, Concurrent: 2}, Outage: fleet.Outage{Length: 5 * second}},
		"redial, hangs":           {Client: redial, Outage: fleet.Outage{Length: 60 * second, Down: fleet.Swallowed}},
		"redial, stopped":         {Client: redial, Outage: fleet.Outage{Length: 30 * second, Down: fleet.Stopped}},
		"redial, hangs, then 503": {Client: redial, Outage: fleet.Outage{Length: 30 * second, Down: fleet.Swallowed}, Server: fleet.Server{Queue: fleet.Busy, Backlog: 100, RetryAfter: 3 * second}},
		"impatient":               {Client: client(impatient()), Server: fleet.Server{Queue: fleet.Drop, Backlog: 200}},
	} {
		t.Run(name, func(t *testing.T) {
			h.N, h.Processes, h.Watch, h.Server.Answers, h.Seed = 2000, 20, 3*time.Minute, 1e9, 7
			if h.Client.Policy == nil {
				h.Client = paced
			}
			if h.Server.Capacity == 0 {
				h.Server.Capacity = 97 // not 100: a SYN that is sent again after 1 s would meet a completion, and which is first is chance
			}
			model, err := fleet.Average(t.Context(), h, 30, 2, nil)
			require.NoError(t, err)
			var real outcome
			for range rounds {
				var one outcome
				synctest.Test(t, func(*testing.T) { one = (&bubble{Herd: h}).measure() })
				real.add(one, 1/float64(rounds))
				h.Seed++
			}
			t.Logf("t50 %.2f %.2f, t99 %.2f %.2f, peak %.0f %.0f, dials %.3f %.3f", real.t50, model.T50.Seconds(), real.t99, model.T99.Seconds(), real.peak, model.Peak, real.dials, model.Dials)
			require.InEpsilon(t, model.T50.Seconds(), real.t50, tolerance, "t50")
			require.InEpsilon(t, model.T99.Seconds(), real.t99, tolerance, "t99")
			require.InDelta(t, model.Peak, real.peak, max(model.Peak*(tolerance+0.05), 4), "peak: the dials of a few processes, too few for 10 %%")
			require.InEpsilon(t, model.Dials, real.dials, tolerance, "dials")
		})
	}
}

// fullJitter is a policy that draws nothing alike to what the default does.
func fullJitter() backoff.Policy {
	return backoff.First(2*time.Second, &backoff.Exponential{OverloadCap: 5 * time.Minute})
}

// impatient gives handshakes up that the server would complete.
func impatient() backoff.Policy {
	return backoff.WithTimeouts(backoff.First(2*time.Second, &backoff.Exponential{}),
		backoff.Timeout{Base: 4 * time.Second, Factor: 1}, backoff.Timeout{Base: 4 * time.Second, Factor: 3, Cap: -1})
}
