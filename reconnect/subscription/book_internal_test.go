package subscription

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

// A key that is added and removed again and again before its request can be made takes no memory.
func TestAKeyThatIsRemovedBeforeItsRequestLeavesTheQueue(t *testing.T) {
	s, err := New(&Options[int]{
		Encode:    func(*Request[int]) (conn.Message, error) { return conn.Message{}, nil },
		NoAnswers: true,
	})
	require.NoError(t, err)
	b := newBook(s, 1, 0) // not ready, so that nothing is sent
	s.books = append(s.books, b)
	s.Add(-3, -2, -1)
	for i := range 10_000 {
		s.Add(0, i)
		s.Remove(0, i)
		require.Equal(t, 3, b.adds.Len())
	}
	require.Len(t, s.entries, 3)
	r := b.next(true)
	require.Equal(t, []int{-3, -2, -1}, r.Keys)
	require.Nil(t, b.adds.list)
}
