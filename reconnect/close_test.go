package reconnect_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

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

// Promise 11: Close returns at once; Done waits for a callback that is at work.
func TestDoneWaitsForARunningCallback(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var late notes
		var returned atomic.Bool
		c := s.open(&reconnect.Options{
			OnMessage: func(context.Context, reconnect.Message) { time.Sleep(6 * time.Second); returned.Store(true) },
			Run:       reconnect.RunOptions{Trace: &reconnect.Trace{Overdue: func(o reconnect.Overdue) { late.add(o.What) }}},
		})
		s.wantDial().accept().Deliver(text("x"))
		synctest.Wait()
		c.Close()
		require.Zero(t, s.now())
		require.False(t, returned.Load())
		<-c.Done()
		require.True(t, returned.Load())
		require.Equal(t, []string{"OnMessage"}, late.all())
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

// Promise 11: the context of OnMessage ends with its session, though the handler
// works on.
func TestTheContextOfOnMessageEndsWithItsSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		ended := make(chan error, 1)
		o := run(every(time.Second))
		o.OnMessage = func(ctx context.Context, _ reconnect.Message) { <-ctx.Done(); ended <- ctx.Err() }
		c := s.open(&o)
		s.wantDial().accept().Deliver(text("x"))
		synctest.Wait()
		require.Empty(t, ended)
		c.Redial(1, errLost)
		require.Equal(t, context.Canceled, <-ended)
		require.Equal(t, time.Second, s.wantDial().at)
	})
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

// Promise 11.
func TestShutdownTellsThePeer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(0))
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

// Promise 10.
func TestShutdownHasALimit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().accept().Mute()
		require.ErrorIs(t, c.Shutdown(t.Context()), context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, s.now())
	})
}

// Promise 6: a write under way is finished first.
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

// Promise 11: a handler that works on holds up Done, and Shutdown no longer than its
// context lasts.
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

type invalid struct{ reconnect.DialFunc }

func (invalid) Validate() error { return errors.New("dialer: URL: no host") }

// A bad option is named by the constructor.
func TestNewNamesTheOptionThatIsWrong(t *testing.T) {
	dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return nil, errLost })
	push := func(context.Context, reconnect.Message) {}
	for want, o := range map[string]*reconnect.Options{
		"Options.Inbox:":          {OnMessage: push, Inbox: reconnect.Inbox{Messages: 1}},
		"Options.OnSeam":          {OnSeam: func(context.Context, *reconnect.Seam) {}},
		"Options.Inbox.Messages":  {Inbox: reconnect.Inbox{Messages: -1}},
		"Options.Inbox.Bytes":     {Inbox: reconnect.Inbox{Bytes: -1}},
		"Options.Inbox.Overflow":  {Inbox: reconnect.Inbox{Overflow: 17}},
		"OverflowReplaceKey":      {Inbox: reconnect.Inbox{Overflow: reconnect.OverflowReplaceKey}},
		"OverflowDiscard, which":  {Outbox: reconnect.Outbox{Overflow: reconnect.OverflowDiscard}},
		"Options.Outbox.Overflow": {Outbox: reconnect.Outbox{Overflow: 17}},
		"Options.WhenDown":        {WhenDown: 17},
		"Options.Liveness.Probe":  {Liveness: reconnect.Liveness{Limit: -1, Probe: func(context.Context, func(conn.Message) error) error { return nil }}},
		"Options.Run.Kick":        {Run: reconnect.RunOptions{Kick: make(chan struct{})}},
		"RunOptions.Gate":         {Run: reconnect.RunOptions{Gate: &gate{}}},
		"RunOptions.Host \"h.e\"": {Run: reconnect.RunOptions{Host: "h.e"}},
	} {
		c, err := reconnect.New(dial, o)
		require.ErrorContains(t, err, want)
		require.Nil(t, c)
	}
	_, err := reconnect.New(nil, nil)
	require.ErrorContains(t, err, "Dialer")
	_, err = reconnect.New(invalid{dial}, nil)
	require.ErrorContains(t, err, "URL")
}

func TestADialerThatReturnsNothingEndsTheConn(t *testing.T) {
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return nil, nil }), nil)
	require.NoError(t, err)
	<-c.Done()
	require.ErrorContains(t, c.Err(), "neither a connection nor an error")
}
