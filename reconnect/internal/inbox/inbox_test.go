package inbox_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/inbox"
)

// Two messages are in a chunk. The reader has read the first when a message needs another chunk.
func TestAChunkIsNotWrittenToWhileAMessageInItIsUnread(t *testing.T) {
	for range 20 { // the pool of free chunks may forget one
		in := inbox.New(inbox.Options{Messages: 10, Bytes: 1 << 20, Overflow: inbox.DropOldest}, new(inbox.Counts))
		put := func(letter string, size int) {
			data := append(in.Buffer(size), bytes.Repeat([]byte(letter), size)...)
			require.NoError(t, in.Put(inbox.Item{Message: conn.Message{Data: data}}, inbox.FromLink))
		}
		buf := make([]byte, 2000)
		take := func(letter string) {
			var m inbox.Item
			seam, empty := in.Take(&m, buf)
			require.Nil(t, seam)
			require.Nil(t, empty)
			require.Equal(t, letter, string(m.Data[:1]))
		}
		in.Take(new(inbox.Item), buf) // the reader has a buffer
		put("a", 100)
		put("b", 100)
		put("c", 1900) // the first chunk has no room for it
		take("a")
		put("d", 1900) // the second one neither
		take("b")
		take("c")
		take("d")
	}
}

// The messages of two sessions overlap, so that no seam is between them.
func TestEachSessionHasASeamForItsDroppedMessages(t *testing.T) {
	in := inbox.New(inbox.Options{Messages: 1, Bytes: 1 << 20, Overflow: inbox.DropOldest}, new(inbox.Counts))
	for _, session := range []uint64{1, 2, 2, 2} {
		require.NoError(t, in.Put(inbox.Item{Session: session}, inbox.FromLink))
	}
	for _, n := range []int{1, 2} { // session n has lost n messages
		seam, _ := in.Take(new(inbox.Item), nil)
		require.EqualValues(t, n, seam.Session)
		require.Equal(t, n, seam.Dropped)
	}
}

func TestTheEndOfASessionTakesItsMarkBack(t *testing.T) {
	in := inbox.New(inbox.Options{Messages: 1, Bytes: 1 << 20}, new(inbox.Counts))
	in.PutMark(&inbox.Seam{Session: 1, Refetch: true})
	end := &inbox.Seam{Session: 1}
	in.PutSeam(end)
	seam, _ := in.Take(new(inbox.Item), nil)
	require.Same(t, end, seam)
	_, empty := in.Take(new(inbox.Item), nil)
	require.NotNil(t, empty)
}
