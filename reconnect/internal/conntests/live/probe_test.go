package live_test

import (
	"context"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The tests of internal/watch/liveness.go that are about probes: when they begin, what they write, how they end.

// On a connection without a ping, Probe asks for a sign of life.
func TestAProbeFunctionAsksForLife(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = conntest.FakeOptions{Transport: true}
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error {
			return write(scene.Text("?"))
		}
		c, peer := s.Ready(&o)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, []conn.Message{scene.Text("?")}, peer.Written())
		scene.Deliver(peer, 1, 1)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.Equal(t, 40*time.Second, s.Now())
		require.Len(t, peer.Written(), 3)
	})
}

// Promise 8: a framed stream has no ping, so Probe asks.
func TestAHalfOpenFramedPeerIsProbedAndCut(t *testing.T) {
	scene.InEachFramedForm(t, conn.Lines{}, func(t *testing.T, server *scene.FramedServer) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error {
			return write(scene.Text("PING"))
		}
		c, peer := server.Ready(t, &o)
		go func() { // it answers
			for {
				if _, err := peer.In.ReadString('\n'); err != nil {
					return
				}
				io.WriteString(peer, "PONG\n")
			}
		}()
		for range 10 {
			time.Sleep(10 * time.Second)
			synctest.Wait()
			scene.WantMessage(t, c, server.Session, "PONG")
		}
		peer.Pipe.Stall(conntest.Both)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 130*time.Second, server.Now())
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
	})
}

func TestAProbeThatFailsEndsTheSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.Probe = func(context.Context, func(conn.Message) error) error { return scene.ErrLost }
		c, _ := s.Ready(&o)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 10*time.Second, s.Now())
		require.ErrorIs(t, c.Status().Err, scene.ErrLost)
	})
}

// A ping that the end of its session ends says nothing about the peer.
func TestAProbeWhoseSessionEndsHasNotFailed(t *testing.T) {
	for name, end := range map[string]func(*reconnect.Conn, *conntest.Fake){
		"by Redial":   func(c *reconnect.Conn, _ *conntest.Fake) { c.Redial(c.Status().Session, nil) },
		"by the peer": func(_ *reconnect.Conn, peer *conntest.Fake) { peer.Fail(&conn.CloseError{Code: 1001}) },
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				s.Fake = scene.Alive
				var failed []error
				o := scene.WithPolicy(scene.Every(time.Hour))
				o.Run.Trace = &reconnect.Trace{ProbeDone: func(p reconnect.ProbeDone) {
					failed = append(failed, p.Err)
				}}
				c, peer := s.Ready(&o)
				peer.Mute()
				for peer.Pings() == 0 {
					time.Sleep(time.Second)
				}
				end(c, peer)
				require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
				synctest.Wait()
				require.Len(t, failed, 1)
				require.ErrorIs(t, failed[0], context.Canceled)
			})
		})
	}
}

// The probes at 10 s and 20 s are due because of the silence. The limit is 30 s.
func TestEveryIsKeptWhileAnAnswerIsAwaited(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = conntest.FakeOptions{Transport: true}
		var at []time.Duration
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.ProbeEvery = 7 * time.Second
		o.Liveness.Probe = func(context.Context, func(conn.Message) error) error {
			at = append(at, s.Now())
			return nil
		}
		c, _ := s.Ready(&o)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, []time.Duration{7 * time.Second, 10 * time.Second, 17 * time.Second, 20 * time.Second, 27 * time.Second}, at)
	})
}

// Not a byte of such a message was written, and Probe may write another one.
func TestABadMessageOfAProbeDoesNotCostTheConnection(t *testing.T) {
	scene.InEachFramedForm(t, conn.Lines{}, func(t *testing.T, server *scene.FramedServer) {
		var bad error
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error {
			bad = write(scene.Text("two\nlines"))
			return write(scene.Text("PING"))
		}
		c, peer := server.Ready(t, &o)
		line, err := peer.In.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "PING\n", line)
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, bad, conn.ErrBadMessage)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Promise 11: the probes of a connection end with it.
func TestALostConnectionIsNotProbed(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, peer := s.Ready(&o)
		time.Sleep(5 * time.Second)
		peer.Fail(scene.ErrLost)
		time.Sleep(30 * time.Minute)
		require.Zero(t, c.Stats().Probes)
	})
}

// Promise 11: the loss ends the context of a probe, and the next dial waits until the probe has
// returned.
func TestAProbeEndsWithItsSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(0))
		ended := false
		o.Liveness.Probe = func(ctx context.Context, _ func(conn.Message) error) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return nil
		}
		_, peer := s.Ready(&o)
		time.Sleep(15 * time.Second)
		peer.Fail(scene.ErrLost)
		require.Equal(t, 16*time.Second, s.WantDial().At)
		require.True(t, ended)
	})
}

func TestTheContextOfAProbeEndsAfterAThirdOfTheLimit(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		var took []time.Duration
		o.Liveness.Probe = func(ctx context.Context, _ func(conn.Message) error) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		o.Run.Trace = &reconnect.Trace{ProbeDone: func(p reconnect.ProbeDone) { took = append(took, p.Took) }}
		c, _ := s.Ready(&o)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 30*time.Second, s.Now())
		require.Equal(t, []time.Duration{10 * time.Second, 10 * time.Second}, took)
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent, "no answer is silence, and no failure of the probe")
	})
}

// Promise 6: a probe waits for its turn to write, and its context ends that wait.
func TestAProbeDoesNotOvertakeAWrite(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error {
			return write(scene.Text("?"))
		}
		c, peer := s.Ready(&o)
		peer.Hold()
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), scene.Text("x")) }()
		time.Sleep(25 * time.Second) // the first probe has given up, the second waits
		require.Equal(t, reconnect.StateReady, c.State())
		peer.Release()
		require.NoError(t, <-wrote)
		synctest.Wait()
		require.Equal(t, []conn.Message{scene.Text("x"), scene.Text("?")}, peer.Written())
	})
}

// Promise 8: a probe gets its turn to write, though our own writes take a second each and
// follow one another closely. So a peer that answers is not taken for silent.
func TestAProbeIsNotPutOffByOneWriteAfterAnother(t *testing.T) {
	for name, write := range map[string]func(c *reconnect.Conn) error{
		"Send":  func(c *reconnect.Conn) error { time.Sleep(time.Second / 2); return c.Send(scene.Out("x")) },
		"Write": func(c *reconnect.Conn) error { return c.Write(context.Background(), scene.Text("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				c, peer := openAnswering(t, s, name == "Send")
				stopped := make(chan struct{})
				go func() {
					defer close(stopped)
					for write(c) == nil {
					}
				}()
				time.Sleep(50*time.Second - time.Nanosecond)
				require.Equal(t, reconnect.StateReady, c.State(), "%v", c.Status().Err)
				require.Equal(t, 4, strings.Count(scene.Written(peer), "?"))
				require.Equal(t, 45, strings.Count(scene.Written(peer), "x"))
				c.Close()
				<-stopped
			})
		})
	}
}

// openAnswering is ready over slowConns, with a peer that answers each probe.
func openAnswering(t *testing.T, s *scene.Scene, sends bool) (*reconnect.Conn, *conntest.Fake) {
	t.Helper()
	var peer *conntest.Fake
	o := scene.WithPolicy(scene.Every(time.Hour))
	if sends {
		o.Outbox.OnReceipt = func(context.Context, reconnect.Receipt) {}
	}
	o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error {
		err := write(scene.Text("?"))
		if err == nil {
			peer.Deliver(scene.Text("!"))
		}
		return err
	}
	s.Wrap = func(peer *conntest.Fake) conn.Conn { return scene.SlowConn{Conn: peer.Conn()} }
	c, peer := s.Ready(&o)
	return c, peer
}

// Promise 8: there is no probe, and no verdict on a silent peer, while Shutdown says goodbye.
func TestShutdownIsNotDisturbedByProbes(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		c, peer := s.Ready(nil)
		peer.Hold()
		go c.Write(t.Context(), scene.Text("x"))
		time.Sleep(9 * time.Second)
		peer.Mute()
		time.AfterFunc(4*time.Second, peer.Release)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.ErrorIs(t, c.Shutdown(ctx), context.DeadlineExceeded, "because of the mute peer, and of nothing else")
		require.Zero(t, peer.Pings())
		require.Equal(t, 14*time.Second, s.Now())
	})
}

// A callback of a timer that ends its goroutine ends the session.
func TestATimersCallbackThatDoesNotReturnEndsTheSession(t *testing.T) {
	for name, set := range map[string]func(o *reconnect.Options, exit func()){
		"Liveness.Probe": func(o *reconnect.Options, exit func()) {
			o.Liveness.Probe = func(context.Context, func(conn.Message) error) error { exit(); return nil }
		},
		"Stall.Expected": func(o *reconnect.Options, exit func()) {
			o.Stall = reconnect.Stall{Limit: 80 * time.Second, Expected: func(time.Time) bool { exit(); return true }}
		},
		"Trace.ProbeStart": func(o *reconnect.Options, exit func()) {
			o.Run.Trace = &reconnect.Trace{ProbeStart: func(reconnect.ProbeStart) { exit() }}
		},
		"Trace.ProbeDone": func(o *reconnect.Options, exit func()) {
			o.Run.Trace = &reconnect.Trace{ProbeDone: func(reconnect.ProbeDone) { exit() }}
		},
		"Trace.SlowHandler": func(o *reconnect.Options, exit func()) {
			o.OnMessage = func(context.Context, reconnect.Message) { time.Sleep(time.Minute) }
			o.Run.Trace = &reconnect.Trace{SlowHandler: func(reconnect.SlowHandler) { exit() }}
		},
		"Trace.Overdue": func(o *reconnect.Options, exit func()) { // the full inbox is not read
			o.Inbox.Messages = 1
			o.Run.Trace = &reconnect.Trace{Overdue: func(reconnect.Overdue) { exit() }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				s.Fake.Pings = true
				o := scene.WithPolicy(scene.Every(time.Hour))
				var exits atomic.Bool
				set(&o, func() {
					if exits.Load() {
						runtime.Goexit()
					}
				})
				c, peer := s.Settled(&o)
				exits.Store(true)
				peer.Deliver(scene.Text("a"), scene.Text("b"))
				require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
				require.ErrorContains(t, c.Status().Err, name+": the function did not return")
			})
		})
	}
}

// The timer is late when the process or the page was stopped, here by a hook that takes an hour.
func TestAProbeAfterALateTimerHasTimeForItsAnswer(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = conntest.FakeOptions{Transport: true}
		o := scene.WithPolicy(scene.Every(time.Hour))
		var once sync.Once
		o.Run.Trace = &reconnect.Trace{ProbeStart: func(reconnect.ProbeStart) {
			once.Do(func() { time.Sleep(time.Hour) })
		}}
		o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error {
			return write(scene.Text("?"))
		}
		c, peer := s.Ready(&o)
		time.Sleep(time.Hour + 19*time.Second)
		synctest.Wait()
		require.Equal(t, []conn.Message{scene.Text("?")}, peer.Written())
		require.Equal(t, reconnect.StateReady, c.State())
		scene.Deliver(peer, 1, 1)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, peer.Written(), 2, "it is probed again a third of the limit after that")
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, time.Hour+49*time.Second, s.Now())
		require.Len(t, peer.Written(), 3)
	})
}
