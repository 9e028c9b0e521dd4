package run_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
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
	for state, reach := range map[string]func(*testing.T, *scene.Scene, *reconnect.Options) *reconnect.Conn{
		"dialing": func(_ *testing.T, s *scene.Scene, o *reconnect.Options) *reconnect.Conn {
			c := s.Open(o)
			s.WantDial()
			return c
		},
		"waiting": func(_ *testing.T, s *scene.Scene, o *reconnect.Options) *reconnect.Conn {
			c := s.Open(o)
			s.WantDial().Refuse(scene.ErrLost)
			return c
		},
		"opening": func(_ *testing.T, s *scene.Scene, o *reconnect.Options) *reconnect.Conn {
			o.OnSession = hang
			c := s.Open(o)
			s.WantDial().Accept()
			return c
		},
		"ready": func(_ *testing.T, s *scene.Scene, o *reconnect.Options) *reconnect.Conn {
			c := s.Open(o)
			s.WantDial().Accept()
			return c
		},
		"full inbox": func(_ *testing.T, s *scene.Scene, o *reconnect.Options) *reconnect.Conn {
			o.Inbox.Messages = 1
			c := s.Open(o)
			scene.Deliver(s.WantDial().Accept(), 1, 5)
			return c
		},
		"stuck write": func(t *testing.T, s *scene.Scene, o *reconnect.Options) *reconnect.Conn {
			c := s.Open(o)
			s.WantDial().Accept().Hold()
			for range 3 {
				go c.Write(t.Context(), scene.Text("x"))
			}
			synctest.Wait()
			return c
		},
		"ping pending": func(_ *testing.T, s *scene.Scene, o *reconnect.Options) *reconnect.Conn {
			s.Fake = scene.Alive
			c := s.Open(o)
			s.WantDial().Accept().Mute()
			time.Sleep(15 * time.Second)
			return c
		},
		"reader waiting": func(t *testing.T, s *scene.Scene, o *reconnect.Options) *reconnect.Conn {
			c := s.Open(o)
			for range 3 {
				go c.Read(t.Context(), nil)
			}
			s.WantDial().Accept()
			return c
		},
	} {
		t.Run(state, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o := scene.WithPolicy(scene.Every(time.Hour))
				c := reach(t, s, &o)
				// Close takes no time, and the Conn has ended well.
				start := s.Now()
				require.NoError(t, c.Close())
				<-c.Done()
				require.Equal(t, start, s.Now())
				require.Equal(t, net.ErrClosed, c.Err())
				// A second Close and a Read after it return at once.
				require.NoError(t, c.Close(), "again")
				_, err := c.Read(t.Context(), nil)
				require.ErrorIs(t, err, net.ErrClosed)
			})
		})
	}
}

// Promise 11: in no state does Close wait for the network. scene.WithWSServer and TestMain check that
// it leaves nothing.
func TestCloseCutsWhateverGoesOn(t *testing.T) {
	// Each state, and how to reach it.
	for state, reach := range map[string]func(*testing.T, *scene.WSServer, *reconnect.Options) *reconnect.Conn{
		"dialing a black hole": func(t *testing.T, server *scene.WSServer, o *reconnect.Options) *reconnect.Conn {
			server.Network.Fault(scene.WSAddr, conntest.Fault{Hang: true})
			return server.Open(t, o)
		},
		"handshake without an answer": func(
			t *testing.T, server *scene.WSServer, o *reconnect.Options,
		) *reconnect.Conn {
			server.Next(conntest.Hang)
			return server.Open(t, o)
		},
		"answer that is checked": func(t *testing.T, server *scene.WSServer, o *reconnect.Options) *reconnect.Conn {
			server.Next(conntest.BadAccept)
			return server.Open(t, o)
		},
		"opening": func(t *testing.T, server *scene.WSServer, o *reconnect.Options) *reconnect.Conn {
			o.OnSession = func(_ context.Context, op *reconnect.Opening) error { _, err := op.Read(); return err }
			return server.Open(t, o)
		},
		"waiting": func(t *testing.T, server *scene.WSServer, o *reconnect.Options) *reconnect.Conn {
			server.Network.Fault(scene.WSAddr, conntest.Fault{Err: syscall.ECONNREFUSED})
			return server.Open(t, o)
		},
		"ready": func(t *testing.T, server *scene.WSServer, o *reconnect.Options) *reconnect.Conn {
			return server.Ready(t, o)
		},
		"write into a full window": func(t *testing.T, server *scene.WSServer, o *reconnect.Options) *reconnect.Conn {
			c := server.Ready(t, o)
			server.Pipe(t).Window(conntest.ToServer, 100)
			go c.Write(t.Context(), scene.Text(strings.Repeat("x", 10_000)))
			return c
		},
		"ping pending": func(t *testing.T, server *scene.WSServer, o *reconnect.Options) *reconnect.Conn {
			c := server.Ready(t, o)
			for _, p := range server.Network.Conns(scene.WSAddr) {
				p.Stall(conntest.Both)
			}
			time.Sleep(15 * time.Second)
			return c
		},
	} {
		t.Run(state, func(t *testing.T) {
			scene.WithWSServer(t, nil, func(t *testing.T, server *scene.WSServer) {
				o := scene.WithPolicy(scene.Every(time.Hour))
				c := reach(t, server, &o)
				synctest.Wait()
				// Close takes no time, and no connection is left.
				start := server.Now()
				scene.CloseAndWait(c)
				require.Equal(t, start, server.Now())
				require.Zero(t, server.Network.Count("").Open)
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
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				s.Fake = scene.Alive
				o := scene.WithPolicy(scene.Every(time.Hour))
				set(&o)
				// Open a session that gets a message and then no pong, so that each callback is called.
				c = s.Open(&o)
				peer := s.WantDial().Accept()
				peer.Deliver(scene.Text("x"))
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
	scene.InBubble(t, func(t *testing.T, _ *scene.Scene) {
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
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			time.Sleep(time.Minute)
			return nil, scene.ErrLost
		}), &reconnect.Options{WhenDown: reconnect.WhenDownWait})
		require.NoError(t, err)
		freed := make(chan error, 2)
		go func() {
			_, err := c.Read(context.Background(), nil)
			freed <- err
		}()
		go func() { freed <- c.Write(context.Background(), scene.Text("x")) }()
		synctest.Wait()
		go c.Close()
		require.ErrorIs(t, <-freed, net.ErrClosed)
		require.ErrorIs(t, <-freed, net.ErrClosed)
		require.Zero(t, s.Now())
		<-c.Done()
	})
}

func TestNothingIsDialedAfterCloseThoughSomebodyReads(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.WhenDown = reconnect.WhenDownWait
		c := s.Open(&o)
		s.WantDial().Accept()
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
			s.WantNoDial()
			require.Equal(t, reconnect.StateClosed, c.State())
			require.ErrorIs(t, c.Write(t.Context(), scene.Text("x")), net.ErrClosed)
		}
	})
}

// Promises 8 and 11.
func TestCloseWithASlowHandler(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		c := s.Open(&reconnect.Options{OnMessage: func(context.Context, reconnect.Message) { time.Sleep(time.Minute) }})
		peer := s.WantDial().Accept()
		scene.Deliver(peer, 1, 3)
		time.Sleep(35 * time.Second)
		scene.CloseAndWait(c)
		require.Equal(t, time.Minute, s.Now(), "the handler is waited for, and not called again")
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
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o := scene.WithPolicy(scene.Every(time.Hour))
				var c *reconnect.Conn
				ended := make(chan time.Duration, 9)
				// The callback waits for a goroutine that closes the Conn, and then for its own context.
				set(&o, func(ctx context.Context) {
					var g sync.WaitGroup
					g.Go(func() { time.Sleep(time.Second); c.Close() })
					g.Wait()
					<-ctx.Done()
					ended <- s.Now()
				})
				// Give each callback a reason to be called: two messages to send, one received, perhaps a loss, a probe.
				c = s.Open(&o)
				peer := s.WantDial().Accept()
				peer.Hold()
				_, _ = c.Send(scene.Out("a")), c.Send(scene.Out("b"))
				peer.Deliver(scene.Text("x"))
				if name == "OnSeam" || name == "Keep" {
					peer.Fail(scene.ErrLost)
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
			return c.Write(ctx, scene.Text("x"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o := scene.WithPolicy(scene.Every(time.Second))
				o.WhenDown = reconnect.WhenDownWait
				var c *reconnect.Conn
				result := make(chan error, 1)
				o.OnMessage = func(ctx context.Context, _ reconnect.Message) { result <- wait(ctx, c) }
				// OnMessage waits, and a second later the Conn is closed.
				c = s.Open(&o)
				peer := s.WantDial().Accept()
				peer.Deliver(scene.Text("x"))
				time.AfterFunc(time.Second, func() { c.Close() })
				// The wait ends at that moment with an error.
				err := <-result
				require.Error(t, err)
				<-c.Done()
				require.LessOrEqual(t, s.Now(), time.Second)
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
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o := scene.WithPolicy(scene.Every(time.Hour))
				o.OnMessage = func(context.Context, reconnect.Message) { exit() }
				set(&o)
				c := s.Open(&o)
				peer := s.WantDial().Accept()
				peer.Deliver(scene.Text("m"))
				<-c.Done()
				require.ErrorContains(t, c.Err(), "ended for good: OnMessage: the function did not return")
				require.Equal(t, reconnect.StateClosed, c.State())
				require.True(t, peer.Closed())
			})
		})
	}
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) { // after Close
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Run.Trace = &reconnect.Trace{ConnDone: func(reconnect.ConnDone) { exit() }}
		c := s.Open(&o)
		s.WantDial().Accept()
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
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				s.Fake = scene.Alive
				o, receipts := scene.Sending(reconnect.WhenDownKeep)
				set(o)
				// Give each callback a reason to be called: messages in the queue, one received, a loss.
				c := s.Open(o)
				peer := s.WantDial().Accept()
				peer.Hold()
				_, _ = c.Send(scene.Out("a")), c.Send(scene.Out("b"))
				peer.Deliver(scene.Text("m"))
				synctest.Wait()
				peer.Fail(scene.ErrLost)
				// The Conn has ended, and its error names the callback.
				<-c.Done()
				require.ErrorContains(t, c.Err(), "ended for good: "+name+": the function did not return")
				require.ErrorIs(t, c.Err(), net.ErrClosed)
				// Nothing is left of the connection and of the queue.
				require.True(t, peer.Closed())
				require.Equal(t, reconnect.StateClosed, c.State())
				require.Zero(t, c.Stats().Queued)
				for _, r := range receipts.All() {
					require.NotEqual(t, reconnect.FateWritten, r.Fate)
				}
			})
		})
	}
}

// Redial with the number of another session does nothing.
func TestARedialOfAnOlderSessionDoesNothing(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(0))
		c := s.Open(&o)
		s.WantDial().Accept().Fail(scene.ErrLost)
		s.WantDial().Accept()
		c.Redial(1, scene.ErrLost)
		synctest.Wait()
		require.Equal(t, reconnect.StateReady, c.State())
		s.WantNoDial()
	})
}

// Redial lets the application decide that a session is over.
func TestRedialEndsTheSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		gap := errors.New("gap in sequence")
		c.Redial(7, scene.ErrLost) // not this one
		c.Redial(1, gap)
		require.Equal(t, gap, scene.WantSeam(t, c).Cause)
		require.True(t, peer.Closed())
		s.WantDial()
	})
}

// Redial works with an inbox that discards, too, and its cause is kept.
func TestRedialEndsASessionThatDiscards(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Inbox.Overflow = reconnect.InboxDiscard
		c := s.Open(&o)
		s.WantDial().Accept()
		c.Redial(1, nil)
		synctest.Wait()
		require.EqualError(t, c.Status().Err, "redial asked for")
	})
}

// placed is a Dialer that has a name for where it dials.
type placed struct{ *scene.Scene }

func (placed) Host() string { return "host:1" }

func TestTheEndpointIsWhatTheDialerSays(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		require.Empty(t, s.Open(nil).Endpoint())
		c, err := reconnect.New(placed{s}, nil)
		require.NoError(t, err)
		defer scene.CloseAndWait(c)
		require.Equal(t, "host:1", c.Endpoint())
	})
}

// The name for the gate may be that of the service, of which the host is one server.
func TestTheHostOfTheOptionsCountsBeforeThatOfTheDialer(t *testing.T) {
	for host, want := range map[string]string{"": "acquire host:1", "service": "acquire service"} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			g := &scene.Gate{}
			o := scene.WithPolicy(scene.Every(time.Hour))
			o.Run.Gate, o.Run.Host = g, host
			c, err := reconnect.New(placed{s}, &o)
			require.NoError(t, err)
			defer scene.CloseAndWait(c)
			s.WantDial()
			require.Equal(t, want, g.All()[0])
		})
	}
}
