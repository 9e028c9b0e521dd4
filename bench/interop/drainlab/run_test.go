package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// drained is a small drain. It skips the test where there is no haproxy.
func drained(t *testing.T, way string, window time.Duration) *Result {
	t.Helper()
	if _, err := FindHAProxy(); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	r, err := Run(t.Context(), Drain{Way: way, Clients: 200, Window: window, Lead: 500 * time.Millisecond})
	require.NoError(t, err)
	sum := 0
	for _, n := range r.Dials {
		sum += n
	}
	require.GreaterOrEqual(t, sum, 200, "each client has dialed")
	require.Positive(t, r.Peak)
	require.GreaterOrEqual(t, r.Sent, uint64(200))
	require.Zero(t, r.Lost)
	return r
}

// All real: haproxy, two generations of a server, SIGTERM, 200 clients on sockets. How long
// things take depends on the machine.
func TestNothingIsLostWhenAServerDrains(t *testing.T) {
	for _, way := range []string{"cut", "drain"} {
		t.Run(way, func(t *testing.T) {
			r := drained(t, way, 2*time.Second)
			require.Equal(t, 200, r.Cut)
			require.Positive(t, r.Away)
		})
	}
}

// By the other ways all 200 are cut. A client that is warned dials at a random moment before its
// close, which is 2.5 s after the notice (a quarter of the window), or 10 s with "notice all". So
// half of them are cut only if the dials take 1.25 s on average. That nobody is cut is tried in
// virtual time, by the tests of reconnect/drain.
func TestClientsThatAreWarnedRotate(t *testing.T) {
	for _, way := range []string{"notice", "notice all"} {
		t.Run(way, func(t *testing.T) {
			r := drained(t, way, 10*time.Second)
			t.Logf("%d of 200 were cut", r.Cut)
			require.Less(t, r.Cut, 100, "at least half have rotated")
			require.Positive(t, r.Twice, "both servers give everything while both connections are there")
		})
	}
}

func TestADrainEndsWithItsContext(t *testing.T) {
	if _, err := FindHAProxy(); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	_, err := Run(ctx, Drain{Way: "drain", Clients: 10})
	require.ErrorIs(t, err, enough)
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for want, d := range map[string]Drain{
		`there is no way "x": there are cut, drain, notice, notice all`:             {Way: "x"},
		"want 1 to 50000 clients, not -1":                                           {Way: "cut", Clients: -1},
		"want a window of 1s to 1h0m0s, not 1ms":                                    {Way: "cut", Window: time.Millisecond},
		"want a lead of 0s to 1h0m0s, not -1s":                                      {Way: "cut", Lead: -time.Second},
		"want above 0 and at most 1000 messages per second for each client, not -1": {Way: "cut", Rate: -1},
	} {
		_, err := Run(t.Context(), d)
		require.EqualError(t, err, "measure a drain: "+want)
	}
}

func TestNumbersThatCameAreCountedOnce(t *testing.T) {
	for _, c := range []struct {
		spans            [][]span
		different, again uint64
	}{
		{nil, 0, 0},
		{[][]span{{{1, 10}}, {{11, 20}}}, 20, 0},
		{[][]span{{{1, 10}}, {{12, 20}}}, 19, 0},
		{[][]span{{{1, 10}}, {{10, 20}}}, 20, 1},
		{[][]span{{{1, 10}, {3, 4}}, {{2, 5}}}, 10, 6},
		{[][]span{{{5, 9}, {1, 4}}, nil}, 9, 0},
	} {
		different, again := union(c.spans...)
		require.Equal(t, []uint64{c.different, c.again}, []uint64{different, again}, c.spans)
	}
}

func TestAServerNotesNumbersInARow(t *testing.T) {
	v := &server{received: make([][]span, 1)}
	for _, n := range []uint64{1, 2, 3, 5, 6, 6} {
		v.receive(0, n)
	}
	require.Equal(t, []span{{1, 3}, {5, 6}, {6, 6}}, v.received[0])
}

func TestEachClientHasItsMoments(t *testing.T) {
	s := &setup{Drain: Drain{Clients: 4, Rate: 2}, Epoch: time.Unix(100, 0)}
	require.Zero(t, s.due(0, s.Epoch.Add(-time.Second)))
	require.Equal(t, []uint64{2, 1}, []uint64{s.due(0, s.Epoch.Add(time.Second)), s.due(1, s.Epoch.Add(time.Second))})
	for who := range 4 {
		for n := uint64(1); n < 100; n++ {
			at := s.when(who, n)
			require.Equal(t, []uint64{n - 1, n}, []uint64{s.due(who, at.Add(-time.Millisecond)), s.due(who, at)})
		}
	}
}

func TestANoticeIsRead(t *testing.T) {
	by, ok := parseLeave(leaveBy + "1700000000123")
	require.True(t, ok)
	require.True(t, by.Equal(time.UnixMilli(1700000000123)))
	for _, text := range []string{"17", "leave by ", "leave by x", ""} {
		_, ok := parseLeave(text)
		require.False(t, ok, text)
	}
}

func TestAClientKnowsWhatItHasMissed(t *testing.T) {
	c := &client{}
	for _, text := range []string{"1", "2", "5", "5", "3", "6", "nonsense"} {
		c.take(t.Context(), message(text))
	}
	require.Equal(t, []uint64{6, 2, 2}, []uint64{c.have.Load(), c.missed.Load(), c.twice.Load()})
}
