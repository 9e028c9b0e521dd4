package live_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 8: 30 s at the defaults, and two probes.
func TestASilentPeerIsDeadAfterTheLimit(t *testing.T) {
	for _, fake := range []conntest.FakeOptions{scene.Alive, {Pings: true}} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			s.Fake = fake
			o := scene.WithPolicy(scene.Every(time.Hour))
			c, peer := s.Ready(&o)
			peer.Mute()
			require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
			require.Equal(t, 30*time.Second, s.Now())
			require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
			require.Equal(t, 2, peer.Pings())
			require.Equal(t, uint64(2), c.Stats().Probes)
		})
	}
}

// Promise 8: a hook that holds the watch up for longer than the limit costs the peer no probe.
func TestASilentPeerIsProbedTwiceHoweverLateItIs(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Hour))
		slow := 15 * time.Second
		o.Run.Trace = &reconnect.Trace{ProbeDone: func(reconnect.ProbeDone) { time.Sleep(slow); slow = 0 }}
		c, peer := s.Ready(&o)
		peer.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.Equal(t, uint64(2), c.Stats().Probes)
		require.Equal(t, 45*time.Second, s.Now(), "10 s of silence, two probes of 10 s, and the hook")
	})
}

// Promise 8: a peer that answers lives, at one ping for each third of the limit.
func TestNegativeLimitAndProbeEveryProbeNothing(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness = reconnect.Liveness{Limit: -1, ProbeEvery: -1}
		c, peer := s.Ready(&o)
		time.Sleep(10 * time.Hour)
		require.Zero(t, peer.Pings())
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

func TestAPeerThatAnswersPingsLives(t *testing.T) {
	for _, fake := range []conntest.FakeOptions{scene.Alive, {Pings: true}} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			s.Fake = fake
			c, peer := s.Ready(nil)
			time.Sleep(time.Hour + time.Second)
			require.Equal(t, reconnect.StateReady, c.State())
			require.Equal(t, 360, peer.Pings())
		})
	}
}

// Promise 8: any byte is life, so a peer that talks is not pinged.
func TestAnyByteIsLife(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		c, peer := s.Ready(nil)
		peer.Mute()
		for range 100 {
			time.Sleep(9 * time.Second)
			peer.Hear() // half a message, say
		}
		require.Equal(t, reconnect.StateReady, c.State())
		require.Zero(t, peer.Pings())
	})
}

// Promise 8: on a connection that does not report bytes, a message is a sign of life.
func TestAMessageIsLife(t *testing.T) {
	for name, o := range map[string]*reconnect.Options{
		"push":    {OnMessage: func(context.Context, reconnect.Message) {}},
		"pull":    {Inbox: reconnect.Inbox{Overflow: reconnect.InboxDropOldest}},
		"discard": {Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard}},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				s.Fake = conntest.FakeOptions{Pings: true}
				c, peer := s.Ready(o)
				peer.Mute()
				for range 20 {
					time.Sleep(9 * time.Second)
					scene.Deliver(peer, 1, 1)
				}
				require.Equal(t, reconnect.StateReady, c.State())
				require.Zero(t, peer.Pings())
			})
		})
	}
}

// Promise 8: one answer between two probes starts the count again.
func TestALateAnswerIsAnAnswer(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		c, peer := s.Ready(nil)
		peer.Mute()
		for i := range 10 {
			time.Sleep(29 * time.Second)
			require.Equal(t, 2*(i+1), peer.Pings())
			peer.Hear()
		}
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 320*time.Second, s.Now())
	})
}

// Without a way to probe, silence is no reason to cut.
func TestSilenceAloneIsNoVerdict(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		c, _ := s.Ready(nil)
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

func TestLivenessCanBeSwitchedOff(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		c, peer := s.Ready(&reconnect.Options{Liveness: reconnect.Liveness{Limit: -1}})
		peer.Mute()
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State())
		require.Zero(t, c.Stats().Probes)
	})
}

// Promise 8, at the defaults: the peer has left without a close frame or a FIN.
func TestAHalfOpenConnectionIsNoticedAfterThirtySeconds(t *testing.T) {
	scene.InEachWSForm(t, nil, func(t *testing.T, server *scene.WSServer) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		c := server.Ready(t, &o)
		time.Sleep(time.Hour)
		scene.WantNothing(t, c) // the server is silent, but answers pings
		require.NoError(t, c.Write(t.Context(), scene.Text("the last byte")))
		synctest.Wait()
		for _, p := range server.Network.Conns(scene.WSAddr) {
			p.Stall(conntest.Both)
		}
		stalled := server.Now()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, stalled+30*time.Second, server.Now())
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
	})
}

// Promise 8: any byte is a sign of life. This server answers no ping, and its message comes at
// one byte in 15 s.
func TestAServerThatSendsIsAliveWithoutPongs(t *testing.T) {
	scene.InEachWSForm(t, conntest.NeverRead, func(t *testing.T, server *scene.WSServer) {
		server.Dialer.Conn.MessageTimeout = -1
		c := server.Ready(t, nil)
		message := conntest.Frame{Head: conntest.Fin | conntest.TextFrame, Payload: []byte("at last")}.Bytes()
		for i := range message {
			time.Sleep(15 * time.Second)
			server.Pipe(t).Inject(conntest.ToClient, message[i:i+1])
		}
		synctest.Wait()
		require.NotZero(t, c.Stats().Probes)
		scene.WantMessage(t, c, server.Session, "at last")
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, time.Duration(len(message))*15*time.Second+30*time.Second, server.Now())
	})
}

// Promise 8: any byte is a sign of life, also one of half a line.
func TestAFramedPeerThatTricklesLives(t *testing.T) {
	scene.InEachFramedForm(t, conn.Lines{}, func(t *testing.T, server *scene.FramedServer) {
		server.Dialer.Conn.MessageTimeout = -1
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Liveness.Probe = func(context.Context, func(conn.Message) error) error { return nil }
		c, peer := server.Ready(t, &o)
		for _, piece := range strings.SplitAfter("a long line\n", "") {
			time.Sleep(25 * time.Second)
			peer.Say(t, piece)
		}
		scene.WantMessage(t, c, server.Session, "a long line")
	})
}

// A server that pings without end and never reads is cut, because our pongs get stuck.
func TestAFloodOfPingsIsNoWayToHoldAConnection(t *testing.T) {
	ping := conntest.Frame{Head: conntest.Fin | 0x9, Payload: make([]byte, 125)}
	scene.InEachWSForm(t, conntest.NeverRead, func(t *testing.T, server *scene.WSServer) {
		o := scene.WithPolicy(scene.Every(time.Hour))
		c := server.Ready(t, &o)
		flooded := server.Pipe(t).Server()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				if _, err := flooded.Write(ping.Bytes()); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorAs(t, c.Status().Err, new(*conn.SlowMessageError))
		require.Less(t, server.Now(), 11*time.Second) // WriteTimeout after the window is full
		<-stopped
	})
}

// Promise 8: there is no verdict while the inbox is full, and the silence before does not count
// when the application reads again.
func TestNoVerdictWhileTheApplicationDoesNotRead(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.Inbox.Messages = 1
		c, peer := s.Settled(&o)
		peer.Mute()
		scene.Deliver(peer, 1, 3)
		time.Sleep(time.Hour + 5*time.Second)
		require.Equal(t, reconnect.StateReady, c.State())
		for range 3 {
			_, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
		}
		resumed := s.Now()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.GreaterOrEqual(t, s.Now()-resumed, 20*time.Second)
		require.LessOrEqual(t, s.Now()-resumed, 30*time.Second)
	})
}

// Promise 8: SlowHandler reports a slow call of OnMessage once. It costs neither the connection
// nor a message.
func TestASlowHandlerIsReported(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		var seen, slow scene.Notes
		o := scene.WithPolicy(scene.Every(time.Hour))
		o.OnMessage = func(_ context.Context, m reconnect.Message) {
			seen.Add(string(m.Data))
			if string(m.Data) != "3" {
				time.Sleep(time.Minute)
			}
		}
		o.Run.Trace = &reconnect.Trace{SlowHandler: func(h reconnect.SlowHandler) {
			slow.Add(fmt.Sprint(h.Session, h.Since))
		}}
		c, peer := s.Settled(&o)
		scene.Deliver(peer, 1, 3)
		report := fmt.Sprint(s.Session, " 10s")
		time.Sleep(59 * time.Second)
		require.Equal(t, []string{report}, slow.All())
		time.Sleep(time.Minute)
		require.Equal(t, []string{report, report}, slow.All())
		time.Sleep(time.Hour)
		require.Equal(t, []string{"1", "2", "3"}, seen.All())
		require.Equal(t, reconnect.StateReady, c.State())
		require.Len(t, slow.All(), 2)
	})
}

// Promise 8: while OnMessage works, nothing is read ahead, though each look of the timer finds
// it at work.
func TestAHandlerThatIsQuickEnoughReadsItself(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		var c *reconnect.Conn
		handled := uint64(0)
		c, peer := s.Settled(&reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {
			handled++
			time.Sleep(9 * time.Second)
			require.Equal(t, handled, c.Stats().Received, "the Conn does not read ahead")
		}})
		scene.Deliver(peer, 1, 20)
		time.Sleep(200 * time.Second)
		synctest.Wait()
		require.Equal(t, uint64(20), handled)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Promise 8: a slow reader is not cut, but Overdue reports a reader that does not read at all.
func TestAReaderThatDoesNotReadIsReported(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		var late scene.Notes
		o := reconnect.Options{Inbox: reconnect.Inbox{Messages: 2}}
		o.Run.Trace = &reconnect.Trace{
			Overdue: func(o reconnect.Overdue) { late.Add(fmt.Sprint(o.What, " ", o.Since, " at ", s.Now())) },
		}
		c, peer := s.Settled(&o)
		scene.Deliver(peer, 1, 9)
		for range 6 { // slow, but it reads
			time.Sleep(21 * time.Second)
			_, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
		}
		require.Empty(t, late.All())
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"reader 30s at 2m40s", "reader 1m0s at 3m10s"}, late.All())
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Promise 8: a program that only writes learns that its peer has hung up, though the end of the
// stream is behind messages that nobody reads. It holds with and without a way to probe.
func TestAHangUpBehindAFullInboxIsNoticed(t *testing.T) {
	for name, fake := range map[string]conntest.FakeOptions{
		"ping": {Pings: true, Transport: true}, "no ping": {Transport: true},
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				s.Fake = fake
				o := scene.WithPolicy(scene.Every(time.Hour))
				c, peer := s.Ready(&o)
				scene.Deliver(peer, 1, 99)
				time.Sleep(time.Hour)
				require.Equal(t, reconnect.StateReady, c.State(), "a slow reader is not cut")
				peer.HangUp()
				require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
				require.ErrorIs(t, c.Status().Err, io.EOF)
				require.LessOrEqual(t, s.Now(), time.Hour+10*time.Second)
			})
		})
	}
}

func TestAHangUpIsNoticedWhenNobodyHasReadForTheLimit(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		o := scene.WithPolicy(scene.Every(time.Hour))
		c, peer := s.Settled(&o)
		scene.Deliver(peer, 1, 99)
		peer.HangUp()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 40*time.Second, s.Now()) // the first look is after 10 s
	})
}
