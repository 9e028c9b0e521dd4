//go:build !js

package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAFrameHasItsNumber(t *testing.T) {
	n, err := number(frame(3000))
	require.NoError(t, err)
	require.Equal(t, uint64(3000), n)
	_, err = number(frame(1)[1:])
	require.EqualError(t, err, "a frame has 159 bytes, want 160")
}

func TestAControlHasAType(t *testing.T) {
	want := control{Type: "goAway", Handle: "call-1", TimeLeft: 2000}
	got, err := decode(want.encode())
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, data := range []string{"", "{}", "7", `{"type":1}`} {
		_, err := decode([]byte(data))
		require.Error(t, err, data)
	}
}

// A goroutine that was late sends what is due, and is in time again.
func TestABeatMakesUpForLostTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		beat(t.Context(), func(n uint64) bool {
			require.Equal(t, uint64(len(at)+1), n)
			at = append(at, time.Since(start))
			if n == 2 {
				time.Sleep(50 * time.Millisecond)
			}
			return n < 6
		})
		for i, want := range []int{0, 20, 70, 70, 80, 100} {
			require.Equal(t, time.Duration(want)*time.Millisecond, at[i], "beat %d", i+1)
		}
		ctx, cancel := context.WithCancel(t.Context())
		beat(ctx, func(uint64) bool { cancel(); return true }) // ends
	})
}
