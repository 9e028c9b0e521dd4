package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// The same as with one dial, for the library as it is: a handshake that hangs is kept, and
// another dial begins beside it.
func TestRealConnsWithTwoDialsComeBackAsTheModelSays(t *testing.T) {
	n := manyOr(1_000)
	const second = time.Second
	for name, h := range map[string]fleet.Herd{
		"drop":             {Server: fleet.Server{Queue: fleet.Drop}, Outage: fleet.Outage{Length: 5 * second}},
		"restart, drop":    {Server: fleet.Server{Queue: fleet.Drop}},
		"long backlog":     {Server: fleet.Server{Queue: fleet.Drop, Backlog: n * 3 / 4}, Outage: fleet.Outage{Length: 5 * second}},
		"reject":           {Server: fleet.Server{Queue: fleet.Reject, Backlog: n / 20}, Outage: fleet.Outage{Length: 5 * second}},
		"503, told":        {Server: fleet.Server{Queue: fleet.Busy, Backlog: n / 20, RetryAfter: 3 * second}},
		"unbounded":        {Outage: fleet.Outage{Length: second}},
		"401 for 30 s":     {Outage: fleet.Outage{Length: 30 * second, Down: fleet.Denied}, Server: fleet.Server{Queue: fleet.Drop}},
		"no such host":     {Outage: fleet.Outage{Length: 30 * second, Down: fleet.Nameless}, Server: fleet.Server{Queue: fleet.Drop}},
		"503 for 30 s":     {Outage: fleet.Outage{Length: 30 * second, Down: fleet.Unavailable}, Server: fleet.Server{Queue: fleet.Drop}},
		"hangs for 60 s":   {Outage: fleet.Outage{Length: 60 * second, Down: fleet.Swallowed}, Server: fleet.Server{Queue: fleet.Busy, Backlog: n / 20}},
		"hangs, unbounded": {Outage: fleet.Outage{Length: 60 * second, Down: fleet.Swallowed}},
	} {
		t.Run(name, func(t *testing.T) {
			h.Client, _ = fleet.Find("redial")
			compare(t, h, n)
		})
	}
}

// A server that flaps: what a short session does to the waits, and how much of the time real
// Conns are up.
func TestRealConnsUseAServerThatFlapsAsTheModelSays(t *testing.T) {
	const second = time.Second
	n := manyOr(1_000)
	for name, up := range map[string]time.Duration{"3 s up, 3 s away": 3 * second, "12 s up, 3 s away": 12 * second} {
		t.Run(name, func(t *testing.T) {
			h := fleet.Herd{N: n, Server: fleet.Server{Capacity: float64(n), Queue: fleet.Drop, Backlog: n}, Seed: 7}
			h.Client, _ = fleet.Find("redial")
			for range 8 {
				h.Outage.Spells = append(h.Outage.Spells, fleet.Spell{Down: fleet.Refused, Length: 3 * second}, fleet.Spell{Down: fleet.Up, Length: up})
			}
			h.Outage.Spells = append(h.Outage.Spells, fleet.Spell{Down: fleet.Refused, Length: 3 * second})
			h.Watch = h.Return() + time.Minute
			model, err := fleet.Run(t.Context(), h)
			require.NoError(t, err)
			var real outcome
			synctest.Test(t, func(*testing.T) { real = (&bubble{Herd: h}).measure() })
			t.Logf("up %.3f %.3f, t50 %.2f %.2f, t99 %.2f %.2f, dials %.2f %.2f", real.upShare, model.UpShare, real.t50, model.T50.Seconds(), real.t99, model.T99.Seconds(), real.dials, model.Dials)
			tolerance := toleranceFor(n)
			require.InEpsilon(t, model.UpShare, real.upShare, tolerance, "share of the time up")
			require.InEpsilon(t, model.Dials, real.dials, tolerance, "dials")
			require.InEpsilon(t, model.T50.Seconds(), real.t50, tolerance, "t50")
			require.InEpsilon(t, model.T99.Seconds(), real.t99, tolerance, "t99")
		})
	}
}
