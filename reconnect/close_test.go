package reconnect_test

import (
	"context"
	"errors"
	"net"
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
		"dialling": func(_ *testing.T, s *scene, o *reconnect.Options) *reconnect.Conn {
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
				require.Equal(t, start, s.now())
				require.Equal(t, net.ErrClosed, c.Err())
				require.NoError(t, c.Close(), "again")
				_, err := c.Read(t.Context(), nil)
				require.ErrorIs(t, err, net.ErrClosed)
			})
		})
	}
}

// Promises 11 and 14: inside a callback Close starts the end and returns.
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
		"OnMessage": func(o *reconnect.Options) { o.OnMessage = func(reconnect.Message) { shut() } },
		"OnSeam": func(o *reconnect.Options) {
			o.OnMessage = func(reconnect.Message) {}
			o.OnSeam = func(*reconnect.Seam) { shut() }
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
			o.Run.Trace = &reconnect.Trace{End: func(error) { shut() }}
			o.OnMessage = func(reconnect.Message) { go c.Close() }
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

// Promise 11: Close waits for a callback that is at work, when another
// goroutine calls it.
func TestCloseWaitsForARunningCallback(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var late notes
		returned := false
		c := s.open(&reconnect.Options{
			OnMessage: func(reconnect.Message) { time.Sleep(6 * time.Second); returned = true },
			Run:       reconnect.RunOptions{Trace: &reconnect.Trace{Overdue: func(what string, _ time.Duration) { late.add(what) }}},
		})
		s.wantDial().accept().Deliver(text("x"))
		synctest.Wait()
		c.Close()
		require.True(t, returned)
		require.Equal(t, []string{"serve"}, late.all())
	})
}

// Promise 11.
func TestShutdownTellsThePeer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(0))
		c := s.open(&o)
		peer := s.wantDial().accept()
		deliver(peer, 1, 1)
		require.NoError(t, c.Shutdown(t.Context()))
		code, _, ok := peer.Farewell()
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

type invalid struct{ reconnect.DialFunc }

func (invalid) Validate() error { return errors.New("dialer: URL: no host") }

// A bad option is named by the constructor.
func TestNewNamesTheOptionThatIsWrong(t *testing.T) {
	dial := reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return nil, errLost })
	push := func(reconnect.Message) {}
	for want, o := range map[string]*reconnect.Options{
		"Options.Inbox:":          {OnMessage: push, Inbox: reconnect.Inbox{Messages: 1}},
		"Options.OnSeam":          {OnSeam: func(*reconnect.Seam) {}},
		"Options.Inbox.Messages":  {Inbox: reconnect.Inbox{Messages: -1}},
		"Options.Inbox.Bytes":     {Inbox: reconnect.Inbox{Bytes: -1}},
		"Options.Inbox.Full":      {Inbox: reconnect.Inbox{Full: 17}},
		"Options.Down":            {Down: 17},
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
