package receive_test

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// behind lets 300 messages come, of which the reader reads 100 by itself. Then a next session is ready, and old is the one before.
func behind(t *testing.T, c *reconnect.Conn, s *scene.WSServer, whole *atomic.Int32, ends func(old *websocket.Conn)) {
	t.Helper()
	before, old := whole.Load(), s.Conns()[0]
	for range 300 {
		require.NoError(t, old.Write(t.Context(), websocket.MessageText, []byte("hello")))
	}
	ends(old)
	synctest.Wait()
	for range 100 {
		scene.WantMessage(t, c, 1, "hello")
	}
	require.EqualValues(t, 100, whole.Load()-before)
	c.Rotate(1, reconnect.Advice{})
	synctest.Wait()
	require.EqualValues(t, 2, c.Status().Session)
}

// The time of the old session is over while its reader, which reads a burst by itself, has much of that before it.
func TestASessionWhoseReaderIsBehindABurstHasNotOverlapped(t *testing.T) {
	for _, overlap := range []reconnect.Overlap{reconnect.OverlapHold, reconnect.OverlapMix} {
		t.Run(fmt.Sprint(overlap), func(t *testing.T) {
			o := &reconnect.Options{Rotate: reconnect.Rotation{Overlap: overlap, Drain: 5 * time.Millisecond}}
			scene.WithReader(t, o, func(
				t *testing.T, c *reconnect.Conn, s *scene.WSServer, whole *atomic.Int32, _ func(string),
			) {
				behind(t, c, s, whole, func(*websocket.Conn) {})
				time.Sleep(time.Minute) // without a reader the inbox is full
				for got := 100; ; got++ {
					m, err := c.Read(t.Context(), nil)
					if seam, ok := err.(*reconnect.Seam); ok {
						require.Less(t, got, 300)
						require.True(t, seam.Planned)
						require.False(t, seam.Overlapped, "some messages are missing")
						return
					}
					require.NoError(t, err)
					require.Equal(t, "hello", string(m.Data))
				}
			})
		})
	}
}

// The peer has closed the old session before the next one is ready, and its reader sees that later, behind a burst.
func TestASessionThatHasEndedBehindABurstHasNotOverlapped(t *testing.T) {
	scene.WithReader(t, nil, func(
		t *testing.T, c *reconnect.Conn, s *scene.WSServer, whole *atomic.Int32, _ func(string),
	) {
		closed := make(chan struct{})
		behind(t, c, s, whole, func(old *websocket.Conn) {
			go func() { old.Close(websocket.StatusNormalClosure, ""); close(closed) }()
		})
		for range 200 {
			scene.WantMessage(t, c, 1, "hello")
		}
		<-closed
		synctest.Wait()
		seam := scene.WantSeam(t, c)
		require.Equal(t, backoff.ReasonCloseNormal, seam.Reason)
		require.False(t, seam.Overlapped, "something may be missing after the close frame")
	})
}

// The reader was behind a burst once, and the supervisor has read the rest.
func TestASessionThatIsReadInTimeAgainHasOverlapped(t *testing.T) {
	o := &reconnect.Options{Rotate: reconnect.Rotation{Overlap: reconnect.OverlapMix}}
	scene.WithReader(t, o, func(t *testing.T, c *reconnect.Conn, s *scene.WSServer, _ *atomic.Int32, _ func(string)) {
		burst(t, c, s, slowly)
		c.Rotate(1, reconnect.Advice{})
		time.Sleep(time.Minute)
		require.True(t, scene.WantSeam(t, c).Overlapped)
	})
}

// The reader is in its handler, so no goroutine reads.
// Messages come, the next session is ready, and the old one is closed.
func TestSessionThatNobodyReadIsReadToItsEnd(t *testing.T) {
	for _, overlap := range []reconnect.Overlap{reconnect.OverlapHold, reconnect.OverlapMix} {
		t.Run(fmt.Sprint(overlap), func(t *testing.T) {
			o := &reconnect.Options{Rotate: reconnect.Rotation{Overlap: overlap, Drain: 5 * time.Millisecond}}
			scene.WithReader(t, o, func(
				t *testing.T, c *reconnect.Conn, s *scene.WSServer, _ *atomic.Int32, ask func(string),
			) {
				ask("x")
				old := s.Conns()[0]
				for range 10 {
					require.NoError(t, old.Write(t.Context(), websocket.MessageText, []byte("hello")))
				}
				synctest.Wait()
				c.Rotate(1, reconnect.Advice{})
				synctest.Wait()
				require.EqualValues(t, 2, c.Status().Session)
				time.Sleep(time.Minute)
				for range 10 {
					scene.WantMessage(t, c, 1, "hello")
				}
				require.True(t, scene.WantSeam(t, c).Overlapped)
			})
		})
	}
}

// The same, but the peer has closed the old session before the next is ready, with the code of our close frame.
func TestSessionThatThePeerEndedUnreadHasNotOverlapped(t *testing.T) {
	for _, overlap := range []reconnect.Overlap{reconnect.OverlapHold, reconnect.OverlapMix} {
		t.Run(fmt.Sprint(overlap), func(t *testing.T) {
			o := &reconnect.Options{Rotate: reconnect.Rotation{Overlap: overlap, Drain: 5 * time.Millisecond}}
			scene.WithReader(t, o, func(
				t *testing.T, c *reconnect.Conn, s *scene.WSServer, _ *atomic.Int32, ask func(string),
			) {
				ask("x")
				closed := make(chan struct{})
				go func() { s.Conns()[0].Close(websocket.StatusNormalClosure, ""); close(closed) }()
				synctest.Wait()
				c.Rotate(1, reconnect.Advice{})
				time.Sleep(time.Minute)
				<-closed
				seam := scene.WantSeam(t, c)
				require.Equal(t, backoff.ReasonRotated, seam.Reason)
				require.False(t, seam.Overlapped, "what the peer sent meanwhile is missing")
			})
		})
	}
}

// The server closes the first session when the second one logs in. What it publishes before the subscription of the
// second goes nowhere.
func TestSessionThatThePeerEndedBeforeTheNextHasNotOverlapped(t *testing.T) {
	for name, layers := range map[string][]*reconnect.Layer{
		"the reader reads":     nil,
		"the supervisor reads": {{Receive: func(reconnect.Message) bool { return false }}},
	} {
		t.Run(name, func(t *testing.T) {
			var kick func()
			o := &reconnect.Options{Layers: layers, OnSession: func(_ context.Context, op *reconnect.Opening) error {
				if op.Session == 2 {
					kick()
					time.Sleep(5 * time.Millisecond) // the round trip of the subscription
				}
				return nil
			}}
			test := func(t *testing.T, c *reconnect.Conn, s *scene.WSServer, ask func(string)) {
				ask("x")
				old := s.Conns()[0]
				kick = func() { go old.Close(websocket.StatusPolicyViolation, "another session") }
				c.Rotate(1, reconnect.Advice{})
				time.Sleep(time.Minute)
				require.False(t, scene.WantSeam(t, c).Overlapped)
			}
			if layers == nil {
				scene.WithReader(t, o, func(
					t *testing.T, c *reconnect.Conn, s *scene.WSServer, _ *atomic.Int32, ask func(string),
				) {
					test(t, c, s, ask)
				})
				return
			}
			scene.WithWSServer(t, scene.Echo, func(t *testing.T, s *scene.WSServer) {
				c := s.Ready(t, o)
				test(t, c, s, func(data string) {
					require.NoError(t, c.Write(t.Context(), scene.Text(data)))
					_, err := c.Read(t.Context(), nil)
					require.NoError(t, err)
				})
			})
		})
	}
}

// The old session breaks in the second in which it is closed: what was on its way is lost.
func TestSessionThatBreaksWhileItIsClosedHasNotOverlapped(t *testing.T) {
	scene.WithWSServer(t, scene.Echo, func(t *testing.T, s *scene.WSServer) {
		c := s.Ready(t, &reconnect.Options{Rotate: reconnect.Rotation{Drain: time.Second}})
		old := s.Pipe(t)
		c.Rotate(1, reconnect.Advice{})
		synctest.Wait()
		old.Stall(conntest.Both)
		time.Sleep(1500 * time.Millisecond) // the close frame is on its way
		old.Reset()
		synctest.Wait()
		seam := scene.WantSeam(t, c)
		require.Equal(t, backoff.ReasonRotated, seam.Reason)
		require.False(t, seam.Overlapped)
	})
}

// The supervisor notices that the peer has ended the old session, and waits for a hook of it. Meanwhile
// the next session becomes ready.
func TestSessionWhoseEndWaitsForAHookHasNotOverlapped(t *testing.T) {
	for _, overlap := range []reconnect.Overlap{reconnect.OverlapHold, reconnect.OverlapMix} {
		t.Run(fmt.Sprint(overlap), func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				s.Fake = scene.Alive
				o := scene.Rotating(overlap)
				o.Run.Trace = &reconnect.Trace{ProbeStart: func(reconnect.ProbeStart) { time.Sleep(10 * time.Second) }}
				c := s.Open(&o)
				old := s.WantDial().Accept()
				synctest.Wait()
				c.Rotate(1, reconnect.Advice{})
				d := s.WantDial()
				c.Check()
				synctest.Wait()
				old.Fail(io.EOF)
				time.Sleep(time.Second)
				d.Accept()
				time.Sleep(10 * time.Second)
				require.False(t, scene.WantSeam(t, c).Overlapped, "what the peer sent in a second is missing")
			})
		})
	}
}

// hungUp is a connection that the peer has ended. Its reader notices that when the Fake's peer ends it.
type hungUp struct {
	conn.Conn
	conn.Transport
	already bool
}

func (c hungUp) HungUp() bool { return c.already }

// The peer ends the old session before the next one is ready, and the reader notices it only after that.
func TestSessionWhosePeerHungUpBeforeNextWasReadyHasNotOverlapped(t *testing.T) {
	for name, already := range map[string]bool{"before": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var old *conntest.Fake
				c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
					f := conntest.NewFake(&conntest.FakeOptions{Transport: true})
					dialed := hungUp{f.Conn(), f.Conn().(conn.Transport), already && old == nil}
					if old == nil {
						old = f
					}
					return dialed, nil
				}), nil)
				require.NoError(t, err)
				defer scene.CloseAndWait(c)
				require.NoError(t, c.AwaitReady(t.Context()))
				c.Rotate(1, reconnect.Advice{})
				synctest.Wait()
				require.EqualValues(t, 2, c.Status().Session)
				old.HangUp()
				seam := scene.WantSeam(t, c)
				require.True(t, seam.Planned)
				require.Equal(t, !already, seam.Overlapped)
			})
		})
	}
}
