package chunk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/chunk"
)

func TestAChunkHoldsOnlyWhatWasReadIntoIt(t *testing.T) {
	c := chunk.New(10)
	require.True(t, c.Holds(append(c.Room(), "first"...)))
	require.False(t, c.Holds([]byte("first")))
	c.Take(append(c.Room(), "first"...))
	require.True(t, c.Holds(append(c.Room(), "second"...)))
	require.False(t, c.Holds([]byte("second")))
}
