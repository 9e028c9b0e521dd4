//go:build !js

package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
)

// minute is the call of the program, with the same draws each time. The life is no multiple of
// 20 ms, so that the service never ends a connection at the instant of a frame.
func minute() *plan {
	return &plan{
		length: time.Minute, life: 9990 * time.Millisecond, warn: 2 * time.Second,
		rotate: true, overlap: overlapHold, rand: rand.NewPCG(1, 2),
	}
}

// held holds a call in virtual time. Everything takes 27 ms from one end to the other.
func held(t *testing.T, p *plan) (r *report) {
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
		r, err = p.hold(t.Context(), &dialer.WebSocket{URL: "ws://voice.test", DialContext: network.DialContext}, s, io.Discard)
		require.NoError(t, err)
		require.LessOrEqual(t, network.Count("voice.test:80").MaxHeld, 2)
	})
	return r
}

// ends returns how many sessions were ended by each cause.
func (r *report) ends() map[string]int {
	ends := map[string]int{}
	for _, s := range r.journal.sessions {
		ends[s.end]++
	}
	return ends
}

func TestEveryFrameComesOnceWhileSessionsAreReplaced(t *testing.T) {
	for name, longest := range map[string]time.Duration{
		// The service closes the old connection when it hears the caller by the new one, at most 20
		// ms after that was ready, and 27 ms away. The caller learns of it another 27 ms later.
		"hold": 74 * time.Millisecond,
		"mix":  20 * time.Millisecond,
	} {
		p := minute()
		p.overlap = overlaps[name]
		r := held(t, p)
		require.NoError(t, r.verdict(), name)
		frame := 20 * time.Millisecond
		require.Equal(t, result{said: 3000, heard: 3000, saidPause: frame, heardPause: frame}, r.toService.result(), name)
		require.Equal(t, result{said: 3002, heard: 3002, saidPause: frame, heardPause: longest}, r.toCaller.result(), name)
		require.Equal(t, []uint64{6, 0}, []uint64{r.rotations, r.failed}, name)
		require.Equal(t, map[string]int{`read: closed by the peer: 1000 "the call has moved"`: 6, "us": 1}, r.ends(), name)
	}
}

func TestASessionCanBeClosedBeforeTheNextIsDialed(t *testing.T) {
	p := minute()
	p.overlap = overlaps["break"]
	r := held(t, p)
	require.NoError(t, r.err)
	require.Equal(t, []uint64{7, 0}, []uint64{r.rotations, r.failed})
	require.Equal(t, map[string]int{"the service ends it in 2s": 7, "us": 1}, r.ends())
	require.Zero(t, r.toService.result().missing, "what the caller says waits for the next session")
	require.Zero(t, r.toService.result().twice+r.toCaller.result().twice)
}

func TestWithoutRotationFramesAreLostAndLate(t *testing.T) {
	p := minute()
	p.rotate = false
	r := held(t, p)
	require.NoError(t, r.err)
	require.Equal(t, []uint64{0, 0}, []uint64{r.rotations, r.failed})
	require.Equal(t, map[string]int{`read: closed by the peer: 1001 "time is up"`: 5, "us": 1}, r.ends())
	for _, d := range r.directions() {
		require.Greater(t, d.result().missing, 40, d.name)
		require.Greater(t, d.result().heardPause, time.Second, d.name)
		require.Zero(t, d.result().twice, d.name)
		require.ErrorContains(t, r.verdict(), d.name+": ")
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
			clear(forgetful.calls)
		})
		defer server.Close()
		r, err := p.hold(t.Context(), &dialer.WebSocket{URL: "ws://voice.test", DialContext: network.DialContext}, forgetful, io.Discard)
		require.NoError(t, err)
		require.ErrorContains(t, r.verdict(), `4004 "no such call"`)
		require.Len(t, r.journal.sessions, 1)
	})
}
