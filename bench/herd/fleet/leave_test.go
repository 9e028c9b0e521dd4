package fleet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// each returns one Leave for each of n connections.
func each(n int, leave func(i int) fleet.Leave) []fleet.Leave {
	all := make([]fleet.Leave, n)
	for i := range all {
		all[i] = leave(i)
	}
	return all
}

func TestConnectionsLeaveAtTheirTimes(t *testing.T) {
	r := run(t, fleet.Herd{N: 10, Client: client(every(second)), Server: fleet.Server{Capacity: 1000},
		Leaves: each(10, func(i int) fleet.Leave { return fleet.Leave{Close: time.Duration(i) * second} })})
	require.Equal(t, 10, r.Up)
	require.EqualValues(t, 1, r.Dials)
	require.Equal(t, 1, r.Peak)
	require.Equal(t, 10*second+time.Millisecond, r.T100, "closed after 9 s, a wait of 1 s, a handshake of 1 ms")
	require.Equal(t, second+time.Millisecond, r.Away[9])
	require.Equal(t, second+time.Millisecond, r.Away[0])
}

func TestAWaitThatTheServerAsksForIsWaited(t *testing.T) {
	r := run(t, fleet.Herd{N: 2, Client: client(every(second)),
		Leaves: each(2, func(i int) fleet.Leave { return fleet.Leave{Told: time.Duration(10*i) * second} })})
	require.Equal(t, []time.Duration{second + time.Millisecond, 11*second + time.Millisecond}, r.Away)
}

func TestAReplacedConnectionIsNeverAway(t *testing.T) {
	r := run(t, fleet.Herd{N: 10, Client: client(every(second)),
		Leaves: each(10, func(i int) fleet.Leave { return fleet.Leave{Dial: time.Duration(i+1) * second, Close: 20 * second} })})
	require.Equal(t, 1, r.Peak)
	require.Zero(t, r.Away[9])
	require.Equal(t, 10*second+time.Millisecond, r.T100)
	for _, up := range r.UpPerBin {
		require.EqualValues(t, 10, up)
	}
}

// The server needs 5 s for a handshake, and closes the old connection after 3 s.
func TestADialThatIsTooLateBecomesTheRedial(t *testing.T) {
	slow := fleet.Server{Capacity: 0.2}
	r := run(t, fleet.Herd{N: 1, Server: slow, Client: client(every(second)),
		Leaves: []fleet.Leave{{Dial: second, Close: 3 * second}}})
	require.EqualValues(t, 1, r.Dials)
	require.Equal(t, 3*second, r.Away[0], "from the close until the answer, 5 s after the dial")
	require.Equal(t, 6*second, r.T100)
}

// Of two one is refused, and would dial again long after the close.
func TestAReplacementThatWaitsEndsAtTheClose(t *testing.T) {
	full := fleet.Server{Capacity: 1, Backlog: 1, Queue: fleet.Reject}
	r := run(t, fleet.Herd{N: 3, Server: full, Client: client(script{waits: []time.Duration{30 * second}}),
		Leaves: each(3, func(int) fleet.Leave { return fleet.Leave{Dial: second, Close: 10 * second} })})
	require.Equal(t, []time.Duration{0, 0, 31 * second}, r.Away, "from the close, with the wait of a loss")
	require.EqualValues(t, 4, 3*r.Dials)
}

func TestWaysToLeaveThatMakeNoSenseAreRefused(t *testing.T) {
	one := []fleet.Leave{{}}
	for want, h := range map[string]fleet.Herd{
		"fleet: 1 ways to leave are not one for each of 2 connections":             {N: 2, Leaves: one},
		"fleet: connections that leave have no outage, no gate, and are not fresh": {N: 1, Leaves: one, Fresh: true},
		"fleet: the time at which a connection leaves is out of range":             {N: 1, Leaves: []fleet.Leave{{Close: -1}}},
	} {
		h.Server.Capacity = 1
		_, err := fleet.Run(t.Context(), h)
		require.Equal(t, errors.New(want).Error(), err.Error())
	}
}
