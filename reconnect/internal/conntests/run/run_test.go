package run_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 1, for a Run over any kind of connection.
func TestRunClosesAConnectionBeforeTheNextDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := &scene.RunConn{}
		err := reconnect.Run(t.Context(), func(context.Context) (*scene.RunConn, error) {
			if last.Closed {
				return nil, backoff.Permanent(scene.ErrLost)
			}
			return last, nil
		}, func(context.Context, *scene.RunConn, *reconnect.Session) error { return errors.New("over") },
			&reconnect.RunOptions{Policy: backoff.Limit(scene.Every(0), 3, 0)})
		require.ErrorIs(t, err, scene.ErrLost)
		require.NotErrorIs(t, err, backoff.ErrGaveUp)
	})
}

// Promise 1.
func TestTheLostConnectionIsClosedBeforeTheNextDial(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		_, peer := s.Ready(&o)
		peer.Fail(scene.ErrLost)
		s.WantDial()
		require.True(t, peer.Closed())
	})
}

// Promise 11: when Run returns, the close that the end of its context started has returned too.
func TestRunWaitsForTheCloseThatItsContextStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := &scene.RunConn{Takes: time.Second}
		start := time.Now()
		_ = reconnect.Run(ctx, func(context.Context) (*scene.RunConn, error) { return p, nil },
			func(ctx context.Context, _ *scene.RunConn, _ *reconnect.Session) error {
				<-ctx.Done()
				synctest.Wait() // the close has begun
				return nil
			}, nil)
		require.Zero(t, p.Closing)
		require.Equal(t, 3*time.Second, time.Since(start), "one close after the other")
	})
}

func TestANilFromServeIsRedialed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var causes []error
		err := reconnect.Run(ctx, func(context.Context) (io.Closer, error) { return io.NopCloser(nil), nil },
			func(_ context.Context, _ io.Closer, s *reconnect.Session) error {
				causes = append(causes, s.Cause)
				if s.Number == 3 {
					cancel(scene.ErrLost)
				}
				return nil
			}, nil)
		require.ErrorIs(t, err, scene.ErrLost)
		require.Len(t, causes, 3)
		require.NoError(t, causes[0])
		require.Error(t, errors.Join(causes[1:]...))
	})
}

// Run works in the caller's goroutine. If serve panics and the caller recovers, the connection
// is closed, the place at the gate is given back, and no goroutine is left.
func TestAServeThatDoesNotReturnLeavesNothingBehind(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("bad message") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, c := &scene.Gate{}, &scene.RunConn{}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() { recover() }()
					reconnect.Run(t.Context(), func(context.Context) (*scene.RunConn, error) { return c, nil },
						func(context.Context, *scene.RunConn, *reconnect.Session) error { leave(); return nil },
						&reconnect.RunOptions{Gate: g, Host: "h"})
				}()
				<-ended
				require.True(t, c.Closed)
				require.Equal(t, []string{"acquire h", "done stop"}, g.All())
			})
		})
	}
}

func TestKickCutsTheWait(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		var done reconnect.WaitDone
		o.Run.Trace = &reconnect.Trace{WaitDone: func(w reconnect.WaitDone) { done = w }}
		c, d := s.Down(&o)
		d.Refuse(scene.ErrLost)
		time.Sleep(time.Second)
		c.Kick()
		require.Equal(t, time.Second, s.WantDial().At)
		require.True(t, done.Kicked)
	})
}

// A kick counts from the moment when the connection is lost.
func TestKickRightAfterTheLossIsNotMissed(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.OnMessage = func(context.Context, reconnect.Message) {}
		var c *reconnect.Conn
		o.OnSeam = func(_ context.Context, seam *reconnect.Seam) {
			if !seam.Planned {
				c.Kick()
			}
		}
		c, peer := s.Ready(&o)
		peer.Fail(scene.ErrLost)
		require.Zero(t, s.WantDial().At)
	})
}

// A kick cuts the wait as soon as WaitStart has announced it.
func TestAKickFromWaitStartCutsThatWait(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		kicks := func() {}
		o.Run.Trace = &reconnect.Trace{WaitStart: func(reconnect.WaitStart) { kicks() }}
		c, d := s.Down(&o)
		kicks = c.Kick
		d.Refuse(scene.ErrLost)
		require.Zero(t, s.WantDial().At)
	})
}

// The network may be back while a dial hangs in the old one, so a dial that fails after a kick
// is followed by the next at once.
func TestAKickDuringADialCutsTheWaitAfterIt(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c, d := s.Down(&o)
		time.Sleep(time.Minute / 2)
		c.Kick()
		d.Refuse(scene.ErrLost)
		d = s.WantDial()
		require.Equal(t, time.Minute/2, d.At)
		d.Refuse(scene.ErrLost)
		require.Equal(t, time.Minute/2+time.Second, s.WantDial().At, "one kick cuts one wait")
	})
}

// A kick while there is no wait does not cut the next one.
func TestKickWithoutAWaitDoesNothing(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, d := s.Down(&o)
		c.Kick()
		peer := d.Accept()
		c.Kick()
		peer.Fail(scene.ErrLost)
		require.Equal(t, time.Hour, s.WantDial().At)
	})
}

// A kick during a session does not cut the wait after it.
func TestAKickDuringASessionIsForgotten(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c, d := s.Down(&o)
		c.Kick() // of a dial that succeeds
		peer := d.Accept()
		c.Kick()
		peer.Fail(scene.ErrLost)
		require.Equal(t, time.Second, s.WantDial().At)
	})
}

// The dial has succeeded, and the state is StateConnecting until the hook returns.
func TestKickOfAnsweredDialIsForgotten(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		answered := func() {}
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Run.Trace = &reconnect.Trace{DialDone: func(reconnect.DialDone) { answered() }}
		c, d := s.Down(&o)
		answered = c.Kick
		peer := d.Accept()
		answered = func() {}
		peer.Fail(scene.ErrLost)
		require.Equal(t, time.Hour, s.WantDial().At)
	})
}

// The close handshake of a Redial takes a second, in which the state is waiting already.
func TestKickDuringCloseHandshakeCutsWait(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, peer := s.Ready(&o)
		peer.Mute()
		c.Redial(s.Session, nil)
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, c.State())
		c.Kick()
		require.Equal(t, time.Second, s.WantDial().At)
	})
}

func TestOneKickCutsOneWait(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		kicks := func() {}
		o.Run.Trace = &reconnect.Trace{WaitStart: func(reconnect.WaitStart) { kicks() }}
		c, first := s.Down(&o)
		kicks = func() { // while the supervisor is here it cannot take the first kick before the second
			c.Kick()
			c.Kick()
			kicks = func() {}
		}
		first.Refuse(scene.ErrLost)
		d := s.WantDial()
		require.Zero(t, d.At)
		d.Refuse(scene.ErrLost)
		require.Equal(t, time.Hour, s.WantDial().At)
	})
}

// Promise 9: a kick does not shorten the time that a server asked for.
func TestKickDoesNotCutRetryAfter(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c, d := s.Down(&o)
		d.Refuse(backoff.RetryAfter(scene.ErrLost, time.Minute))
		c.Kick()
		require.Equal(t, 61*time.Second, s.WantDial().At)
	})
}

// Kick cuts the wait of one connection. The gate is for the waits of all.
func TestKickDoesNotOpenTheGate(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(0))
		o.Run.Gate, o.Run.Host = &scene.Gate{}, "h"
		c, first := s.Down(&o)
		first.Refuse(scene.ErrLost)
		c.Kick()
		require.Equal(t, time.Second, s.WantDial().At)
	})
}

// A kick does not cut the wait at the gate, and does not cut the wait after it.
func TestAKickAtTheGateIsForgotten(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		g := &scene.Gate{}
		o.Run.Gate, o.Run.Host = g, "h"
		var opened atomic.Pointer[reconnect.Conn]
		o.Run.Trace = &reconnect.Trace{GateStart: func(reconnect.GateStart) {
			if c := opened.Load(); c != nil {
				require.True(t, c.Status().AtGate)
				c.Kick()
			}
		}}
		c, first := s.Down(&o)
		opened.Store(c)
		first.Refuse(scene.ErrLost)
		d := s.WantDial()
		require.False(t, c.Status().AtGate)
		d.Refuse(scene.ErrLost)
		require.Equal(t, 4*time.Second, s.WantDial().At, "each is 1 s at the gate")
	})
}

// A kick cuts one wait, also if the gate refuses the try after it.
func TestAKickBeforeAGateThatRefusesCutsOneWait(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		var refusal error
		refusals := 0
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Run.Host = "h"
		o.Run.Gate = scene.RefusingGate(func() error {
			if refusal != nil {
				refusals++
			}
			return refusal
		})
		c, d := s.Down(&o)
		refusal = scene.ErrLost
		d.Refuse(scene.ErrLost)
		time.Sleep(1500 * time.Millisecond)
		c.Kick()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Equal(t, 1+1+3, refusals)
	})
}

// RunOptions.Kick does for a Run what the method Kick does for a Conn.
func TestTheKickOfARunCutsItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		kick := make(chan struct{})
		dials := make(chan time.Time)
		ended := make(chan error)
		go func() {
			ended <- reconnect.Run(ctx, func(context.Context) (*scene.RunConn, error) {
				dials <- time.Now()
				return nil, scene.ErrLost
			}, func(context.Context, *scene.RunConn, *reconnect.Session) error { return nil },
				&reconnect.RunOptions{Policy: scene.Every(time.Hour), Kick: kick})
		}()
		start := <-dials
		time.Sleep(time.Minute)
		kick <- struct{}{}
		require.Equal(t, time.Minute, (<-dials).Sub(start))
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func TestAClosedKickKicksNobody(t *testing.T) {
	require.Len(t, runWithKicks(t, func(kick chan struct{}) { close(kick) }), 10)
}

func TestAKickThatWasSentBeforeTheDialIsForgotten(t *testing.T) {
	require.Len(t, runWithKicks(t, func(kick chan struct{}) { kick <- struct{}{}; kick <- struct{}{} }), 10)
}

// runWithKicks runs a Run whose dials fail, with a channel that has room for three kicks, and
// returns when the dials came.
func runWithKicks(t *testing.T, prepare func(kick chan struct{})) []time.Duration {
	var dials []time.Duration
	synctest.Test(t, func(t *testing.T) {
		kick := make(chan struct{}, 3)
		prepare(kick)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour-time.Second)
		defer cancel()
		start := time.Now()
		err := reconnect.Run(ctx, func(context.Context) (*scene.RunConn, error) {
			dials = append(dials, time.Since(start))
			time.Sleep(time.Minute)
			return nil, scene.ErrLost
		}, func(context.Context, *scene.RunConn, *reconnect.Session) error { return nil },
			&reconnect.RunOptions{Policy: scene.Every(time.Hour), Kick: kick})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	return dials
}
