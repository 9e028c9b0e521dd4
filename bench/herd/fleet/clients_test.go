package fleet_test

import (
	"cmp"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/reconnect/backoff"
)

// limits returns the limits on connecting of a client's first dials, or nil if a client that
// has one limit on the whole dial has another on the handshake.
func limits(c fleet.Client) (all []time.Duration) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 3 {
		s, _ := c.Policy.Next(backoff.History{N: n}, r)
		if c.Whole && s.Handshake != s.Connect {
			return nil // another limit than the one
		}
		all = append(all, s.Connect)
	}
	return all
}

func TestAClientHasItsLimitOnEachDial(t *testing.T) {
	for _, c := range fleet.Clients() {
		all := limits(c)
		require.Len(t, all, 3, c.Name)
		for _, limit := range all {
			require.Positive(t, limit, c.Name)
			if c.Limit > 0 {
				require.Equal(t, c.Limit, limit, c.Name)
			}
		}
	}
	grpc, _ := fleet.Find("grpc")
	require.Equal(t, []time.Duration{20 * time.Second, 20 * time.Second, 20 * time.Second}, limits(grpc))
}

func TestOnlyAClientWithoutALimitIsLentOne(t *testing.T) {
	lent := 0
	for _, c := range fleet.Clients() {
		longer := c.Lend(10 * time.Second)
		if !c.Lent {
			require.Equal(t, limits(c), limits(longer), c.Name)
			continue
		}
		lent++
		require.Equal(t, fleet.LentLimit, c.Limit, c.Name)
		require.Equal(t, 10*time.Second, longer.Limit, c.Name)
		require.Equal(t, []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second}, limits(longer), c.Name)
	}
	require.Equal(t, 8, lent, "full jitter four times, fixed, exponential, cenkalti, decorrelated")
}

func TestClientWithoutLimitHasSeveralLendings(t *testing.T) {
	for _, c := range fleet.Clients() {
		all := c.Lendings()
		if !c.Lent {
			require.Equal(t, []string{c.Name}, pick.Names(all, fleet.NameOf))
			continue
		}
		require.Len(t, all, len(fleet.LentLimits))
		for i, l := range all {
			found, err := fleet.Find(l.Name)
			require.NoError(t, err)
			require.Equal(t, []time.Duration{l.Limit, l.Limit, l.Limit}, limits(found), l.Name)
			require.Equal(t, fleet.LentLimits[i], l.Limit)
			require.False(t, found.Lent)
		}
	}
}

func TestSummariesCompareByLaterTimes(t *testing.T) {
	const s = time.Second
	inOrder := []fleet.Summary{
		{T99: s, T100: 2 * s, Up: 9, Dials: 1},
		{T99: s, T100: 2 * s, Up: 9, Dials: 2},
		{T99: s, T100: fleet.Never, Up: 9},
		{T99: s, T100: fleet.Never, Up: 8},
		{T99: 2 * s, T100: 2 * s, Up: 9},
		{T99: fleet.Never, T100: fleet.Never, Up: 9},
	}
	for i := range inOrder {
		for j := range inOrder {
			require.Equal(t, cmp.Compare(i, j), inOrder[i].Compare(&inOrder[j]), "%d and %d", i, j)
		}
	}
}
