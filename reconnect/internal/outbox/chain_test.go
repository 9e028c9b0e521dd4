package outbox

import (
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
