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
				o := run(every(time.Hour))
				c := reach(t, s, &o)
				start := s.now()
				require.NoError(t, c.Close())
				<-c.Done()
				require.Equal(t, start, s.now())
				require.Equal(t, net.ErrClosed, c.Err())
				require.NoError(t, c.Close(), "again")
				_, err := c.Read(t.Context(), nil)
				require.ErrorIs(t, err, net.ErrClosed)
			})
		})
	}
}

// Promise 11: in no state does Close wait for the network. That it leaves nothing,
// see inVenue and TestMain.
func TestCloseCutsWhateverGoesOn(t *testing.T) {
	for state, reach := range map[string]func(*testing.T, *venue, *reconnect.Options) *reconnect.Conn{
		"dialing a black hole": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			v.network.Fault(venueAddr, conntest.Fault{Hang: true})
			return v.open(t, o)
		},
		"handshake without an answer": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			v.Next(conntest.Hang)
			return v.open(t, o)
		},
		"answer that is checked": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			v.Next(conntest.BadAccept)
			return v.open(t, o)
		},
		"opening": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			o.OnSession = func(_ context.Context, op *reconnect.Opening) error { _, err := op.Read(); return err }
			return v.open(t, o)
		},
		"waiting": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			v.network.Fault(venueAddr, conntest.Fault{Refuse: true})
			return v.open(t, o)
		},
		"ready": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn { return v.ready(t, o) },
		"write into a full window": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			c := v.ready(t, o)
			v.pipe(t).Window(conntest.ToServer, 100)
			go c.Write(t.Context(), text(strings.Repeat("x", 10_000)))
			return c
		},
		"ping pending": func(t *testing.T, v *venue, o *reconnect.Options) *reconnect.Conn {
			c := v.ready(t, o)
			v.network.StallAll(venueAddr)
			time.Sleep(15 * time.Second)
			return c
		},
	} {
		t.Run(state, func(t *testing.T) {
			inVenue(t, nil, func(t *testing.T, v *venue) {
				o := run(every(time.Hour))
				c := reach(t, v, &o)
				synctest.Wait()
				start := v.now()
				quit(c)
				require.Equal(t, start, v.now())
				require.Zero(t, v.network.Open())
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
			o.Run.Trace = &reconnect.Trace{WaitStart: func(reconnect.Wait) { shut() }}
		},
		"ProbeDone": func(o *reconnect.Options) {
			o.Run.Trace = &reconnect.Trace{ProbeDone: func(reconnect.ProbeDone) { shut() }}
		},
		"End": func(o *reconnect.Options) {
			o.Run.Trace = &reconnect.Trace{End: func(reconnect.End) { shut() }}
			o.OnMessage = func(context.Context, reconnect.Message) { go c.Close() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, closed = nil, 0
			inBubble(t, func(t *testing.T, s *scene) {
				s.fake = alive
				o := run(every(time.Hour))
				set(&o)
				c = s.open(&o)
				peer := s.wantDial().accept()
				peer.Deliver(text("x"))
				peer.Mute()
				<-c.Done()
				require.NotZero(t, closed)
				require.Equal(t, net.ErrClosed, c.Err())
			})
		})
	}
}

// Promises 11 and 14: the dialer too is a callback.
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

// Read and Write do not wait for a dial that does not obey.
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

// Promises 8 and 11.
func TestCloseWithASlowHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c := s.open(&reconnect.Options{OnMessage: func(context.Context, reconnect.Message) { time.Sleep(time.Minute) }})
		peer := s.wantDial().accept()
		deliver(peer, 1, 3)
		time.Sleep(35 * time.Second)
		quit(c)
		require.Equal(t, time.Minute, s.now(), "the handler is waited for, and not called again")
	})
}

// Promise 11: a callback learns that the Conn ends, whoever ended it, and a
// goroutine that it waits for may end it.
func TestTheContextOfACallbackEndsWithClose(t *testing.T) {
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
			o.Outbox.Keep = func(ctx context.Context, _ reconnect.Out, _ error) bool { wait(ctx); return true }
		},
		"Probe": func(o *reconnect.Options, wait func(context.Context)) {
			o.Liveness.Probe = func(ctx context.Context, _ func(conn.Message) error) error { wait(ctx); return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o := run(every(time.Hour))
				var c *reconnect.Conn
				ended := make(chan time.Duration, 9)
				set(&o, func(ctx context.Context) {
					var g sync.WaitGroup
					g.Go(func() { time.Sleep(time.Second); c.Close() })
					g.Wait()
					<-ctx.Done()
					ended <- s.now()
				})
				c = s.open(&o)
				peer := s.wantDial().accept()
				peer.Hold()
				_, _ = c.Send(out("a")), c.Send(out("b"))
				peer.Deliver(text("x"))
				if name == "OnSeam" || name == "Keep" {
					peer.Fail(errLost)
				}
				peer.Release()
				time.Sleep(11 * time.Second) // until it is probed
				<-c.Done()
				require.NotEmpty(t, ended)
			})
		})
	}
}

// Promise 11: what a callback waits for, and what cannot come while it runs, ends
// with the context of the callback.
func TestAWaitInACallbackEndsWithItsContext(t *testing.T) {
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
				o := run(every(time.Second))
				o.WhenDown = reconnect.WhenDownWait
				var c *reconnect.Conn
				result := make(chan error, 1)
				o.OnMessage = func(ctx context.Context, _ reconnect.Message) { result <- wait(ctx, c) }
				c = s.open(&o)
				peer := s.wantDial().accept()
				peer.Deliver(text("x"))
				time.AfterFunc(time.Second, func() { c.Close() })
				err := <-result
				require.Error(t, err)
				<-c.Done()
				require.LessOrEqual(t, s.now(), time.Second)
			})
		})
	}
}

// A callback that ends the supervisor's goroutine ends the Conn, which says so.
func TestACallbackThatDoesNotReturnEndsTheConn(t *testing.T) {
	push := func(context.Context, reconnect.Message) {}
	for name, set := range map[string]func(*reconnect.Options){
		"OnMessage": func(o *reconnect.Options) {
			o.OnMessage = func(context.Context, reconnect.Message) { runtime.Goexit() }
		},
		"OnSeam": func(o *reconnect.Options) {
			o.OnMessage, o.OnSeam = push, func(context.Context, *reconnect.Seam) { runtime.Goexit() }
		},
		"Keep": func(o *reconnect.Options) {
			o.OnMessage = push
			o.Outbox.Keep = func(context.Context, reconnect.Out, error) bool { runtime.Goexit(); return false }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				s.fake = alive
				o, told := sending(reconnect.WhenDownKeep)
				set(o)
				c := s.open(o)
				peer := s.wantDial().accept()
				peer.Hold()
				_, _ = c.Send(out("a")), c.Send(out("b"))
				peer.Deliver(text("m"))
				synctest.Wait()
				peer.Fail(errLost)
				<-c.Done()
				require.ErrorContains(t, c.Err(), "closed: "+name+": the function did not return")
				require.ErrorIs(t, c.Err(), net.ErrClosed)
				require.True(t, peer.Closed())
				require.Equal(t, reconnect.StateClosed, c.State())
				require.Zero(t, c.Stats().Queued)
				for _, r := range told.all() {
					require.NotEqual(t, reconnect.FateWritten, r.Fate)
				}
			})
		})
	}
}

// What is said of another session harms nobody.
func TestARedialOfAnOlderSessionDoesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(0))
		c := s.open(&o)
		s.wantDial().accept().Fail(errLost)
		s.wantDial().accept()
		c.Redial(1, errLost)
		synctest.Wait()
		require.Equal(t, reconnect.StateReady, c.State())
		s.wantNoDial()
	})
}

// Redial is the application's own verdict.
func TestRedialEndsTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
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

// Redial works for those who discard, too, and its cause is kept.
func TestRedialEndsASessionThatDiscards(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		o.Inbox.Overflow = reconnect.OverflowDiscard
		c := s.open(&o)
		s.wantDial().accept()
		c.Redial(1, nil)
		synctest.Wait()
		require.EqualError(t, c.Status().Err, "redial asked for")
	})
}
