//go:build !js

package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// world is a call of a minute in virtual time. Everything takes 27 ms from one end to the other.
// The life is no multiple of 20 ms, so that the service never ends a connection at the instant of a
// frame.
type world struct {
	service *service
	caller  *caller
	ends    map[string]int // how many sessions were ended by each cause
	err     error          // of the call
}

// held holds the call, with the same draws each time. The service may forget it after the first connection.
func held(t *testing.T, rotate bool, overlap reconnect.Overlap, forget bool) *world {
	w := &world{ends: map[string]int{}}
	synctest.Test(t, func(t *testing.T) {
		w.service = newService(9990 * time.Millisecond)
		defer w.service.close()
		other := newService(time.Minute) // which does not know the call
		defer other.close()
		var served atomic.Bool
		network := new(conntest.Network)
		server := conntest.NewServer(network, "voice.test:80", func(ctx context.Context, ws *websocket.Conn, _ *http.Request) {
			conntest.PipeOf(ctx).Latency(conntest.Both, 27*time.Millisecond)
			if first := served.CompareAndSwap(false, true); forget && !first {
				other.serve(ws)
				return
			}
			w.service.serve(ws)
		})
		defer server.Close()
		var err error
		w.caller, err = newCaller(&dialer.WebSocket{URL: "ws://voice.test", DialContext: network.DialContext}, &w.service.frames, &reconnect.Options{
			Rotate: reconnect.Rotation{Overlap: overlap},
			Run: reconnect.RunOptions{
				Rand:  rand.NewPCG(1, 2),
				Trace: &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { w.ends[e.Cause.Error()]++ }},
			},
		})
		require.NoError(t, err)
		w.caller.rotate = rotate
		w.err = w.caller.call(t.Context(), time.Minute)
		require.LessOrEqual(t, network.Count("voice.test:80").MaxHeld, 2)
	})
	return w
}

func (w *world) rotations() []uint64 {
	s := w.caller.line.Stats()
	return []uint64{s.Rotations, s.RotationsFailed}
}

// counts are those of a tally: sent, received, missing, twice.
func counts(t *tally) []int { return []int{t.sent, t.came, t.sent - len(t.seen), t.came - len(t.seen)} }

func TestEveryFrameComesOnceWhileSessionsAreReplaced(t *testing.T) {
	for overlap, longest := range map[reconnect.Overlap]time.Duration{
		// The service closes the old connection when it hears the caller by the new one, at most 20
		// ms after that was ready, and 27 ms away. The caller learns of it another 27 ms later.
		reconnect.OverlapHold: 74 * time.Millisecond,
		reconnect.OverlapMix:  20 * time.Millisecond,
	} {
		w := held(t, true, overlap, false)
		require.NoError(t, w.err, overlap)
		f := w.caller.frames
		require.True(t, f.once())
		require.Equal(t, []int{3000, 3000, 0, 0}, counts(&f.toService), overlap)
		require.Equal(t, every, f.toService.pause, overlap)
		require.Equal(t, []int{3002, 3002, 0, 0}, counts(&f.toCaller), overlap)
		require.Equal(t, longest, f.toCaller.pause, overlap)
		require.Equal(t, []uint64{6, 0}, w.rotations(), overlap)
		require.Equal(t, map[string]int{
			`read: closed by the peer: 1000 "the call has moved"`: 6,
			"use of closed network connection":                    1,
		}, w.ends, overlap)
	}
}

func TestASessionCanBeClosedBeforeTheNextIsDialed(t *testing.T) {
	w := held(t, true, reconnect.OverlapBreakFirst, false)
	require.NoError(t, w.err)
	f := w.caller.frames
	require.Positive(t, f.toCaller.faults()[0], "frames are on their way when the session is closed")
	require.Equal(t, []uint64{7, 0}, w.rotations())
	require.Equal(t, map[string]int{
		"the service ends it in 1.998s":    7,
		"use of closed network connection": 1,
	}, w.ends)
	require.Equal(t, []int{3000, 3000, 0, 0}, counts(&f.toService), "a frame of the caller waits for the next session")
	require.Equal(t, f.toCaller.came, len(f.toCaller.seen), "none twice")
}

func TestWithoutRotationFramesAreLostAndLate(t *testing.T) {
	w := held(t, false, reconnect.OverlapHold, false)
	require.NoError(t, w.err)
	f := w.caller.frames
	require.False(t, f.once())
	require.Equal(t, []uint64{0, 0}, w.rotations())
	require.Equal(t, map[string]int{
		`read: closed by the peer: 1001 "time is up"`: 5,
		"use of closed network connection":            1,
	}, w.ends)
	for _, d := range []*tally{&f.toService, &f.toCaller} {
		require.Greater(t, d.sent-len(d.seen), 40)
		require.Equal(t, d.came, len(d.seen), "none twice")
	}
}

func TestACallThatTheServiceHasForgottenEnds(t *testing.T) {
	w := held(t, false, reconnect.OverlapHold, true)
	require.ErrorContains(t, w.err, `4004 "no such call"`)
	require.EqualValues(t, 2, w.caller.line.Stats().Dials)
}
