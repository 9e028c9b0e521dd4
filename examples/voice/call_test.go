//go:build !js

package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// minute is the call of the program, with the same draws each time. The life is no multiple of
// 20 ms, so that the service never ends a connection at the instant of a frame.
func minute() *plan {
	return &plan{
		length: time.Minute, life: 9990 * time.Millisecond, warn: 2 * time.Second,
		rotate: true, overlap: reconnect.OverlapHold, rand: rand.NewPCG(1, 2),
	}
}

// held holds a call in virtual time, and returns how many sessions were ended by each cause. Everything takes 27 ms from one end to the other.
func held(t *testing.T, p *plan) (r *result, ends map[string]int) {
	ends = map[string]int{}
	p.trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { ends[e.Cause.Error()]++ }}
	synctest.Test(t, func(t *testing.T) {
		s := newService(p.life, p.warn)
		defer s.close()
		network := new(conntest.Network)
		server := conntest.NewServer(network, "voice.test:80", func(ctx context.Context, ws *websocket.Conn, _ *http.Request) {
			conntest.PipeOf(ctx).Latency(conntest.Both, 27*time.Millisecond)
			s.serve(ws)
		})
		defer server.Close()
		var err error
		r, err = p.hold(t.Context(), &dialer.WebSocket{URL: "ws://voice.test", DialContext: network.DialContext}, s)
		require.NoError(t, err)
		require.LessOrEqual(t, network.Count("voice.test:80").MaxHeld, 2)
	})
	return r, ends
}

func TestEveryFrameComesOnceWhileSessionsAreReplaced(t *testing.T) {
	for overlap, longest := range map[reconnect.Overlap]time.Duration{
		// The service closes the old connection when it hears the caller by the new one, at most 20
		// ms after that was ready, and 27 ms away. The caller learns of it another 27 ms later.
		reconnect.OverlapHold: 74 * time.Millisecond,
		reconnect.OverlapMix:  20 * time.Millisecond,
	} {
		p := minute()
		p.overlap = overlap
		r, ends := held(t, p)
		require.NoError(t, r.err, overlap)
		require.Equal(t, direction{said: 3000, heard: 3000, pause: every}, r.toService, overlap)
		require.Equal(t, direction{said: 3002, heard: 3002, pause: longest}, r.toCaller, overlap)
		require.Equal(t, []uint64{6, 0}, []uint64{r.stats.Rotations, r.stats.RotationsFailed}, overlap)
		require.Equal(t, map[string]int{`read: closed by the peer: 1000 "the call has moved"`: 6, "read: use of closed network connection": 1}, ends, overlap)
	}
}

func TestASessionCanBeClosedBeforeTheNextIsDialed(t *testing.T) {
	p := minute()
	p.overlap = reconnect.OverlapBreakFirst
	r, ends := held(t, p)
	require.ErrorContains(t, r.err, "service to caller: ", "frames are on their way when the session is closed")
	require.Equal(t, []uint64{7, 0}, []uint64{r.stats.Rotations, r.stats.RotationsFailed})
	require.Equal(t, map[string]int{"the service ends it in 2s": 7, "read: use of closed network connection": 1}, ends)
	require.Zero(t, r.toService.missing, "a frame of the caller waits for the next session")
	require.Zero(t, r.toService.twice+r.toCaller.twice)
}

func TestWithoutRotationFramesAreLostAndLate(t *testing.T) {
	p := minute()
	p.rotate = false
	r, ends := held(t, p)
	require.ErrorContains(t, r.err, "caller to service: ")
	require.ErrorContains(t, r.err, "service to caller: ")
	require.Equal(t, []uint64{0, 0}, []uint64{r.stats.Rotations, r.stats.RotationsFailed})
	require.Equal(t, map[string]int{`read: closed by the peer: 1001 "time is up"`: 5, "read: use of closed network connection": 1}, ends)
	for _, d := range []direction{r.toService, r.toCaller} {
		require.Greater(t, d.missing, 40)
		require.Zero(t, d.twice)
	}
}

func TestACallThatTheServiceHasForgottenEnds(t *testing.T) {
	p := minute()
	p.rotate = false
	var forgetful *service
	synctest.Test(t, func(t *testing.T) {
		forgetful = newService(p.life, p.warn)
		defer forgetful.close()
		network := new(conntest.Network)
		server := conntest.NewServer(network, "voice.test:80", func(_ context.Context, ws *websocket.Conn, _ *http.Request) {
			forgetful.serve(ws)
			forgetful.mu.Lock()
			defer forgetful.mu.Unlock()
			forgetful.handle = "another"
		})
		defer server.Close()
		r, err := p.hold(t.Context(), &dialer.WebSocket{URL: "ws://voice.test", DialContext: network.DialContext}, forgetful)
		require.NoError(t, err)
		require.ErrorContains(t, r.err, `4004 "no such call"`)
		require.EqualValues(t, 2, r.stats.Dials)
	})
}

func TestATallyFindsWhatIsMissingWhatCameTwiceAndThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said, heard := &tally{}, &tally{}
		for n := range uint64(6) {
			said.frame(n + 1)
		}
		for _, n := range []uint64{2, 1, 2, 5} { // 3, 4 and 6 are missing
			heard.frame(n)
			time.Sleep(time.Duration(n) * every)
		}
		d := compare(said, heard)
		require.Equal(t, direction{said: 6, heard: 4, missing: 3, twice: 1, pause: 2 * every}, d)
		require.EqualError(t, d.fault("here"), "here: 3 frames are missing, and 1 came twice")
		require.NoError(t, direction{said: 6, heard: 6, pause: time.Hour}.fault("here"))
	})
}
