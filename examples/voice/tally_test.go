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
		said, heard := &tally{}, &tally{}
		for n := range uint64(6) {
			said.frame(n + 1)
			time.Sleep(every)
		}
		for _, n := range []uint64{2, 1, 2, 5} { // 3, 4 and 6 are missing
			heard.frame(n)
			time.Sleep(time.Duration(n) * every)
		}
		require.Equal(t, result{
			said: 6, heard: 4, missing: 3, twice: 1, saidPause: every, heardPause: 2 * every,
		}, counted{said, heard}.result())
	})
}

func TestToWaitForAWriteIsNoPauseOfTheSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := &tally{}
		said.frame(1)
		time.Sleep(time.Second) // in Write
		said.written()
		time.Sleep(every)
		said.frame(2)
		require.Equal(t, every, said.counts().longest)
	})
}
