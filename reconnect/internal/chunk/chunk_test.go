package chunk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/chunk"
)

func TestAChunkHoldsOnlyWhatWasReadIntoIt(t *testing.T) {
	c := chunk.New(10)
	require.True(t, c.Holds(append(c.Room(), "first"...)))
	require.True(t, c.Holds(append(c.Room(), 1)))
	require.False(t, c.Holds([]byte("first")))
	require.False(t, c.Holds(c.Room()), "nothing lies nowhere")
	c.Take(append(c.Room(), "first"...))
	require.True(t, c.Holds(append(c.Room(), "second"...)))
	require.False(t, c.Holds([]byte("second")))
}

// What was taken stays where it is, and what is read after it lies behind it, until the chunk is full.
func TestAChunkIsFilledFromTheFront(t *testing.T) {
	c := chunk.New(10)
	first := append(c.Room(), "first"...)
	c.Take(first)
	second := append(c.Room(), "second"...)
	c.Take(second)
	require.Equal(t, "first", string(first))
	require.Equal(t, "second", string(second))
	require.Equal(t, c.Size()-len("firstsecond"), cap(c.Room()))
	require.Empty(t, c.Room())
	c.Take(c.Room()[:cap(c.Room())-1])
	require.True(t, c.Holds(append(c.Room(), 1)), "one byte fits")
	c.Take(c.Room()[:1])
	require.Zero(t, cap(c.Room()), "it is full")
	require.False(t, c.Holds([]byte("third")))
}

// A chunk is the smallest with enough room, and 64 KiB is the largest.
func TestAChunkHasRoomForWhatWasAsked(t *testing.T) {
	for _, c := range []struct{ size, of int }{
		{0, 2048}, {1, 2048}, {2048, 2048}, {2049, 8192}, {8192, 8192}, {8193, 65536}, {65536, 65536},
	} {
		got := chunk.New(c.size)
		require.Equal(t, c.of, got.Size(), c.size)
		require.Equal(t, c.of, cap(got.Room()), c.size)
	}
	require.EqualValues(t, 65536, chunk.Largest)
	require.Nil(t, chunk.New(chunk.Largest+1))
}

// The memory of a free chunk serves the next one of its size, which is empty.
func TestAFreeChunkIsUsedAgain(t *testing.T) {
	for _, size := range []int{2048, 8192, chunk.Largest} {
		used := map[*byte]bool{}
		again := 0
		for range 1000 { // a pool may forget
			c := chunk.New(size)
			room := c.Room()
			require.Empty(t, room)
			require.Equal(t, size, cap(room))
			if at := &room[:1][0]; used[at] {
				again++
			} else {
				used[at] = true
			}
			c.Take(append(room, "used"...))
			c.Free()
		}
		require.Positive(t, again)
	}
}
