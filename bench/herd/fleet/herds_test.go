package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// No herd of the library's is lost, however large and before whatever queue. The tables of
// DEFAULTS.md have the larger ones.
func TestEveryHerdComesBack(t *testing.T) {
	sizes := []int{1, 10, 100, 1000, 10_000, 100_000}
	if raceEnabled || testing.Short() {
		sizes = sizes[:4]
	}
	for _, n := range sizes {
		for _, q := range []fleet.Queue{fleet.Unbounded, fleet.Reject, fleet.Drop, fleet.Busy} {
			for _, away := range []time.Duration{0, 5 * second} {
				h := lost(t, n, "redial", q)
				h.Outage.Length, h.Watch = away, 0
				r := run(t, h)
				name := fmt.Sprintf("%d, %v, away for %v", n, q, away)
				require.True(t, r.Recovered(), name)
				if q == fleet.Unbounded {
					require.Less(t, r.T99, 2*r.Ideal+3*second, name)
				} else {
					require.Less(t, r.T99, r.Ideal*5/4+3*second, name)
				}
			}
		}
	}
}

// Many clients that start at one instant dial at one instant, but for StartSpread.
func TestAStartCanBeSpread(t *testing.T) {
	h := fleet.Herd{N: 10_000, Fresh: true, Server: fleet.Server{Capacity: 500, Queue: fleet.Drop}}
	require.Equal(t, h.N, run(t, h).Peak)
	h.Client.StartSpread = 2 * second
	r := run(t, h)
	require.LessOrEqual(t, r.Peak, h.N/16)
	require.True(t, r.Recovered())
}

// A handshake that hangs is kept, so that its place is not lost, and the answer to the dial
// beside it counts as well.
func TestAPlaceIsKeptAndAskedForAgain(t *testing.T) {
	h := fleet.Herd{N: 1, Outage: fleet.Outage{Down: fleet.Stopped, Length: 5 * time.Minute}}
	require.Less(t, run(t, h).T100, second, "the one that was kept")
	h.Outage.Down = fleet.Swallowed
	require.Less(t, run(t, h).T100, 20*second, "the one beside it")
	h.Client.OneConnection = true
	require.Less(t, run(t, h).T100, 20*second, "given up by the same clock")
}

// After a balancer that hangs comes a server that is slow at first.
func TestAnOutageCanHaveSpells(t *testing.T) {
	spells := []fleet.Spell{{Down: fleet.Unavailable, Length: 60 * second}, {Down: fleet.Swallowed, Length: 20 * second}, {Down: fleet.Up, Length: 30 * second}, {Down: fleet.Silent, Length: 10 * second}}
	h := fleet.Herd{N: 500, Outage: fleet.Outage{Spells: spells}, Server: fleet.Server{Capacity: 100, Queue: fleet.Drop, Ramp: 10 * second}}
	r := run(t, h)
	require.True(t, r.Recovered())
	require.Greater(t, r.UpShare, 0.0, "between the two outages")
	require.Less(t, r.UpShare, 0.25, "30 s of 120")
	h.Server.Ramp = 0
	require.Less(t, run(t, h).T99, r.T99)
}
