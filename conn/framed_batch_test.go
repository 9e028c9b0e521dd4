package conn_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

func lettersOf(texts ...string) (ms []conn.Message) {
	for _, text := range texts {
		ms = append(ms, bytesOf(text))
	}
	return ms
}

func TestABatchOfSmallFramesIsOneWrite(t *testing.T) {
	nc := &oneByOne{}
	c, err := conn.NewFramed(nc, conn.LengthPrefix{Size: 1}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	n, err := c.WriteBatch(lettersOf("one", "", "three"))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Equal(t, []string{"\x03one\x00\x05three"}, nc.writes)
	n, err = c.WriteBatch(nil)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Len(t, nc.writes, 1)
}

func TestALongBatchIsWrittenInParts(t *testing.T) {
	nc := &oneByOne{}
	c, err := conn.NewFramed(nc, conn.Lines{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	ms := slices.Repeat(lettersOf("x"), 100)
	ms = append(ms, lettersOf(strings.Repeat("y", 100_000), strings.Repeat("z", 20_000), "w")...)
	n, err := c.WriteBatch(ms)
	require.NoError(t, err)
	require.Equal(t, len(ms), n)
	var sizes []int
	for _, w := range nc.writes {
		sizes = append(sizes, len(w))
	}
	require.Equal(t, []int{128, 72, 100_001, 20_003}, sizes)
	require.Equal(t, strings.Repeat("x\n", 100), nc.writes[0]+nc.writes[1])
	require.True(t, strings.HasSuffix(nc.writes[3], "z\nw\n"))
}

func TestABadMessageEndsABatchOfFramesWithoutHarm(t *testing.T) {
	nc := &oneByOne{}
	c, err := conn.NewFramed(nc, conn.Lines{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	n, err := c.WriteBatch(lettersOf("a", "b", "c\nd", "e"))
	require.Equal(t, 2, n)
	require.ErrorIs(t, err, conn.ErrBadMessage)
	require.ErrorIs(t, err, conn.ErrNotWritten)
	require.Equal(t, []string{"a\nb\n"}, nc.writes)
	require.NoError(t, c.Write(bytesOf("e")))
}

// Wherever the net.Conn stops, the number of whole messages is exact, and so is what
// became of the next.
func TestABatchOfFramesThatFailsSaysExactlyHowFarItCame(t *testing.T) {
	ends := []int{2, 5, 6, 11}
	for took := range 12 {
		nc := &oneByOne{err: syscall.EPIPE, took: took}
		c, err := conn.NewFramed(nc, conn.Lines{}, nil)
		require.NoError(t, err)
		n, err := c.WriteBatch(lettersOf("1", "22", "", "4444"))
		whole, begin := 0, 0
		for whole < 3 && ends[whole] <= took {
			begin = ends[whole]
			whole++
		}
		require.Equal(t, whole, n, took)
		require.ErrorIs(t, err, syscall.EPIPE)
		require.Equal(t, took == begin, errors.Is(err, conn.ErrNotWritten), took)
		require.NoError(t, c.CloseNow())
	}
}

// A careless Framer returns what it was given: no message overwrites another.
func TestABatchOfACarelessFramerIsWhole(t *testing.T) {
	nc := &oneByOne{}
	c, err := conn.NewFramed(nc, raw{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	mine := []byte("mine\nand more")
	_, err = c.WriteBatch([]conn.Message{{Data: mine[:5]}, {Data: []byte("yours\n")}})
	require.NoError(t, err)
	require.Equal(t, []string{"mine\nyours\n"}, nc.writes)
	require.Equal(t, "mine\nand more", string(mine))
}

func TestABatchOfFramesAllocatesNothing(t *testing.T) {
	if conn.RaceEnabled() {
		return
	}
	c, err := conn.NewFramed(&endless{}, conn.Lines{}, nil)
	require.NoError(t, err)
	defer c.CloseNow()
	ms := slices.Repeat(lettersOf(strings.Repeat("x", 128)), 100)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := c.WriteBatch(ms); err != nil {
			t.Error(err)
		}
	}))
}
