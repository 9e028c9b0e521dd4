package run_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
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

// Promise 11.
func TestShutdownTellsThePeer(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(0))
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		scene.Deliver(peer, 1, 1)
		require.NoError(t, c.Shutdown(t.Context()))
		code, _, ok := peer.ClosedWith()
		require.True(t, ok)
		require.Equal(t, 1000, code)
		require.Equal(t, net.ErrClosed, c.Err())
		scene.WantMessage(t, c, 1, "1") // what came before can still be read
		require.ErrorIs(t, c.Write(t.Context(), scene.Text("x")), net.ErrClosed)
		s.WantNoDial()
	})
}

// Promise 11: many times, because two goroutines meet here.
func TestShutdownTellsTheServer(t *testing.T) {
	const times = 200
	ends := make(chan error, times) // one for each connection
	scene.WithWSServer(t, func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		_, _, err := c.Read(ctx)
		ends <- err
	}, func(t *testing.T, server *scene.WSServer) {
		for range times {
			c := server.Ready(t, nil)
			require.NoError(t, c.Shutdown(t.Context()))
			require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(<-ends))
			require.Equal(t, net.ErrClosed, c.Err())
			require.Zero(t, server.Network.Count("").Open)
		}
		require.Zero(t, server.Now())
	})
}

// The peer's answer to the goodbye is not why the session has ended.
func TestCauseOfShutdownIsNotTheAnswer(t *testing.T) {
	scene.WithWSServer(t, func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		_, _, _ = c.Read(ctx)
	}, func(t *testing.T, server *scene.WSServer) {
		var done reconnect.SessionDone
		var o reconnect.Options
		o.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { done = e }}
		c := server.Ready(t, &o)
		require.NoError(t, c.Shutdown(t.Context()))
		require.ErrorIs(t, done.Cause, net.ErrClosed)
		require.Equal(t, backoff.ReasonShutdown, done.Reason)
		_, err := c.Read(t.Context(), nil)
		seam, ok := errors.AsType[*reconnect.Seam](err)
		require.True(t, ok)
		require.ErrorIs(t, seam.Cause, net.ErrClosed)
	})
}

// Promise 10.
func TestShutdownHasALimit(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		s.WantDial().Accept().Mute()
		require.ErrorIs(t, c.Shutdown(t.Context()), context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, s.Now())
	})
}

// A negative CloseTimeout is about Redial. Shutdown says goodbye, within its context.
func TestShutdownWithoutACloseTimeoutIsPolite(t *testing.T) {
	for limit, took := range map[time.Duration]time.Duration{time.Hour: 5 * time.Second, time.Second: time.Second} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			c := s.Open(&reconnect.Options{CloseTimeout: -1})
			peer := s.WantDial().Accept()
			peer.Mute()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			require.ErrorIs(t, c.Shutdown(ctx), context.DeadlineExceeded)
			code, _, polite := peer.ClosedWith()
			require.True(t, polite)
			require.Equal(t, 1000, code)
			require.Equal(t, took, s.Now())
		})
	}
}

// Promise 11: Shutdown cuts when its context ends, also if a hook holds the supervisor up
// before it watches the session.
func TestShutdownCutsWhenItsContextEnds(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		hold := make(chan struct{})
		c := s.Open(&reconnect.Options{Run: reconnect.RunOptions{
			Trace: &reconnect.Trace{SessionStart: func(*reconnect.Session) { <-hold }},
		}})
		peer := s.WantDial().Accept()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, scene.ErrLost)
		defer cancel()
		require.ErrorIs(t, c.Shutdown(ctx), scene.ErrLost)
		require.Equal(t, time.Second, s.Now())
		require.True(t, peer.Closed())
		close(hold)
		<-c.Done()
		require.Equal(t, net.ErrClosed, c.Err())
	})
}

// Promise 11: an OnMessage that still works holds up Done, but Shutdown returns when its
// context ends.
func TestShutdownDoesNotOutliveItsContext(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var late scene.Notes
		c := s.Open(&reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) { time.Sleep(time.Minute) },
			Run: reconnect.RunOptions{
				Trace: &reconnect.Trace{Overdue: func(o reconnect.Overdue) { late.Add(o.What) }},
			},
		})
		s.WantDial().Accept().Deliver(scene.Text("x"))
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, scene.ErrLost)
		defer cancel()
		err := c.Shutdown(ctx)
		require.ErrorIs(t, err, scene.ErrLost)
		require.Equal(t, time.Second, s.Now())
		<-c.Done()
		require.Equal(t, time.Minute, s.Now())
		require.Contains(t, late.All(), "OnMessage")
		require.NoError(t, c.Shutdown(ctx), "it has ended")
	})
}

// Promise 11: Close cuts a Shutdown short.
func TestCloseEndsAShutdown(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		s.WantDial().Accept().Mute()
		shut := make(chan error, 1)
		go func() { shut <- c.Shutdown(t.Context()) }()
		time.Sleep(time.Second)
		scene.CloseAndWait(c)
		require.NoError(t, <-shut)
		require.Equal(t, time.Second, s.Now())
	})
}

// Promise 11: a connection that dies during Shutdown is not dialed again, and the Conn ends as
// if it had not died.
func TestShutdownOutlivesALoss(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(0))
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		peer.Hold()
		go c.Write(t.Context(), scene.Text("x"))
		synctest.Wait()
		shut := make(chan error, 1)
		go func() { shut <- c.Shutdown(t.Context()) }()
		synctest.Wait()
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		s.WantNoDial()
		<-shut // the peer got no close frame, which may be an error
		require.Equal(t, net.ErrClosed, c.Err())
		require.Equal(t, net.ErrClosed, c.Status().Err)
		require.Zero(t, s.Now())
	})
}

// Promises 11 and 14.
func TestShutdownInsideACallbackReturns(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var c *reconnect.Conn
		shut := make(chan error, 1)
		c = s.Open(&reconnect.Options{
			OnMessage: func(ctx context.Context, _ reconnect.Message) { shut <- c.Shutdown(ctx) },
		})
		peer := s.WantDial().Accept()
		peer.Deliver(scene.Text("bye"))
		<-c.Done()
		require.ErrorIs(t, <-shut, context.Canceled)
		_, _, polite := peer.ClosedWith()
		require.True(t, polite)
	})
}

// Promise 6: Shutdown first lets the write under way finish.
func TestShutdownLetsAWriteFinish(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		peer := s.WantDial().Accept()
		peer.Hold()
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), scene.Text("x")) }()
		synctest.Wait()
		time.AfterFunc(time.Second, peer.Release)
		require.NoError(t, c.Shutdown(t.Context()))
		require.NoError(t, <-wrote)
		require.Len(t, peer.Written(), 1)
	})
}

func TestShutdownReportsAStuckWrite(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		s.WantDial().Accept().Hold()
		go c.Write(t.Context(), scene.Text("x"))
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, scene.ErrLost)
		defer cancel()
		require.ErrorIs(t, c.Shutdown(ctx), scene.ErrLost)
		require.Equal(t, time.Second, s.Now())
	})
}

// The peer does not answer the goodbye: Shutdown returns an error, though it has sent every
// message.
func TestAStuckFarewellIsAnErrorOfItsOwn(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		peer := s.WantDial().Accept()
		peer.Mute()
		scene.Queue(t, c, "a")
		err := c.Shutdown(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "reconnect: shutdown")
		require.Equal(t, 5*time.Second, s.Now())
		require.Equal(t, []conn.Message{scene.Text("a")}, peer.Written())
	})
}

// Shutdown reports a CloseWrite that fails, and the connection ends all the same. A connection
// that does not support CloseWrite is closed politely.
func TestAFarewellThatFailsIsReported(t *testing.T) {
	for _, test := range []struct{ fails, want error }{{scene.ErrLost, scene.ErrLost}, {errors.ErrUnsupported, nil}} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			h := &halfClosingConn{conntest.NewFake(nil), test.fails}
			c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return h, nil }), nil)
			require.NoError(t, err)
			require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
			err = c.Shutdown(t.Context())
			if test.want == nil {
				require.NoError(t, err)
				_, _, polite := h.ClosedWith()
				require.True(t, polite)
			} else {
				require.ErrorIs(t, err, test.want)
			}
			<-c.Done()
			require.True(t, h.Closed())
			require.Zero(t, s.Now())
		})
	}
}

// halfClosingConn is a connection whose CloseWrite fails.
type halfClosingConn struct {
	*conntest.Fake
	err error
}

func (h *halfClosingConn) CloseWrite() error { return h.err }

// Promise 11: the server gets all that was written and then the end of the stream, and Shutdown
// waits until it closes.
func TestShutdownHalfCloses(t *testing.T) {
	scene.WithFramedServer(t, conn.Lines{}, func(t *testing.T, server *scene.FramedServer) {
		c := server.Open(t, nil)
		peer := server.Next(t)
		require.NoError(t, c.Write(t.Context(), scene.Text("last")))
		shut := make(chan error, 1)
		go func() { shut <- c.Shutdown(t.Context()) }()
		all, err := io.ReadAll(peer.In)
		require.NoError(t, err)
		require.Equal(t, "last\n", string(all))
		time.Sleep(3 * time.Second)
		require.Empty(t, shut)
		peer.Close()
		require.NoError(t, <-shut)
		require.Equal(t, 3*time.Second, server.Now())
		require.Equal(t, net.ErrClosed, c.Err())
	})
}

// What a peer sends after our end of the stream can still be read.
func TestShutdownReceivesUntilTheFramedPeerIsDone(t *testing.T) {
	scene.WithFramedServer(t, conn.Lines{}, func(t *testing.T, server *scene.FramedServer) {
		c := server.Open(t, nil)
		peer := server.Next(t)
		shut := make(chan error, 1)
		go func() { shut <- c.Shutdown(t.Context()) }()
		_, err := io.ReadAll(peer.In)
		require.NoError(t, err)
		peer.Say(t, "one\ntwo\n")
		time.Sleep(time.Second)
		peer.Say(t, "three\n")
		peer.Close()
		require.NoError(t, <-shut)
		for _, want := range []string{"one", "two", "three"} {
			scene.WantMessage(t, c, 1, want)
		}
	})
}

// Promises 11 and 14: while OnMessage runs the supervisor cannot read, so CloseTimeout ends the
// wait for the peer.
func TestShutdownInsideAFramedHandlerReturns(t *testing.T) {
	scene.WithFramedServer(t, conn.Lines{}, func(t *testing.T, server *scene.FramedServer) {
		var c *reconnect.Conn
		shut := make(chan error, 1)
		c = server.Open(t, &reconnect.Options{
			OnMessage: func(ctx context.Context, _ reconnect.Message) { shut <- c.Shutdown(ctx) },
		})
		peer := server.Next(t)
		peer.Say(t, "bye\n")
		_, err := io.ReadAll(peer.In)
		require.NoError(t, err)
		peer.Close()
		require.ErrorIs(t, <-shut, context.DeadlineExceeded)
		<-c.Done()
		require.Equal(t, 5*time.Second, server.Now())
	})
}

// Promise 11: Shutdown waits for a silent peer for CloseTimeout at most.
func TestShutdownOfASilentFramedPeerIsBounded(t *testing.T) {
	scene.WithFramedServer(t, conn.Lines{}, func(t *testing.T, server *scene.FramedServer) {
		c := server.Open(t, nil)
		server.Next(t)
		require.ErrorIs(t, c.Shutdown(t.Context()), context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, server.Now())
	})
}

// rest reads until c has ended, and returns how many messages there were.
func rest(t *testing.T, c *reconnect.Conn) (messages int) {
	t.Helper()
	for {
		_, err := c.Read(context.Background(), nil)
		if _, seam := err.(*reconnect.Seam); err != nil && !seam {
			return messages
		} else if err == nil {
			messages++
		}
	}
}

// What came before Shutdown can be read, whoever reads the connection in that moment: the reader of the Conn between
// two calls of Read, when no goroutine reads, or the supervisor again.
func TestShutdownLosesNothingThatHasCome(t *testing.T) {
	for _, wait := range []time.Duration{0, 5 * time.Millisecond, 15 * time.Millisecond, 25 * time.Millisecond} {
		t.Run(wait.String(), func(t *testing.T) {
			scene.WithReader(t, nil, func(
				t *testing.T, c *reconnect.Conn, s *scene.WSServer, _ *atomic.Int32, ask func(string),
			) {
				ask("x")
				for range 10 {
					require.NoError(t, s.Conns()[0].Write(t.Context(), websocket.MessageText, []byte("hello")))
				}
				synctest.Wait()
				time.Sleep(wait)
				require.NoError(t, c.Shutdown(t.Context()))
				require.Equal(t, 10, rest(t, c))
			})
		})
	}
}

func TestShutdownLosesNothingBehindASlowHandler(t *testing.T) {
	scene.WithWSServer(t, scene.Echo, func(t *testing.T, s *scene.WSServer) {
		got := 0
		c := s.Ready(t, &reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {
			got++
			time.Sleep(time.Millisecond)
		}})
		for range 10 {
			require.NoError(t, s.Conns()[0].Write(t.Context(), websocket.MessageText, []byte("hello")))
		}
		synctest.Wait()
		time.Sleep(2500 * time.Microsecond)
		require.NoError(t, c.Shutdown(t.Context()))
		require.Equal(t, 10, got)
	})
}

// A server that has more to say answers the close frame when it has said it.
func TestShutdownReceivesUntilTheServerAnswers(t *testing.T) {
	scene.WithWSServer(t, func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		c.Read(ctx) // the close frame, which coder/websocket answers by itself
	}, func(t *testing.T, s *scene.WSServer) {
		c := s.Ready(t, nil)
		s.Pipe(t).Latency(conntest.ToServer, time.Second)
		shut := scene.StartShutdown(t.Context(), c)
		time.Sleep(time.Second / 2)
		for range 3 {
			require.NoError(t, s.Conns()[0].Write(t.Context(), websocket.MessageText, []byte("hello")))
		}
		require.NoError(t, <-shut)
		require.Equal(t, 3, rest(t, c))
	})
}

// Nobody reads any more, and the inbox is full: Shutdown gives what is left up after a second.
func TestShutdownDoesNotWaitForAReaderThatIsGone(t *testing.T) {
	scene.WithWSServer(t, scene.Echo, func(t *testing.T, s *scene.WSServer) {
		c := s.Ready(t, &reconnect.Options{Inbox: reconnect.Inbox{Messages: 3}})
		for range 10 {
			require.NoError(t, s.Conns()[0].Write(t.Context(), websocket.MessageText, []byte("hello")))
		}
		synctest.Wait()
		before := s.Now()
		require.NoError(t, c.Shutdown(t.Context()))
		require.LessOrEqual(t, s.Now()-before, time.Second)
		require.Equal(t, 3, rest(t, c))
	})
}

// A slow reader of a full inbox gets all of it.
func TestShutdownWaitsForASlowReader(t *testing.T) {
	scene.WithWSServer(t, scene.Echo, func(t *testing.T, s *scene.WSServer) {
		c := s.Ready(t, &reconnect.Options{Inbox: reconnect.Inbox{Messages: 1}})
		for range 10 {
			require.NoError(t, s.Conns()[0].Write(t.Context(), websocket.MessageText, []byte("hello")))
		}
		synctest.Wait()
		shut := scene.StartShutdown(t.Context(), c)
		for range 10 {
			time.Sleep(400 * time.Millisecond)
			scene.WantMessage(t, c, 1, "hello")
		}
		require.NoError(t, <-shut)
		require.Zero(t, rest(t, c))
	})
}
