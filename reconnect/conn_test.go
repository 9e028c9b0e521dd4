package reconnect_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

func TestANilDialFuncIsNoDialer(t *testing.T) {
	_, err := reconnect.New(reconnect.DialFunc(nil), nil)
	require.ErrorContains(t, err, "Dialer")
	_, err = reconnect.New((*dialer.WebSocket)(nil), nil)
	require.ErrorContains(t, err, "Dialer")
}

func TestADialerThatReturnsNothingEndsTheConn(t *testing.T) {
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return nil, nil }), nil)
	require.NoError(t, err)
	<-c.Done()
	require.ErrorContains(t, c.Err(), "neither a connection nor an error")
}

// Promise 11: in no state does Close take any time.
func TestCloseWaitsForNothing(t *testing.T) {
	hang := func(ctx context.Context, op *reconnect.Opening) error {
		_, err := op.Read()
		return err
	}
	// Each state, and how to reach it.
	for state, reach := range map[string]func(*testing.T, *scene, *reconnect.Options) *reconnect.Conn{
		"dialing": func(_ *testing.T, s *scene, o *reconnect.Options) *reconnect.Conn {
			c := s.open(o)
			s.wantDial()
			return c
		},
		"waiting": func(_ *testing.T, s *scene, o *reconnect.Options) *reconnect.Conn {
			c := s.open(o)
			s.wantDial().refuse(errLost)
			return c
		},
		"opening": func(_ *testing.T, s *scene, o *reconnect.Options) *reconnect.Conn {
			o.OnSession = hang
			c := s.open(o)
			s.wantDial().accept()
			return c
		},
		"ready": func(_ *testing.T, s *scene, o *reconnect.Options) *reconnect.Conn {
			c := s.open(o)
			s.wantDial().accept()
			return c
		},
		"full inbox": func(_ *testing.T, s *scene, o *reconnect.Options) *reconnect.Conn {
			o.Inbox.Messages = 1
			c := s.open(o)
			deliver(s.wantDial().accept(), 1, 5)
			return c
		},
		"stuck write": func(t *testing.T, s *scene, o *reconnect.Options) *reconnect.Conn {
			c := s.open(o)
			s.wantDial().accept().Hold()
			for range 3 {
				go c.Write(t.Context(), text("x"))
			}
			synctest.Wait()
			return c
		},
		"ping pending": func(_ *testing.T, s *scene, o *reconnect.Options) *reconnect.Conn {
			s.fake = alive
			c := s.open(o)
			s.wantDial().accept().Mute()
			time.Sleep(15 * time.Second)
			return c
		},
		"reader waiting": func(t *testing.T, s *scene, o *reconnect.Options) *reconnect.Conn {
			c := s.open(o)
			for range 3 {
				go c.Read(t.Context(), nil)
			}
			s.wantDial().accept()
			return c
		},
	} {
		t.Run(state, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := withPolicy(every(time.Hour))
				c := reach(t, s, &o)
				// Close takes no time, and the Conn has ended well.
				start := s.now()
				require.NoError(t, c.Close())
				<-c.Done()
				require.Equal(t, start, s.now())
				require.Equal(t, net.ErrClosed, c.Err())
				// A second Close and a Read after it return at once.
				require.NoError(t, c.Close(), "again")
				_, err := c.Read(t.Context(), nil)
				require.ErrorIs(t, err, net.ErrClosed)
			})
		})
	}
}

// Promise 11: in no state does Close wait for the network. withWSServer and TestMain check that
// it leaves nothing.
func TestCloseCutsWhateverGoesOn(t *testing.T) {
	// Each state, and how to reach it.
	for state, reach := range map[string]func(*testing.T, *wsServer, *reconnect.Options) *reconnect.Conn{
		"dialing a black hole": func(t *testing.T, server *wsServer, o *reconnect.Options) *reconnect.Conn {
			server.network.Fault(wsAddr, conntest.Fault{Hang: true})
			return server.open(t, o)
		},
		"handshake without an answer": func(t *testing.T, server *wsServer, o *reconnect.Options) *reconnect.Conn {
			server.Next(conntest.Hang)
			return server.open(t, o)
		},
		"answer that is checked": func(t *testing.T, server *wsServer, o *reconnect.Options) *reconnect.Conn {
			server.Next(conntest.BadAccept)
			return server.open(t, o)
		},
		"opening": func(t *testing.T, server *wsServer, o *reconnect.Options) *reconnect.Conn {
			o.OnSession = func(_ context.Context, op *reconnect.Opening) error { _, err := op.Read(); return err }
			return server.open(t, o)
		},
		"waiting": func(t *testing.T, server *wsServer, o *reconnect.Options) *reconnect.Conn {
			server.network.Fault(wsAddr, conntest.Fault{Refuse: true})
			return server.open(t, o)
		},
		"ready": func(t *testing.T, server *wsServer, o *reconnect.Options) *reconnect.Conn { return server.ready(t, o) },
		"write into a full window": func(t *testing.T, server *wsServer, o *reconnect.Options) *reconnect.Conn {
			c := server.ready(t, o)
			server.pipe(t).Window(conntest.ToServer, 100)
			go c.Write(t.Context(), text(strings.Repeat("x", 10_000)))
			return c
		},
		"ping pending": func(t *testing.T, server *wsServer, o *reconnect.Options) *reconnect.Conn {
			c := server.ready(t, o)
			for _, p := range server.network.Conns(wsAddr) {
				p.Stall(conntest.Both)
			}
			time.Sleep(15 * time.Second)
			return c
		},
	} {
		t.Run(state, func(t *testing.T) {
			withWSServer(t, nil, func(t *testing.T, server *wsServer) {
				o := withPolicy(every(time.Hour))
				c := reach(t, server, &o)
				synctest.Wait()
				// Close takes no time, and no connection is left.
				start := server.now()
				closeAndWait(c)
				require.Equal(t, start, server.now())
				require.Zero(t, server.network.Open())
			})
		})
	}
}

// Promises 11 and 14: Close starts the end and returns, in a callback as elsewhere.
func TestCloseInsideACallbackReturns(t *testing.T) {
	var c *reconnect.Conn
	var closed int
	shut := func() {
		if c != nil { // the first dial may come before New has returned
			c.Close()
			closed++
		}
	}
	// Each callback, and how to make it call Close.
	for name, set := range map[string]func(o *reconnect.Options){
		"OnMessage": func(o *reconnect.Options) { o.OnMessage = func(context.Context, reconnect.Message) { shut() } },
		"OnSeam": func(o *reconnect.Options) {
			o.OnMessage = func(context.Context, reconnect.Message) {}
			o.OnSeam = func(context.Context, *reconnect.Seam) { shut() }
		},
		"OnSession": func(o *reconnect.Options) {
			o.OnSession = func(context.Context, *reconnect.Opening) error { shut(); return nil }
		},
		"Probe": func(o *reconnect.Options) {
			o.Liveness.Probe = func(context.Context, func(conn.Message) error) error { shut(); return nil }
		},
		"DialDone": func(o *reconnect.Options) {
			o.Run.Trace = &reconnect.Trace{DialDone: func(reconnect.DialDone) { shut() }}
		},
		"WaitStart": func(o *reconnect.Options) {
			o.Run.Trace = &reconnect.Trace{WaitStart: func(reconnect.WaitStart) { shut() }}
		},
		"ProbeDone": func(o *reconnect.Options) {
			o.Run.Trace = &reconnect.Trace{ProbeDone: func(reconnect.ProbeDone) { shut() }}
		},
		"End": func(o *reconnect.Options) {
			o.Run.Trace = &reconnect.Trace{ConnDone: func(reconnect.ConnDone) { shut() }}
			o.OnMessage = func(context.Context, reconnect.Message) { go c.Close() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, closed = nil, 0
			inBubble(t, func(t *testing.T, s *scene) {
				s.fake = alive
				o := withPolicy(every(time.Hour))
				set(&o)
				// Open a session that gets a message and then no pong, so that each callback is called.
				c = s.open(&o)
				peer := s.wantDial().accept()
				peer.Deliver(text("x"))
				peer.Mute()
				// The Conn ends although Close was called inside.
				<-c.Done()
				require.NotZero(t, closed)
				require.Equal(t, net.ErrClosed, c.Err())
			})
		})
	}
}

// Promises 11 and 14: the dialer is a callback too.
func TestCloseInsideADialReturns(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *scene) {
		made := make(chan *reconnect.Conn, 1)
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			return nil, (<-made).Close()
		}), nil)
		require.NoError(t, err)
		made <- c
		<-c.Done()
		require.Equal(t, net.ErrClosed, c.Err())
	})
}

// After Close, Read and Write do not wait for a dial that ignores its context.
func TestCloseFreesReadersAndWritersAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			time.Sleep(time.Minute)
			return nil, errLost
		}), &reconnect.Options{WhenDown: reconnect.WhenDownWait})
		require.NoError(t, err)
		freed := make(chan error, 2)
		go func() {
			_, err := c.Read(context.Background(), nil)
			freed <- err
		}()
		go func() { freed <- c.Write(context.Background(), text("x")) }()
		synctest.Wait()
		go c.Close()
		require.ErrorIs(t, <-freed, net.ErrClosed)
		require.ErrorIs(t, <-freed, net.ErrClosed)
		require.Zero(t, s.now())
		<-c.Done()
	})
}

func TestNothingIsDialedAfterCloseThoughSomebodyReads(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c := s.open(&o)
		s.wantDial().accept()
		ended := make(chan error, 2)
		go func() {
			for err := error(nil); ; {
				if _, err = c.Read(context.Background(), nil); errors.Is(err, net.ErrClosed) {
					ended <- err
					return
				}
			}
		}()
		synctest.Wait()
		go c.Close()
		require.ErrorIs(t, <-ended, net.ErrClosed)
		for range 10 {
			time.Sleep(time.Minute)
			s.wantNoDial()
			require.Equal(t, reconnect.StateClosed, c.State())
			require.ErrorIs(t, c.Write(t.Context(), text("x")), net.ErrClosed)
		}
	})
}

// Promises 8 and 11.
func TestCloseWithASlowHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c := s.open(&reconnect.Options{OnMessage: func(context.Context, reconnect.Message) { time.Sleep(time.Minute) }})
		peer := s.wantDial().accept()
		deliver(peer, 1, 3)
		time.Sleep(35 * time.Second)
		closeAndWait(c)
		require.Equal(t, time.Minute, s.now(), "the handler is waited for, and not called again")
	})
}

// Promise 11: the context of a callback ends when somebody closes the Conn, also if that is a
// goroutine that the callback waits for.
func TestTheContextOfACallbackEndsWithClose(t *testing.T) {
	// Each callback, and how to make it wait.
	for name, set := range map[string]func(o *reconnect.Options, wait func(context.Context)){
		"OnMessage": func(o *reconnect.Options, wait func(context.Context)) {
			o.OnMessage = func(ctx context.Context, _ reconnect.Message) { wait(ctx) }
		},
		"OnSeam": func(o *reconnect.Options, wait func(context.Context)) {
			o.OnMessage = func(context.Context, reconnect.Message) {}
			o.OnSeam = func(ctx context.Context, _ *reconnect.Seam) { wait(ctx) }
		},
		"OnSession": func(o *reconnect.Options, wait func(context.Context)) {
			o.OnSession = func(ctx context.Context, _ *reconnect.Opening) error { wait(ctx); return nil }
		},
		"OnReceipt": func(o *reconnect.Options, wait func(context.Context)) {
			o.Outbox.OnReceipt = func(ctx context.Context, _ reconnect.Receipt) { wait(ctx) }
		},
		"Keep": func(o *reconnect.Options, wait func(context.Context)) {
			o.WhenDown, o.Outbox.OnReceipt = reconnect.WhenDownKeep, func(context.Context, reconnect.Receipt) {}
			o.Outbox.Keep = func(ctx context.Context, _ reconnect.Outgoing, _ error) bool { wait(ctx); return true }
		},
		"Probe": func(o *reconnect.Options, wait func(context.Context)) {
			o.Liveness.Probe = func(ctx context.Context, _ func(conn.Message) error) error { wait(ctx); return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := withPolicy(every(time.Hour))
				var c *reconnect.Conn
				ended := make(chan time.Duration, 9)
				// The callback waits for a goroutine that closes the Conn, and then for its own context.
				set(&o, func(ctx context.Context) {
					var g sync.WaitGroup
					g.Go(func() { time.Sleep(time.Second); c.Close() })
					g.Wait()
					<-ctx.Done()
					ended <- s.now()
				})
				// Give each callback a reason to be called: two messages to send, one received, perhaps a loss, a probe.
				c = s.open(&o)
				peer := s.wantDial().accept()
				peer.Hold()
				_, _ = c.Send(out("a")), c.Send(out("b"))
				peer.Deliver(text("x"))
				if name == "OnSeam" || name == "Keep" {
					peer.Fail(errLost)
				}
				peer.Release()
				time.Sleep(11 * time.Second) // so that Probe is called
				// The context ended, because the callback returned.
				<-c.Done()
				require.NotEmpty(t, ended)
			})
		})
	}
}

// Promise 11: a callback may wait for something that cannot come while it runs. The wait ends
// with the context of the callback.
func TestAWaitInACallbackEndsWithItsContext(t *testing.T) {
	// Each wait that cannot end well inside OnMessage.
	for name, wait := range map[string]func(context.Context, *reconnect.Conn) error{
		"Await":    func(ctx context.Context, c *reconnect.Conn) error { return c.Await(ctx, reconnect.StateWaiting) },
		"Shutdown": func(ctx context.Context, c *reconnect.Conn) error { return c.Shutdown(ctx) },
		"Write": func(ctx context.Context, c *reconnect.Conn) error {
			<-ctx.Done()
			return c.Write(ctx, text("x"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := withPolicy(every(time.Second))
				o.WhenDown = reconnect.WhenDownWait
				var c *reconnect.Conn
				result := make(chan error, 1)
				o.OnMessage = func(ctx context.Context, _ reconnect.Message) { result <- wait(ctx, c) }
				// OnMessage waits, and a second later the Conn is closed.
				c = s.open(&o)
				peer := s.wantDial().accept()
				peer.Deliver(text("x"))
				time.AfterFunc(time.Second, func() { c.Close() })
				// The wait ends at that moment with an error.
				err := <-result
				require.Error(t, err)
				<-c.Done()
				require.LessOrEqual(t, s.now(), time.Second)
			})
		})
	}
}

// The end calls OnSeam, the layers and ConnDone, of which each may end its goroutine too.
func TestTheEndOfAConnSurvivesASecondCallbackThatDoesNotReturn(t *testing.T) {
	exit := func() { runtime.Goexit() }
	for name, set := range map[string]func(*reconnect.Options){
		"OnMessage":        func(o *reconnect.Options) { o.OnSeam = func(context.Context, *reconnect.Seam) { exit() } },
		"OnMessage, layer": func(o *reconnect.Options) { o.Layers = []*reconnect.Layer{{End: func(error) { exit() }}} },
		"OnMessage, hook": func(o *reconnect.Options) {
			o.Run.Trace = &reconnect.Trace{ConnDone: func(reconnect.ConnDone) { exit() }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := withPolicy(every(time.Hour))
				o.OnMessage = func(context.Context, reconnect.Message) { exit() }
				set(&o)
				c := s.open(&o)
				peer := s.wantDial().accept()
				peer.Deliver(text("m"))
				<-c.Done()
				require.ErrorContains(t, c.Err(), "ended for good: OnMessage: the function did not return")
				require.Equal(t, reconnect.StateClosed, c.State())
				require.True(t, peer.Closed())
			})
		})
	}
	inBubble(t, func(t *testing.T, s *scene) { // after Close
		o := withPolicy(every(time.Hour))
		o.Run.Trace = &reconnect.Trace{ConnDone: func(reconnect.ConnDone) { exit() }}
		c := s.open(&o)
		s.wantDial().accept()
		c.Close()
		<-c.Done()
		require.Equal(t, reconnect.StateClosed, c.State())
	})
}

// A callback that ends the supervisor's goroutine ends the Conn, and the error of the Conn says
// so.
func TestACallbackThatDoesNotReturnEndsTheConn(t *testing.T) {
	push := func(context.Context, reconnect.Message) {}
	// Each callback of the supervisor, which ends its goroutine.
	for name, set := range map[string]func(*reconnect.Options){
		"OnMessage": func(o *reconnect.Options) {
			o.OnMessage = func(context.Context, reconnect.Message) { runtime.Goexit() }
		},
		"OnSeam": func(o *reconnect.Options) {
			o.OnMessage, o.OnSeam = push, func(context.Context, *reconnect.Seam) { runtime.Goexit() }
		},
		"Keep": func(o *reconnect.Options) {
			o.OnMessage = push
			o.Outbox.Keep = func(context.Context, reconnect.Outgoing, error) bool { runtime.Goexit(); return false }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				s.fake = alive
				o, receipts := sending(reconnect.WhenDownKeep)
				set(o)
				// Give each callback a reason to be called: messages in the queue, one received, a loss.
				c := s.open(o)
				peer := s.wantDial().accept()
				peer.Hold()
				_, _ = c.Send(out("a")), c.Send(out("b"))
				peer.Deliver(text("m"))
				synctest.Wait()
				peer.Fail(errLost)
				// The Conn has ended, and its error names the callback.
				<-c.Done()
				require.ErrorContains(t, c.Err(), "ended for good: "+name+": the function did not return")
				require.ErrorIs(t, c.Err(), net.ErrClosed)
				// Nothing is left of the connection and of the queue.
				require.True(t, peer.Closed())
				require.Equal(t, reconnect.StateClosed, c.State())
				require.Zero(t, c.Stats().Queued)
				for _, r := range receipts.all() {
					require.NotEqual(t, reconnect.FateWritten, r.Fate)
				}
			})
		})
	}
}

// Redial with the number of another session does nothing.
func TestARedialOfAnOlderSessionDoesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(0))
		c := s.open(&o)
		s.wantDial().accept().Fail(errLost)
		s.wantDial().accept()
		c.Redial(1, errLost)
		synctest.Wait()
		require.Equal(t, reconnect.StateReady, c.State())
		s.wantNoDial()
	})
}

// Redial lets the application decide that a session is over.
func TestRedialEndsTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		c := s.open(&o)
		peer := s.wantDial().accept()
		gap := errors.New("gap in sequence")
		c.Redial(7, errLost) // not this one
		c.Redial(1, gap)
		require.Equal(t, gap, wantSeam(t, c).Cause)
		require.True(t, peer.Closed())
		s.wantDial()
	})
}

// Redial works with an inbox that discards, too, and its cause is kept.
func TestRedialEndsASessionThatDiscards(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Hour))
		o.Inbox.Overflow = reconnect.InboxDiscard
		c := s.open(&o)
		s.wantDial().accept()
		c.Redial(1, nil)
		synctest.Wait()
		require.EqualError(t, c.Status().Err, "redial asked for")
	})
}

// placed is a Dialer that has a name for where it dials.
type placed struct{ *scene }

func (placed) Host() string { return "host:1" }

func TestTheEndpointIsWhatTheDialerSays(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		require.Empty(t, s.open(nil).Endpoint())
		c, err := reconnect.New(placed{s}, nil)
		require.NoError(t, err)
		defer closeAndWait(c)
		require.Equal(t, "host:1", c.Endpoint())
	})
}

// The name for the gate may be that of the service, of which the host is one server.
func TestTheHostOfTheOptionsCountsBeforeThatOfTheDialer(t *testing.T) {
	for host, want := range map[string]string{"": "acquire host:1", "service": "acquire service"} {
		inBubble(t, func(t *testing.T, s *scene) {
			g := &gate{}
			o := withPolicy(every(time.Hour))
			o.Run.Gate, o.Run.Host = g, host
			c, err := reconnect.New(placed{s}, &o)
			require.NoError(t, err)
			defer closeAndWait(c)
			s.wantDial()
			require.Equal(t, want, g.all()[0])
		})
	}
}
