package live_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// A change of the network need not concern the connection.
func TestCheckLeavesAConnectionThatIsAlive(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		c, peer := s.Ready(nil)
		time.Sleep(time.Second)
		c.Check()
		synctest.Wait()
		require.Equal(t, 1, peer.Pings())
		time.Sleep(8 * time.Second)
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, 1, peer.Pings())
	})
}

// An answer is a sign of life, though it comes in the instant of the byte before it.
func TestCheckSeesAnAnswerThatComesAtOnce(t *testing.T) {
	for name, check := range map[string]func(c *reconnect.Conn, peer *conntest.Fake){
		"after the session is ready": func(c *reconnect.Conn, _ *conntest.Fake) { c.Check() },
		"after a message": func(c *reconnect.Conn, peer *conntest.Fake) {
			time.Sleep(time.Second)
			scene.Deliver(peer, 1, 1)
			c.Check()
		},
	} {
		for kind, fake := range map[string]conntest.FakeOptions{"a ping": scene.Alive, "Probe": {Transport: true}} {
			t.Run(kind+" "+name, func(t *testing.T) {
				scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
					s.Fake = fake
					var peer *conntest.Fake
					var o reconnect.Options
					if !fake.Pings {
						o.Liveness.Probe = func(context.Context, func(conn.Message) error) error { peer.Hear(); return nil }
					}
					c, opened := s.Ready(&o)
					peer = opened
					check(c, peer)
					time.Sleep(9 * time.Second)
					require.Equal(t, uint64(1), c.Stats().Probes)
					require.Equal(t, reconnect.StateReady, c.State(), "%v", c.Status().Err)
				})
			})
		}
	}
}

// A Check during the probe of another asks for nothing, if the peer is heard before that probe ends.
func TestCheckIsAnsweredByWhatComesDuringTheProbeOfAnother(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		c, peer := s.Ready(nil)
		peer.Mute() // it answers no ping
		for range 2 {
			time.Sleep(time.Second)
			c.Check()
		}
		time.Sleep(time.Second)
		scene.Deliver(peer, 1, 1)
		time.Sleep(9 * time.Second)
		require.Equal(t, uint64(1), c.Stats().Probes)
		require.Equal(t, reconnect.StateReady, c.State(), "%v", c.Status().Err)
	})
}

// With a short limit a Check takes a third of that, and not 5 s.
func TestCheckOfAShortLimitIsShort(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.Limit = 3 * time.Second
		c, peer := s.Ready(&o)
		peer.Mute()
		time.Sleep(500 * time.Millisecond)
		c.Check()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 1500*time.Millisecond, s.Now())
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
	})
}

func TestCheckCutsASilentConnectionSoon(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, peer := s.Ready(&o)
		peer.Mute()
		time.Sleep(2 * time.Second)
		c.Check()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 7*time.Second, s.Now())
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
	})
}

// The usual case: the network went some seconds ago, so that a probe is under way.
func TestCheckDoesNotWaitForTheProbeUnderWay(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, peer := s.Ready(&o)
		peer.Mute()
		time.Sleep(11 * time.Second)
		require.Equal(t, 1, peer.Pings(), "the probe at 10 s")
		c.Check()
		synctest.Wait()
		require.Equal(t, 2, peer.Pings())
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 16*time.Second, s.Now())
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
	})
}

// Nor is it probed more often, or cut though it answers, if the caller is impatient.
func TestChecksDoNotCancelTheProbeOfAnother(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = conntest.FakeOptions{Pings: true} // only the answer is a sign of life
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, peer := s.Ready(&o)
		peer.PongAfter(300 * time.Millisecond)
		for range 50 { // 10 s
			c.Check()
			time.Sleep(200 * time.Millisecond)
		}
		require.Equal(t, reconnect.StateReady, c.State())
		require.LessOrEqual(t, peer.Pings(), 34)
	})
}

// A caller that is anxious does not give the peer more time.
func TestAnotherCheckDoesNotExtendTheTime(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.Limit = time.Hour
		o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error {
			return write(scene.Text("?")) // does not wait
		}
		c, _ := s.Ready(&o)
		time.Sleep(time.Second) // for the answer before may come in the same millisecond
		for range 9 {
			c.Check()
			time.Sleep(time.Second)
		}
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
	})
}

// A sign of life is as good as the answer to the probe.
func TestAByteAfterACheckIsLife(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		c, peer := s.Ready(nil)
		peer.Mute()
		time.Sleep(2 * time.Second)
		c.Check()
		time.Sleep(4 * time.Second)
		peer.Hear()
		time.Sleep(2 * time.Second)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// While nobody reads, no answer can be seen, so that the check comes to nothing.
func TestCheckDoesNotCutWhileNobodyReads(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		release := make(chan struct{})
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.OnMessage = func(context.Context, reconnect.Message) { <-release }
		c, peer := s.Settled(&o)
		peer.Mute()
		scene.Deliver(peer, 1, 1)
		c.Check()
		time.Sleep(time.Minute)
		require.Equal(t, reconnect.StateReady, c.State())
		close(release)
	})
}

func TestCheckWithoutASessionDoesNothing(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		c, d := s.Down(nil)
		c.Check()
		d.Accept()
		c.Check() // a connection that cannot be probed, and has no address
		time.Sleep(time.Minute)
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, s.Session, c.Status().Session)
	})
}

func TestCheckCutsAConnectionWhoseAddressIsGone(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, d := s.Down(&o)
		s.Wrap = func(peer *conntest.Fake) conn.Conn { return scene.Moved(peer.Conn()) }
		d.Accept()
		c.Check()
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.Equal(t, backoff.ReasonLocal, scene.WantSeam(t, c).Reason)
	})
}

// A slow hook takes nothing of the time that the peer has.
func TestTheTimeForTheAnswerBeginsAfterProbeStart(t *testing.T) {
	for name, answers := range map[string]bool{"the peer answers": true, "the peer is silent": false} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				s.Fake = conntest.FakeOptions{Transport: true}
				o := scene.WithPolicy(scene.Every(time.Hour))
				o.Liveness.Limit = time.Hour
				o.Run.Trace = &reconnect.Trace{ProbeStart: func(reconnect.ProbeStart) { time.Sleep(7 * time.Second) }}
				var peer *conntest.Fake
				o.Liveness.Probe = func(context.Context, func(conn.Message) error) error {
					if answers {
						time.AfterFunc(time.Second, peer.Hear)
					}
					return nil
				}
				c, opened := s.Ready(&o)
				peer = opened
				time.Sleep(time.Second) // for what was heard in the same millisecond may be the answer
				c.Check()
				time.Sleep(12*time.Second - time.Nanosecond)
				require.Equal(t, reconnect.StateReady, c.State())
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				require.Equal(t, answers, c.State() == reconnect.StateReady, "%v", c.Status().Err)
			})
		})
	}
}

// The network may change while SessionReady runs: the session is ready, and is asked when that hook has returned.
func TestCheckInSessionReadyIsNotForgotten(t *testing.T) {
	asItIs := func(c conn.Conn) conn.Conn { return c }
	gone := func(c conn.Conn) conn.Conn { return scene.Moved(c) }
	goneAndQuiet := func(c conn.Conn) conn.Conn { return scene.Moved(c).Quiet() }
	for name, test := range map[string]struct {
		limit time.Duration
		conn  func(conn.Conn) conn.Conn
		cut   time.Duration // after the hook
		why   backoff.Reason
	}{
		"a silent peer":                    {0, asItIs, 5 * time.Second, backoff.ReasonSilent},
		"a silent peer, without a limit":   {-1, asItIs, 5 * time.Second, backoff.ReasonSilent},
		"an address that is gone":          {0, gone, 0, backoff.ReasonLocal},
		"such an address, without a probe": {0, goneAndQuiet, 0, backoff.ReasonLocal},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				s.Fake = scene.Alive
				o := scene.WithPolicy(scene.Every(time.Hour))
				o.Liveness.Limit = test.limit
				o.Run.Trace = &reconnect.Trace{SessionReady: func(session *reconnect.Session) {
					if session.Number == s.Session {
						time.Sleep(time.Second)
					}
				}}
				c, d := s.Down(&o)
				s.Wrap = func(peer *conntest.Fake) conn.Conn { return test.conn(peer.Conn()) }
				d.Accept().Mute()
				time.Sleep(500 * time.Millisecond)
				c.Check()
				require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
				require.Equal(t, time.Second+test.cut, s.Now())
				require.Equal(t, test.why, scene.WantSeam(t, c).Reason)
			})
		})
	}
}

// Some servers want a ping every so often, whatever else comes.
func TestAProbeThatIsDueComesThoughThePeerTalks(t *testing.T) {
	for name, limit := range map[string]time.Duration{"with a limit": 0, "without": -1} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				s.Fake = scene.Alive
				o := scene.WithPolicy(scene.Every(time.Hour))
				o.Liveness.ProbeEvery, o.Liveness.Limit = 20*time.Second, limit
				c, peer := s.Ready(&o)
				for range 100 {
					time.Sleep(time.Second)
					peer.Hear()
				}
				synctest.Wait()
				require.Equal(t, 5, peer.Pings())
				require.Equal(t, reconnect.StateReady, c.State())
			})
		})
	}
}

// Without a limit a peer that does not answer lives on.
func TestAPeerWithoutALimitIsProbedAndNotCut(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.ProbeEvery, o.Liveness.Limit = 20*time.Second, -1
		c, peer := s.Ready(&o)
		peer.Mute()
		time.Sleep(10*time.Minute + time.Second)
		require.Equal(t, reconnect.StateReady, c.State())
		require.Equal(t, 30, peer.Pings())
	})
}

// Check does not need a limit on silence.
func TestCheckWithoutALimitLeavesAConnectionThatIsAlive(t *testing.T) {
	for _, kind := range []conntest.FakeOptions{scene.Alive, {Pings: true}} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			s.Fake = kind
			o := scene.WithPolicy(scene.Every(time.Hour))
			o.Liveness.Limit = -1
			c, peer := s.Ready(&o)
			peer.PongAfter(time.Second)
			time.Sleep(time.Minute)
			c.Check()
			time.Sleep(time.Minute)
			require.Equal(t, reconnect.StateReady, c.State())
			require.Equal(t, 1, peer.Pings())
			peer.Mute()
			c.Check()
			require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
			require.Equal(t, 2*time.Minute+5*time.Second, s.Now())
			require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		})
	}
}

// The server wants its pings though the application is slow, and there is no verdict meanwhile.
func TestEveryIsKeptWhileNobodyReads(t *testing.T) {
	for _, limit := range []time.Duration{-1, 30 * time.Second} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			s.Fake = scene.Alive
			overdue := 0
			o := scene.WithPolicy(scene.Every(time.Hour))
			o.Liveness = reconnect.Liveness{Limit: limit, ProbeEvery: 10 * time.Second}
			o.Inbox.Messages = 1
			o.Run.Trace = &reconnect.Trace{Overdue: func(reconnect.Overdue) { overdue++ }}
			c, peer := s.Settled(&o)
			scene.Deliver(peer, 1, 3)
			time.Sleep(time.Minute + time.Second)
			require.Equal(t, 6, peer.Pings())
			require.Equal(t, reconnect.StateReady, c.State())
			require.Equal(t, limit > 0, overdue > 0)
		})
	}
}

// The race detector shows a second tick that runs beside the first.
func TestChecksDoNotProbeAtOnce(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		running, most := 0, 0
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.Probe = func(ctx context.Context, _ func(conn.Message) error) error {
			running++
			most = max(most, running)
			<-ctx.Done()
			running--
			return nil
		}
		c, _ := s.Ready(&o)
		for range 3 {
			c.Check()
			time.Sleep(time.Second)
		}
		synctest.Wait()
		require.Equal(t, 1, most)
	})
}

// A program may check as soon as it learns that the session is ready.
func TestCheckMayComeAtOnce(t *testing.T) {
	for range 10 {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			s.Fake = scene.Alive
			c, d := s.Down(nil)
			checking := make(chan struct{})
			go func() {
				defer close(checking)
				for c.State() != reconnect.StateReady {
					runtime.Gosched()
				}
				c.Check()
			}()
			d.Accept()
			<-checking
			synctest.Wait()
			require.Equal(t, reconnect.StateReady, c.State())
		})
	}
}
