package schedule_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/schedule"
)

func TestPatienceGrowsWithOverloadsOnly(t *testing.T) {
	p := schedule.WithTimeouts(&backoff.Exponential{}, schedule.Timeout{}, schedule.Timeout{Base: time.Second, Factor: 3, Cap: 10 * time.Second})
	for overloads, want := range [][2]time.Duration{{16, 1}, {32, 3}, {64, 9}, {96, 10}, {96, 10}} {
		s, ok := p.Next(backoff.History{N: 50, Overloads: overloads}, seeded())
		require.True(t, ok)
		require.Equal(t, want, [2]time.Duration{s.Connect / time.Second, s.Handshake / time.Second})
	}
}

func TestPatienceHasItsDefaults(t *testing.T) {
	p := schedule.WithTimeouts(nil, schedule.Timeout{}, schedule.Timeout{})
	for overloads, want := range map[int][2]time.Duration{0: {backoff.DefaultConnect, backoff.DefaultHandshake}, 99: {6 * backoff.DefaultConnect, 10 * backoff.DefaultHandshake}} {
		s, _ := p.Next(backoff.History{Overloads: overloads}, seeded())
		require.Equal(t, want, [2]time.Duration{s.Connect, s.Handshake}, "%d overloads", overloads)
	}
}

func TestNegativePatienceLeavesThePolicysLimit(t *testing.T) {
	inside := &seen{step: backoff.Step{Wait: 1, Connect: 2, Handshake: 3}}
	p := schedule.WithTimeouts(inside, schedule.Timeout{Base: -1}, schedule.Timeout{Base: 5, Cap: -1})
	s, _ := p.Next(backoff.History{Overloads: 1}, seeded())
	require.Equal(t, backoff.Step{Wait: 1, Connect: 2, Handshake: 10}, s)
	s, _ = schedule.WithTimeouts(inside, schedule.Timeout{Base: 1}, schedule.Timeout{Base: -1}).Next(backoff.History{}, seeded())
	require.Equal(t, backoff.Step{Wait: 1, Connect: 1, Handshake: 3}, s)
	s, _ = schedule.WithTimeouts(inside, schedule.Timeout{Base: 5, Cap: 1}, schedule.Timeout{Base: 1}).Next(backoff.History{}, seeded())
	require.Equal(t, backoff.Step{Wait: 1, Connect: 1, Handshake: 1}, s)
}

func TestPatienceNeverExceedsItsCap(t *testing.T) {
	p := schedule.WithTimeouts(&seen{}, schedule.Timeout{Base: time.Minute, Cap: time.Second}, schedule.Timeout{Base: math.MaxInt64})
	s, _ := p.Next(backoff.History{}, seeded())
	require.Equal(t, time.Second, s.Connect)
	require.Positive(t, s.Handshake)
	long := schedule.Timeout{Base: 100 * 365 * 24 * time.Hour}
	s, _ = schedule.WithTimeouts(&seen{}, long, long).Next(backoff.History{Overloads: 99}, seeded())
	require.GreaterOrEqual(t, min(s.Connect, s.Handshake), long.Base, "no overflow")
}

func TestATimeoutMayGoByTheOutage(t *testing.T) {
	p := schedule.WithTimeouts(&backoff.Exponential{}, schedule.Timeout{Share: 0.25}, schedule.Timeout{Share: 4, Cap: -1})
	for _, c := range []struct {
		overloads          int
		elapsed            time.Duration
		connect, handshake time.Duration
	}{
		{0, time.Hour, 16 * time.Second, 30 * time.Second},
		{1, time.Second, 16 * time.Second, 30 * time.Second},
		{1, 2 * time.Minute, 30 * time.Second, 8 * time.Minute},
		{100, time.Hour, 96 * time.Second, 4 * time.Hour},
	} {
		s, _ := p.Next(backoff.History{N: 1, Overloads: c.overloads, Elapsed: c.elapsed}, seeded())
		require.Equal(t, []time.Duration{c.connect, c.handshake}, []time.Duration{s.Connect, s.Handshake}, "%+v", c)
	}
}
