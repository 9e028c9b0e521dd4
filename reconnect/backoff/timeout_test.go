package backoff_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

func TestPatienceGrowsWithOverloadsOnly(t *testing.T) {
	handshake := backoff.Timeout{Base: time.Second, Factor: 3, Cap: 10 * time.Second}
	p := backoff.WithTimeouts(&backoff.Exponential{}, backoff.Timeout{}, handshake)
	for overloads, want := range [][2]time.Duration{{16, 1}, {32, 3}, {64, 9}, {96, 10}, {96, 10}} {
		s, ok := p.Next(backoff.History{N: 50, Overloads: overloads}, seeded())
		require.True(t, ok)
		require.Equal(t, want, [2]time.Duration{s.Connect / time.Second, s.Handshake / time.Second})
	}
}

func TestPatienceHasItsDefaults(t *testing.T) {
	p := backoff.WithTimeouts(nil, backoff.Timeout{}, backoff.Timeout{})
	for overloads, want := range map[int][2]time.Duration{
		0:  {backoff.DefaultConnect, backoff.DefaultHandshake},
		99: {6 * backoff.DefaultConnect, 10 * backoff.DefaultHandshake},
	} {
		s, _ := p.Next(backoff.History{Overloads: overloads}, seeded())
		require.Equal(t, want, [2]time.Duration{s.Connect, s.Handshake}, "%d overloads", overloads)
	}
}

func TestNegativePatienceLeavesThePolicysLimit(t *testing.T) {
	inside := &seen{step: backoff.Step{Wait: 1, Connect: 2, Handshake: 3}}
	next := func(connect, handshake backoff.Timeout, overloads int) backoff.Step {
		p := backoff.WithTimeouts(inside, connect, handshake)
		s, _ := p.Next(backoff.History{Overloads: overloads}, seeded())
		return s
	}
	s := next(backoff.Timeout{Base: -1}, backoff.Timeout{Base: 5, Cap: -1}, 1)
	require.Equal(t, backoff.Step{Wait: 1, Connect: 2, Handshake: 10}, s)
	s = next(backoff.Timeout{Base: 1}, backoff.Timeout{Base: -1}, 0)
	require.Equal(t, backoff.Step{Wait: 1, Connect: 1, Handshake: 3}, s)
	s = next(backoff.Timeout{Base: 5, Cap: 1}, backoff.Timeout{Base: 1}, 0)
	require.Equal(t, backoff.Step{Wait: 1, Connect: 1, Handshake: 1}, s)
}

func TestPatienceNeverExceedsItsCap(t *testing.T) {
	connect := backoff.Timeout{Base: time.Minute, Cap: time.Second}
	p := backoff.WithTimeouts(&seen{}, connect, backoff.Timeout{Base: math.MaxInt64})
	s, _ := p.Next(backoff.History{}, seeded())
	require.Equal(t, time.Second, s.Connect)
	require.Positive(t, s.Handshake)
	long := backoff.Timeout{Base: 100 * 365 * 24 * time.Hour}
	s, _ = backoff.WithTimeouts(&seen{}, long, long).Next(backoff.History{Overloads: 99}, seeded())
	require.GreaterOrEqual(t, min(s.Connect, s.Handshake), long.Base, "no overflow")
}

func TestATimeoutMayGoByTheOutage(t *testing.T) {
	p := backoff.WithTimeouts(&backoff.Exponential{}, backoff.Timeout{Share: 0.25}, backoff.Timeout{Share: 4, Cap: -1})
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

// timeouts are the limits of a Timeout after some overloads.
var timeouts = []struct {
	name      string
	timeout   backoff.Timeout
	overloads int
	elapsed   time.Duration

	connect, handshake time.Duration
}{
	{"Timeout.Base", backoff.Timeout{Base: 3 * sec}, 0, time.Hour, 3 * sec, 3 * sec},
	{"Timeout.Base by default", backoff.Timeout{}, 0, time.Hour, 16 * sec, 30 * sec},
	{"Timeout.Factor", backoff.Timeout{Base: sec, Factor: 1.5}, 2, 0, sec * 9 / 4, sec * 9 / 4},
	{"Timeout.Factor by default", backoff.Timeout{Base: sec}, 2, 0, 4 * sec, 4 * sec},
	{"Timeout.Share", backoff.Timeout{Base: sec, Share: 0.25}, 1, 16 * sec, 4 * sec, 4 * sec},
	{"Timeout.Share, Base at least", backoff.Timeout{Base: sec, Share: 0.25}, 1, 4*sec - 1, sec, sec},
	{"Timeout.Cap", backoff.Timeout{Base: sec, Cap: 5 * sec}, 9, 0, 5 * sec, 5 * sec},
	{"Timeout.Cap by default", backoff.Timeout{Base: sec}, 9, 0, 6 * sec, 10 * sec},
	{"Timeout.Cap, of Share", backoff.Timeout{Base: sec, Share: 0.25, Cap: 5 * sec}, 1, time.Hour, 5 * sec, 5 * sec},
}

func TestTimeoutsAreExact(t *testing.T) {
	for _, c := range timeouts {
		p := backoff.WithTimeouts(&seen{}, c.timeout, c.timeout)
		s, _ := p.Next(backoff.History{Overloads: c.overloads, Elapsed: c.elapsed}, seeded())
		require.Equal(t, c.connect, s.Connect, c.name)
		require.Equal(t, c.handshake, s.Handshake, c.name)
	}
}
