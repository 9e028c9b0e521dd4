//go:build !js

package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAFaultIsAFrameThatIsMissingOrCameTwiceOrALongPause(t *testing.T) {
	const ms = time.Millisecond
	good := result{said: 9, heard: 9, saidPause: 20 * ms, heardPause: 120 * ms}
	require.NoError(t, good.fault())
	busy := good
	busy.saidPause, busy.heardPause = 150*ms, 250*ms
	require.NoError(t, busy.fault(), "the sender was late itself")
	for want, change := range map[string]func(*result){
		"1 frames are missing, 0 came twice, the longest pause was 120ms, and 20ms at the sender": func(r *result) { r.missing = 1 },
		"0 frames are missing, 2 came twice, the longest pause was 120ms, and 20ms at the sender": func(r *result) { r.twice = 2 },
		"0 frames are missing, 0 came twice, the longest pause was 121ms, and 20ms at the sender": func(r *result) { r.heardPause += ms },
	} {
		bad := good
		change(&bad)
		require.EqualError(t, bad.fault(), want)
	}
}

func TestACallThatWasNotHeldToItsEndIsAFault(t *testing.T) {
	silent := counted{&tally{}, &tally{}}
	r := report{toService: silent, toCaller: silent}
	require.NoError(t, r.verdict())
	r.err = errors.New("interrupted")
	require.EqualError(t, r.verdict(), "interrupted")
}
