package drain

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// A schedule gives the same as a sorted list, whatever is added, moved and removed.
func TestTheNextIsAlwaysTheEarliest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s schedule[*slot]
	var list []*slot
	for range 20_000 {
		switch i := r.IntN(max(len(list), 1)); {
		case len(list) == 0 || r.IntN(3) == 0:
			x := &slot{at: time.Duration(r.IntN(1000))}
			s.add(x)
			list = append(list, x)
		case r.IntN(2) == 0:
			list[i].at = time.Duration(r.IntN(1000))
			s.moved(list[i])
		default:
			s.remove(list[i])
			list = slices.Delete(list, i, i+1)
		}
		require.Len(t, s, len(list))
		want := never
		for _, x := range list {
			want = min(want, x.at)
			require.Same(t, x, s[x.index])
		}
		require.Equal(t, want, s.next())
		if len(list) > 50 {
			s, list = nil, nil
		}
	}
}

// The cost of each connection to a server, besides the closer.
func TestAMemberIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Member{}), uintptr(48))
}
