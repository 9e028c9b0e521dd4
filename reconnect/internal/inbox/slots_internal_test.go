package inbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// slotsWith returns slots with n messages.
func slotsWith(n int) (s *slots) {
	for i := range n {
		s = s.add(unread{Item: Item{Session: uint64(i)}})
	}
	return s
}

func TestFewSlotsBecomeManyWhenTheyAreFull(t *testing.T) {
	for n := 1; n <= manySlots; n++ {
		s := slotsWith(n)
		require.Equal(t, n, s.len())
		want := fewSlots
		if n > fewSlots {
			want = manySlots
		}
		require.Equal(t, want, cap(s.list), "%d messages", n)
		for i, u := range s.list {
			require.EqualValues(t, i, u.Session)
		}
	}
}

// Messages are joined only if there is room for all of them.
func TestSlotsJoinUpToTheirCapacity(t *testing.T) {
	for n := 1; n <= fewSlots; n++ {
		for more := 1; more <= fewSlots; more++ {
			s := slotsWith(n)
			require.Equal(t, n+more <= fewSlots, s.join(slotsWith(more)), "%d and %d", n, more)
			require.Equal(t, fewSlots, cap(s.list))
		}
	}
	require.False(t, (*slots)(nil).join(slotsWith(1)))
}
