package rotate_test

// This file tests rotations with a server that moves the stream to the newest connection, and closes the old
// one only at a certain age.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// movingServer sends the numbers from 1 on, each to its newest connection. It closes a connection that is 12
// s old.
type movingServer struct {
	mu     sync.Mutex // guards what follows
	newest chan int
	number int
}

func (s *movingServer) serve(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	numbers := make(chan int, 1000) // so that tick does not wait
	s.mu.Lock()
	s.newest = numbers
	s.mu.Unlock()
	ctx = c.CloseRead(ctx)
	age := time.NewTimer(12 * time.Second)
	defer age.Stop()
	for {
		select {
		case n := <-numbers:
			if c.Write(ctx, websocket.MessageText, fmt.Append(nil, n)) != nil {
				return
			}
		case <-age.C:
			_ = c.Close(4008, "too old")
			return
		case <-ctx.Done():
			return
		}
	}
}

// tick sends the next number, if there is a connection.
func (s *movingServer) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest != nil {
		s.number++
		s.newest <- s.number
	}
}

// silence runs a Conn for a minute, and replaces each session after 10 s. It returns the longest time without
// a number, how many numbers are missing, and how many sessions there were. A number comes each 20 ms, and a dial
// takes 130 ms.
func silence(t *testing.T, way reconnect.Overlap) (longest time.Duration, missing, sessions int) {
	n, s := new(conntest.Network), new(movingServer)
	server := conntest.NewServer(n, "moving.test:80", s.serve)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Millisecond)
	defer cancel()
	var ticking sync.WaitGroup
	ticking.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			select {
			case <-tick.C:
				s.tick()
			case <-ctx.Done():
			}
		}
	})
	o := scene.WithPolicy(scene.Doubling{})
	o.Run.Rand = rand.New(rand.NewPCG(1, 2))
	o.Rotate = reconnect.Rotation{After: 10 * time.Second, Overlap: way, Drain: time.Second}
	c, err := reconnect.New(&dialer.WebSocket{URL: "ws://moving.test:80", DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		time.Sleep(130 * time.Millisecond)
		return n.DialContext(ctx, network, addr)
	}}, &o)
	require.NoError(t, err)
	defer scene.CloseAndWait(c)
	got := map[string]bool{}
	var last time.Time
	for {
		m, err := c.Read(ctx, nil)
		if _, seam := err.(*reconnect.Seam); seam {
			continue
		} else if err != nil {
			break
		}
		if !last.IsZero() {
			longest = max(longest, time.Since(last))
		}
		last, sessions = time.Now(), int(m.Session)
		got[string(m.Data)] = true
	}
	ticking.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return longest, s.number - len(got), sessions
}

// With OverlapMix the reader is never without a number for 0.1 s. With OverlapHold it waits for Drain, and
// with OverlapBreakFirst for the dial.
func TestAStreamThatMovesIsNotSilentWithMix(t *testing.T) {
	for way, bounds := range map[reconnect.Overlap][2]time.Duration{
		reconnect.OverlapMix:        {20 * time.Millisecond, 100 * time.Millisecond},
		reconnect.OverlapHold:       {time.Second, 1100 * time.Millisecond},
		reconnect.OverlapBreakFirst: {130 * time.Millisecond, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			longest, missing, sessions := silence(t, way)
			t.Logf("%d: %d sessions, silent for %v, %d missing", way, sessions, longest, missing)
			require.GreaterOrEqual(t, longest, bounds[0])
			require.LessOrEqual(t, longest, bounds[1])
			require.GreaterOrEqual(t, sessions, 6)
			if way != reconnect.OverlapBreakFirst {
				require.Zero(t, missing)
			}
		})
	}
}
