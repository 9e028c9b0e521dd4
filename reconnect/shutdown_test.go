package reconnect_test

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
)

// Promise 11.
func TestShutdownTellsThePeer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(0))
		c := s.open(&o)
		peer := s.wantDial().accept()
		deliver(peer, 1, 1)
		require.NoError(t, c.Shutdown(t.Context()))
		code, _, ok := peer.ClosedWith()
		require.True(t, ok)
		require.Equal(t, 1000, code)
		require.Equal(t, net.ErrClosed, c.Err())
		wantMessage(t, c, 1, "1") // what came before can still be read
		require.ErrorIs(t, c.Write(t.Context(), text("x")), net.ErrClosed)
		s.wantNoDial()
	})
}

// Promise 11: many times, because two goroutines meet here.
func TestShutdownTellsTheServer(t *testing.T) {
	const times = 200
	ends := make(chan error, times) // one for each connection
	withWSServer(t, func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		_, _, err := c.Read(ctx)
		ends <- err
	}, func(t *testing.T, server *wsServer) {
		for range times {
			c := server.ready(t, nil)
			require.NoError(t, c.Shutdown(t.Context()))
			require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(<-ends))
			require.Equal(t, net.ErrClosed, c.Err())
			require.Zero(t, server.network.Open())
		}
		require.Zero(t, server.now())
	})
}

// The peer's answer to the goodbye is not why the session has ended.
func TestCauseOfShutdownIsNotTheAnswer(t *testing.T) {
	withWSServer(t, func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		_, _, _ = c.Read(ctx)
	}, func(t *testing.T, server *wsServer) {
		var done reconnect.SessionDone
		var o reconnect.Options
		o.Run.Trace = &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) { done = e }}
		c := server.ready(t, &o)
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
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().accept().Mute()
		require.ErrorIs(t, c.Shutdown(t.Context()), context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, s.now())
	})
}

// A negative CloseTimeout is about Redial. Shutdown says goodbye, within its context.
func TestShutdownWithoutACloseTimeoutIsPolite(t *testing.T) {
	for limit, took := range map[time.Duration]time.Duration{time.Hour: 5 * time.Second, time.Second: time.Second} {
		inBubble(t, func(t *testing.T, s *scene) {
			c := s.open(&reconnect.Options{CloseTimeout: -1})
			peer := s.wantDial().accept()
			peer.Mute()
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			require.ErrorIs(t, c.Shutdown(ctx), context.DeadlineExceeded)
			code, _, polite := peer.ClosedWith()
			require.True(t, polite)
			require.Equal(t, 1000, code)
			require.Equal(t, took, s.now())
		})
	}
}

// Promise 11: Shutdown cuts when its context ends, also if a hook holds the supervisor up
// before it watches the session.
func TestShutdownCutsWhenItsContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		hold := make(chan struct{})
		c := s.open(&reconnect.Options{Run: reconnect.RunOptions{
			Trace: &reconnect.Trace{SessionStart: func(*reconnect.Session) { <-hold }},
		}})
		peer := s.wantDial().accept()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
		defer cancel()
		require.ErrorIs(t, c.Shutdown(ctx), errLost)
		require.Equal(t, time.Second, s.now())
		require.True(t, peer.Closed())
		close(hold)
		<-c.Done()
		require.Equal(t, net.ErrClosed, c.Err())
	})
}

// Promise 11: an OnMessage that still works holds up Done, but Shutdown returns when its
// context ends.
func TestShutdownDoesNotOutliveItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var late notes
		c := s.open(&reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) { time.Sleep(time.Minute) },
			Run:       reconnect.RunOptions{Trace: &reconnect.Trace{Overdue: func(o reconnect.Overdue) { late.add(o.What) }}},
		})
		s.wantDial().accept().Deliver(text("x"))
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
		defer cancel()
		err := c.Shutdown(ctx)
		require.ErrorIs(t, err, errLost)
		require.Equal(t, time.Second, s.now())
		<-c.Done()
		require.Equal(t, time.Minute, s.now())
		require.Contains(t, late.all(), "OnMessage")
		require.NoError(t, c.Shutdown(ctx), "it has ended")
	})
}

// Promise 11: Close cuts a Shutdown short.
func TestCloseEndsAShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().accept().Mute()
		shut := make(chan error, 1)
		go func() { shut <- c.Shutdown(t.Context()) }()
		time.Sleep(time.Second)
		closeAndWait(c)
		require.NoError(t, <-shut)
		require.Equal(t, time.Second, s.now())
	})
}

// Promise 11: a connection that dies during Shutdown is not dialed again, and the Conn ends as
// if it had not died.
func TestShutdownOutlivesALoss(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(0))
		c := s.open(&o)
		peer := s.wantDial().accept()
		peer.Hold()
		go c.Write(t.Context(), text("x"))
		synctest.Wait()
		shut := make(chan error, 1)
		go func() { shut <- c.Shutdown(t.Context()) }()
		synctest.Wait()
		peer.Fail(errLost)
		synctest.Wait()
		s.wantNoDial()
		<-shut // the peer got no close frame, which may be an error
		require.Equal(t, net.ErrClosed, c.Err())
		require.Equal(t, net.ErrClosed, c.Status().Err)
		require.Zero(t, s.now())
	})
}

// Promises 11 and 14.
func TestShutdownInsideACallbackReturns(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var c *reconnect.Conn
		shut := make(chan error, 1)
		c = s.open(&reconnect.Options{OnMessage: func(ctx context.Context, _ reconnect.Message) { shut <- c.Shutdown(ctx) }})
		peer := s.wantDial().accept()
		peer.Deliver(text("bye"))
		<-c.Done()
		require.ErrorIs(t, <-shut, context.Canceled)
		_, _, polite := peer.ClosedWith()
		require.True(t, polite)
	})
}

// Promise 6: Shutdown first lets the write under way finish.
func TestShutdownLetsAWriteFinish(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		peer := s.wantDial().accept()
		peer.Hold()
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), text("x")) }()
		synctest.Wait()
		time.AfterFunc(time.Second, peer.Release)
		require.NoError(t, c.Shutdown(t.Context()))
		require.NoError(t, <-wrote)
		require.Len(t, peer.Written(), 1)
	})
}

func TestShutdownReportsAStuckWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().accept().Hold()
		go c.Write(t.Context(), text("x"))
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
		defer cancel()
		require.ErrorIs(t, c.Shutdown(ctx), errLost)
		require.Equal(t, time.Second, s.now())
	})
}

// The peer does not answer the goodbye: Shutdown returns an error, though it has sent every
// message.
func TestAStuckFarewellIsAnErrorOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Mute()
		queue(t, c, "a")
		err := c.Shutdown(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "reconnect: shutdown")
		require.Equal(t, 5*time.Second, s.now())
		require.Equal(t, []conn.Message{text("a")}, peer.Written())
	})
}

// Shutdown reports a CloseWrite that fails, and the connection ends all the same. A connection
// that does not support CloseWrite is closed politely.
func TestAFarewellThatFailsIsReported(t *testing.T) {
	for _, test := range []struct{ fails, want error }{{errLost, errLost}, {errors.ErrUnsupported, nil}} {
		inBubble(t, func(t *testing.T, s *scene) {
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
			require.Zero(t, s.now())
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
	withFramedServer(t, conn.Lines{}, func(t *testing.T, server *framedServer) {
		c := server.open(t, nil)
		peer := server.next(t)
		require.NoError(t, c.Write(t.Context(), text("last")))
		shut := make(chan error, 1)
		go func() { shut <- c.Shutdown(t.Context()) }()
		all, err := io.ReadAll(peer.in)
		require.NoError(t, err)
		require.Equal(t, "last\n", string(all))
		time.Sleep(3 * time.Second)
		require.Empty(t, shut)
		peer.Close()
		require.NoError(t, <-shut)
		require.Equal(t, 3*time.Second, server.now())
		require.Equal(t, net.ErrClosed, c.Err())
	})
}

// What a peer sends after our end of the stream can still be read.
func TestShutdownReceivesUntilTheFramedPeerIsDone(t *testing.T) {
	withFramedServer(t, conn.Lines{}, func(t *testing.T, server *framedServer) {
		c := server.open(t, nil)
		peer := server.next(t)
		shut := make(chan error, 1)
		go func() { shut <- c.Shutdown(t.Context()) }()
		_, err := io.ReadAll(peer.in)
		require.NoError(t, err)
		peer.say(t, "one\ntwo\n")
		time.Sleep(time.Second)
		peer.say(t, "three\n")
		peer.Close()
		require.NoError(t, <-shut)
		for _, want := range []string{"one", "two", "three"} {
			wantMessage(t, c, 1, want)
		}
	})
}

// Promises 11 and 14: while OnMessage runs the supervisor cannot read, so CloseTimeout ends the
// wait for the peer.
func TestShutdownInsideAFramedHandlerReturns(t *testing.T) {
	withFramedServer(t, conn.Lines{}, func(t *testing.T, server *framedServer) {
		var c *reconnect.Conn
		shut := make(chan error, 1)
		c = server.open(t, &reconnect.Options{OnMessage: func(ctx context.Context, _ reconnect.Message) { shut <- c.Shutdown(ctx) }})
		peer := server.next(t)
		peer.say(t, "bye\n")
		_, err := io.ReadAll(peer.in)
		require.NoError(t, err)
		peer.Close()
		require.ErrorIs(t, <-shut, context.DeadlineExceeded)
		<-c.Done()
		require.Equal(t, 5*time.Second, server.now())
	})
}

// Promise 11: Shutdown waits for a silent peer for CloseTimeout at most.
func TestShutdownOfASilentFramedPeerIsBounded(t *testing.T) {
	withFramedServer(t, conn.Lines{}, func(t *testing.T, server *framedServer) {
		c := server.open(t, nil)
		server.next(t)
		require.ErrorIs(t, c.Shutdown(t.Context()), context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, server.now())
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
			withReader(t, nil, func(t *testing.T, c *reconnect.Conn, s *wsServer, _ *atomic.Int32, ask func(string)) {
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
	withWSServer(t, echo, func(t *testing.T, s *wsServer) {
		got := 0
		c := s.ready(t, &reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {
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
	withWSServer(t, func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		c.Read(ctx) // the close frame, which coder/websocket answers by itself
	}, func(t *testing.T, s *wsServer) {
		c := s.ready(t, nil)
		s.pipe(t).Latency(conntest.ToServer, time.Second)
		shut := startShutdown(t.Context(), c)
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
	withWSServer(t, echo, func(t *testing.T, s *wsServer) {
		c := s.ready(t, &reconnect.Options{Inbox: reconnect.Inbox{Messages: 3}})
		for range 10 {
			require.NoError(t, s.Conns()[0].Write(t.Context(), websocket.MessageText, []byte("hello")))
		}
		synctest.Wait()
		before := s.now()
		require.NoError(t, c.Shutdown(t.Context()))
		require.LessOrEqual(t, s.now()-before, time.Second)
		require.Equal(t, 3, rest(t, c))
	})
}

// A slow reader of a full inbox gets all of it.
func TestShutdownWaitsForASlowReader(t *testing.T) {
	withWSServer(t, echo, func(t *testing.T, s *wsServer) {
		c := s.ready(t, &reconnect.Options{Inbox: reconnect.Inbox{Messages: 1}})
		for range 10 {
			require.NoError(t, s.Conns()[0].Write(t.Context(), websocket.MessageText, []byte("hello")))
		}
		synctest.Wait()
		shut := startShutdown(t.Context(), c)
		for range 10 {
			time.Sleep(400 * time.Millisecond)
			wantMessage(t, c, 1, "hello")
		}
		require.NoError(t, <-shut)
		require.Zero(t, rest(t, c))
	})
}
