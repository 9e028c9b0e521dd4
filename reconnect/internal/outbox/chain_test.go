package outbox

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// An entry that is used again is empty, and belongs to one message at a time.
func TestEntriesAreUsedAgainOneByOne(t *testing.T) {
	var s spare
	entries := map[*entry]bool{}
	for range 3 {
		e := new(entry)
		e.Key, e.Value.Out.Key = "key", "key"
		entries[e] = true
		s.add(e)
	}
	for range 3 {
		e := s.take()
		require.True(t, entries[e])
		require.Equal(t, entry{}, *e)
		delete(entries, e)
	}
	require.Nil(t, s.first)
}

// What somebody else still knows is not used again.
func TestASharedEntryIsNotUsedAgain(t *testing.T) {
	var s spare
	e := new(entry)
	e.Value.shared = true
	s.add(e)
	require.Nil(t, s.first)
}

// Whoever takes a chain takes no more than the entries of one batch.
func TestAChainIsNoLongerThanABatch(t *testing.T) {
	var s spare
	for range batchMessages + 1 {
		s.add(new(entry))
	}
	require.Equal(t, spare{first: s.first, count: 1}, s)
	require.Nil(t, s.first.Value.next)
	s.free()
	require.Equal(t, spare{}, s)
}

// chained returns a chain of entries.
func chained(entries ...*entry) (c chain) {
	for _, e := range entries {
		c.add(chain{e, e})
	}
	return c
}

func TestChainsAreJoinedInOrder(t *testing.T) {
	a, b, c, d := new(entry), new(entry), new(entry), new(entry)
	var all chain
	for _, part := range []chain{{}, chained(a, b), {}, chained(c), {}, chained(d), {}} {
		all.add(part)
	}
	require.Same(t, d, all.last)
	for e, want := all.first, []*entry{a, b, c, d}; len(want) > 0; e, want = e.Value.next, want[1:] {
		require.Same(t, want[0], e)
	}
	require.Nil(t, d.Value.next)
}

// What one outbox has given away another one takes.
func TestAChainThatWasGivenAwayIsTaken(t *testing.T) {
	unused = sync.Pool{}
	for range 1000 { // because a pool may lose what it gets
		var s, other spare
		require.NotNil(t, other.take(), "there is none")
		e := new(entry)
		s.add(e)
		s.free()
		if other.take() == e {
			return
		}
	}
	t.Error("no entry is used again")
}
