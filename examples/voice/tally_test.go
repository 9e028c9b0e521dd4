//go:build !js

package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestATallyFindsWhatIsMissingWhatCameTwiceAndThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &frames{}
		for range 6 {
			f.toService.send()
		}
		var complete []bool                      // after each
		for _, n := range []uint64{2, 1, 2, 5} { // 3, 4 and 6 are missing
			f.toService.receive(n)
			complete = append(complete, f.toService.complete())
			time.Sleep(time.Duration(n) * every)
		}
		require.Equal(t, []bool{false, true, true, false}, complete)
		require.Equal(t, "6 sent, 4 received, 3 missing, 1 twice, longest pause 40ms", f.toService.String())
		require.Equal(t, [2]int{3, 1}, f.toService.faults())
		require.False(t, f.once())
		require.True(t, new(frames).once())
	})
}
