package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThereIsNoRoomForAPairThatWouldTakeTheLastTenthOfTheMemory(t *testing.T) {
	var r room
	for _, w := range []struct {
		free float64
		want bool
	}{
		{0.9, true},  // nothing is known of a pair
		{0.6, true},  // one takes 0.3
		{0.55, true}, // another 0.05, and 0.25 would be left
		{0.39, false},
	} {
		require.Equal(t, w.want, r.forOneMore(w.free), w.free)
	}
	require.False(t, new(room).forOneMore(0.05))
}
