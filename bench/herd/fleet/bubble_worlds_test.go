package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// Worlds with more in them than one outage of one server and one kind of client.
func TestRealConnsInOtherWorldsComeBackAsTheModelSays(t *testing.T) {
	n := manyOr(1_000)
	const second = time.Second
	redial, _ := fleet.Find("redial")
	naive, _ := fleet.Find("full:base=1s,limit=2s")
	each := float64(n) / 80 // of four servers, of which two hang: 40 s for all
	before := func(down fleet.Down) fleet.Outage {
		return fleet.Outage{Spells: []fleet.Spell{{Down: down, Length: 60 * second}, {Down: fleet.Swallowed, Length: 20 * second}}}
	}
	for name, h := range map[string]fleet.Herd{
		"half of the servers hang":            {Server: fleet.Server{Queue: fleet.Drop, Count: 4, Hung: 2, Capacity: each}, Watch: time.Hour},
		"half of the servers hang, unbounded": {Server: fleet.Server{Count: 4, Hung: 2, Capacity: each / 2}, Watch: 2 * time.Hour},
		"hung for 12 s, unbounded":            {Server: fleet.Server{Capacity: float64(n) / 24}, Outage: fleet.Outage{Length: 12 * second, Down: fleet.Swallowed}, Watch: time.Hour},
		"cold caches":                         {Server: fleet.Server{Queue: fleet.Drop, Ramp: 60 * second}, Outage: fleet.Outage{Length: 5 * second}, Watch: 10 * time.Minute},
		"30 % are naive":                      {Groups: []fleet.Group{{Client: redial, Share: 0.7}, {Client: naive, Share: 0.3}}, Server: fleet.Server{Queue: fleet.Reject, Backlog: n / 20}, Outage: fleet.Outage{Length: 5 * second}},
		"half notice 30 s late":               {Groups: []fleet.Group{{Client: redial, Share: 0.5}, {Client: redial, Share: 0.5, Late: 30 * second}}, Server: fleet.Server{Queue: fleet.Drop}},
		"start at one instant":                {Fresh: true, Server: fleet.Server{Queue: fleet.Drop}, Outage: fleet.Outage{Length: 5 * second}},
		"503 for a minute, then hung":         {Outage: before(fleet.Unavailable), Server: fleet.Server{Queue: fleet.Drop}},
		"silent for a minute, then hung":      {Outage: before(fleet.Silent), Server: fleet.Server{Queue: fleet.Drop}},
	} {
		t.Run(name, func(t *testing.T) {
			h.Client = redial
			compare(t, h, n)
		})
	}
}

// Five servers that are restarted one after the other: for how long real Conns are away.
func TestRealConnsAreAwayForAsLongAsTheModelSaysInARollingRestart(t *testing.T) {
	n := manyOr(1_000)
	const second = time.Second
	h := fleet.Herd{N: n, Seed: 7, Outage: fleet.Outage{Length: 5 * second}}
	h.Client, _ = fleet.Find("redial")
	h.Server = fleet.Server{Capacity: float64(n) / 150, Queue: fleet.Drop, Backlog: n / 10, Count: 5, Rolling: 30 * second}
	h.Watch = h.Return() + 10*time.Minute
	model, err := fleet.Run(t.Context(), h)
	require.NoError(t, err)
	var real outcome
	synctest.Test(t, func(*testing.T) { real = (&bubble{Herd: h}).measure() })
	t.Logf("up %.4f %.4f, t99 %.2f %.2f, dials %.3f %.3f", real.upShare, model.UpShare, real.t99, model.T99.Seconds(), real.dials, model.Dials)
	tolerance := toleranceFor(n)
	require.InEpsilon(t, 1-model.UpShare, 1-real.upShare, tolerance, "share of the time away")
	require.InEpsilon(t, model.T99.Seconds(), real.t99, tolerance, "t99 since the last went")
	require.InEpsilon(t, model.Dials, real.dials, tolerance, "dials")
}
