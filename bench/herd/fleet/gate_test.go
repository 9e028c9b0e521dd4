package fleet_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/internal/line"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestTheSameSeedGivesTheSameResultWithGates(t *testing.T) {
	h := lost(t, 2000, "redial", fleet.Drop)
	h.Server.Backlog, h.Outage.Again, h.Processes = 200, 3*second, 20
	first := run(t, h)
	require.True(t, first.Recovered())
	require.Equal(t, first, run(t, h))
	h.Seed++
	require.NotEqual(t, first, run(t, h))
}

// While the server is away each process dials less than once a second, whatever it has that waits.
func TestAProcessProbesAboutOnceASecond(t *testing.T) {
	away := func(processes int) (dials int) {
		h := lost(t, 2000, "redial", fleet.Drop)
		h.Processes = processes
		for _, n := range run(t, h).DialsPerBin[:5*second/fleet.Bin] {
			dials += int(n)
		}
		return dials
	}
	require.InEpsilon(t, 2.95*2000, away(0), 0.1)
	require.InEpsilon(t, 4.5*20, away(20), 0.2)
}

// The rate is that of the process, not of the herd.
func TestAGateLetsDialsOutAtItsRate(t *testing.T) {
	h := fleet.Herd{N: 1000, Client: client(every(0)), Processes: 10, Gate: line.Options{Rate: 20, Burst: 5, Concurrent: -1}}
	r := run(t, h)
	require.EqualValues(t, 50, r.DialsPerBin[0]-10, "the burst of each, and one or two more of each")
	require.InDelta(t, (100-5)/20.0, r.T100.Seconds(), 0.1)
	require.EqualValues(t, 1, r.Dials)
}

// Ten of one process want to dial; the first is told to wait for 10 s. Without a gate
// the others ask as well.
func TestWhatOneIsToldHoldsTheOthersOfItsProcess(t *testing.T) {
	h := fleet.Herd{N: 10, Client: client(every(second)), Outage: fleet.Outage{Down: fleet.Unavailable, Length: 2 * second}}
	h.Server = fleet.Server{Capacity: 1000, Answers: 1000, RetryAfter: 10 * second}
	h.Gate = line.Options{Rate: -1, Concurrent: 1, Probe: every(second)}
	for processes, want := range map[int]int{0: 10, 1: 1, 2: 2, 10: 10} {
		h.Processes = processes
		r := run(t, h)
		dials := 0
		for i, n := range r.DialsPerBin {
			dials += int(n)
			if at := time.Duration(i+1) * fleet.Bin; at <= 12*second {
				require.LessOrEqual(t, dials, want, "%d processes, at %v", processes, at)
			}
		}
		require.True(t, r.Recovered())
		require.Equal(t, 10+want, dials, "%d processes", processes)
		require.InDelta(t, 10, r.T100.Seconds(), 0.1, "%d processes: answered 1 s after the loss, 10 s, and another one", processes)
	}
}

// The wait at the gate is no part of the try: the limits are those of the policy,
// and the outage goes on.
func TestTheGateIsOutsideTheLimitsOfTheTry(t *testing.T) {
	p := script{waits: []time.Duration{0}, connect: second, handshake: second}
	h := fleet.Herd{N: 100, Client: client(p), Processes: 1, Gate: line.Options{Rate: 1, Burst: 1}}
	h.Client.Whole = true
	r := run(t, h)
	require.InDelta(t, 99, r.T100.Seconds(), 0.1)
	require.EqualValues(t, 1, r.Dials)
	require.Zero(t, r.Wasted)

	var seen []backoff.History
	asked := spy{script{waits: []time.Duration{0, time.Hour}}, &seen}
	h = fleet.Herd{N: 2, Client: client(asked), Processes: 1, Gate: line.Options{Rate: -1, Probe: every(10 * second)}}
	h.Outage.Length = 30 * second
	run(t, h)
	var elapsed []time.Duration
	for _, a := range seen {
		elapsed = append(elapsed, a.Elapsed)
	}
	require.Equal(t, []time.Duration{0, 0, 0, 10 * second}, elapsed, "two are lost; one is refused at once, the other one when it may probe")
}

func TestABadGateIsAnError(t *testing.T) {
	ok := fleet.Server{Capacity: 1}
	for want, h := range map[string]fleet.Herd{
		"fleet: 10 connections cannot be spread over -1 processes": {N: 10, Server: ok, Processes: -1},
		"fleet: 10 connections cannot be spread over 11 processes": {N: 10, Server: ok, Processes: 11},
		"fleet: budget: option Burst is negative: -1":              {N: 10, Server: ok, Processes: 1, Gate: line.Options{Burst: -1}},
		"fleet: budget: option Rate is not a number":               {N: 10, Server: ok, Processes: 1, Gate: line.Options{Rate: math.NaN()}},
	} {
		_, err := fleet.Run(t.Context(), h)
		require.EqualError(t, err, want)
	}
}
