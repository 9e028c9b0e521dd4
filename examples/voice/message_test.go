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

func TestAControlIsReadAsItWasWritten(t *testing.T) {
	want := control{Type: "goAway", Handle: "call-1", TimeLeft: 2000}
	got, err := decode(want.message().Data)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, data := range []string{"", "7", `{"type":1}`} {
		_, err := decode([]byte(data))
		require.Error(t, err, data)
	}
}

func TestABeatEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		ctx, cancel := context.WithCancel(t.Context())
		beat(ctx, func(n uint64) bool {
			require.Equal(t, uint64(len(at)+1), n)
			if at = append(at, time.Since(start)); n == 3 {
				cancel()
			}
			return true
		})
		require.Equal(t, []time.Duration{0, every, 2 * every}, at)
	})
}
