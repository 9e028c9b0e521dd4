package dialer

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFamiliesTakeTurnsAndEachIsShuffled(t *testing.T) {
	given := addrs("::1", "127.0.0.1", "::2", "::ffff:127.0.0.1", "127.0.0.2", "::3")
	var seen [5]map[string]bool
	for i := range seen {
		seen[i] = map[string]bool{}
	}
	for range 500 {
		order := interleave(given, rand.Shuffle)
		require.Len(t, order, 5, "one of them is there twice")
		for i, a := range order {
			require.Equal(t, i == 1 || i == 3, a.Is4(), "%v", order)
			seen[i][a.String()] = true
		}
	}
	for i, addresses := range seen {
		require.Len(t, addresses, map[bool]int{true: 2, false: 3}[i == 1 || i == 3], "place %d", i)
	}
}
