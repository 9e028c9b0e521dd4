package reconnect_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// Promise 8: 30 s at the defaults, and two probes.
func TestASilentPeerIsDeadAfterTheLimit(t *testing.T) {
	for _, fake := range []conntest.FakeOptions{alive, {Pings: true}} {
		inEachForm(t, func(t *testing.T, s *scene) {
			s.fake = fake
			o := withPolicy(every(time.Hour))
			c, peer := s.ready(&o)
			peer.Mute()
			require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
			require.Equal(t, 30*time.Second, s.now())
			require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
			require.Equal(t, 2, peer.Pings())
			require.Equal(t, uint64(2), c.Stats().Probes)
		})
	}
}

// Promise 8: a hook that holds the watch up for longer than the limit costs the peer no probe.
func TestASilentPeerIsProbedTwiceHoweverLateItIs(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		o := withPolicy(every(time.Hour))
		slow := 15 * time.Second
		o.Run.Trace = &reconnect.Trace{ProbeDone: func(reconnect.ProbeDone) { time.Sleep(slow); slow = 0 }}
		c, peer := s.ready(&o)
		peer.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.Equal(t, uint64(2), c.Stats().Probes)
		require.Equal(t, 45*time.Second, s.now(), "10 s of silence, two probes of 10 s, and the hook")
	})
}

// Promise 8: a peer that answers lives, at one ping for each third of the limit.
func TestNegativeLimitAndProbeEveryProbeNothing(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		o := withPolicy(every(time.Hour))
		o.Liveness = reconnect.Liveness{Limit: -1, ProbeEvery: -1}
		c, peer := s.ready(&o)
		time.Sleep(10 * time.Hour)
		require.Zero(t, peer.Pings())
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

func TestAPeerThatAnswersPingsLives(t *testing.T) {
	for _, fake := range []conntest.FakeOptions{alive, {Pings: true}} {
		inEachForm(t, func(t *testing.T, s *scene) {
			s.fake = fake
			c, peer := s.ready(nil)
			time.Sleep(time.Hour + time.Second)
			require.Equal(t, reconnect.StateReady, c.State())
			require.Equal(t, 360, peer.Pings())
		})
	}
}

// Promise 8: any byte is life, so a peer that talks is not pinged.
func TestAnyByteIsLife(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c, peer := s.ready(nil)
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
			inEachForm(t, func(t *testing.T, s *scene) {
				s.fake = conntest.FakeOptions{Pings: true}
				c, peer := s.ready(o)
				peer.Mute()
				for range 20 {
					time.Sleep(9 * time.Second)
					deliver(peer, 1, 1)
				}
				require.Equal(t, reconnect.StateReady, c.State())
				require.Zero(t, peer.Pings())
			})
		})
	}
}

// Promise 8: one answer between two probes starts the count again.
func TestALateAnswerIsAnAnswer(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c, peer := s.ready(nil)
		peer.Mute()
		for i := range 10 {
			time.Sleep(29 * time.Second)
			require.Equal(t, 2*(i+1), peer.Pings())
			peer.Hear()
		}
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 320*time.Second, s.now())
	})
}

// Without a way to probe, silence is no reason to cut.
func TestSilenceAloneIsNoVerdict(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, _ := s.ready(nil)
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

func TestLivenessCanBeSwitchedOff(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c, peer := s.ready(&reconnect.Options{Liveness: reconnect.Liveness{Limit: -1}})
		peer.Mute()
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State())
		require.Zero(t, c.Stats().Probes)
	})
}

// Promise 8, at the defaults: the peer has left without a close frame or a FIN.
func TestAHalfOpenConnectionIsNoticedAfterThirtySeconds(t *testing.T) {
	inEachWSForm(t, nil, func(t *testing.T, server *wsServer) {
		o := withPolicy(every(time.Hour))
		c := server.ready(t, &o)
		time.Sleep(time.Hour)
		wantNothing(t, c) // the server is silent, but answers pings
		require.NoError(t, c.Write(t.Context(), text("the last byte")))
		synctest.Wait()
		for _, p := range server.network.Conns(wsAddr) {
			p.Stall(conntest.Both)
		}
		stalled := server.now()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, stalled+30*time.Second, server.now())
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
	})
}

// Promise 8: any byte is a sign of life. This server answers no ping, and its message comes at
// one byte in 15 s.
func TestAServerThatSendsIsAliveWithoutPongs(t *testing.T) {
	inEachWSForm(t, conntest.NeverRead, func(t *testing.T, server *wsServer) {
		server.dialer.Conn.MessageTimeout = -1
		c := server.ready(t, nil)
		message := conntest.Frame{Head: conntest.Fin | conntest.TextFrame, Payload: []byte("at last")}.Bytes()
		for i := range message {
			time.Sleep(15 * time.Second)
			server.pipe(t).Inject(conntest.ToClient, message[i:i+1])
		}
		synctest.Wait()
		require.NotZero(t, c.Stats().Probes)
		wantMessage(t, c, server.session, "at last")
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, time.Duration(len(message))*15*time.Second+30*time.Second, server.now())
	})
}

// Promise 8: any byte is a sign of life, also one of half a line.
func TestAFramedPeerThatTricklesLives(t *testing.T) {
	inEachFramedForm(t, conn.Lines{}, func(t *testing.T, server *framedServer) {
		server.dialer.Conn.MessageTimeout = -1
		o := withPolicy(every(time.Hour))
		o.Liveness.Probe = func(context.Context, func(conn.Message) error) error { return nil }
		c, peer := server.ready(t, &o)
		for _, piece := range strings.SplitAfter("a long line\n", "") {
			time.Sleep(25 * time.Second)
			peer.say(t, piece)
		}
		wantMessage(t, c, server.session, "a long line")
	})
}

// A server that pings without end and never reads is cut, because our pongs get stuck.
func TestAFloodOfPingsIsNoWayToHoldAConnection(t *testing.T) {
	ping := conntest.Frame{Head: conntest.Fin | 0x9, Payload: make([]byte, 125)}
	inEachWSForm(t, conntest.NeverRead, func(t *testing.T, server *wsServer) {
		o := withPolicy(every(time.Hour))
		c := server.ready(t, &o)
		flooded := server.pipe(t).Server()
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
		require.Less(t, server.now(), 11*time.Second) // WriteTimeout after the window is full
		<-stopped
	})
}

// Promise 8: there is no verdict while the inbox is full, and the silence before does not count
// when the application reads again.
func TestNoVerdictWhileTheApplicationDoesNotRead(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		o := withPolicy(every(time.Hour))
		o.Inbox.Messages = 1
		c, peer := s.settled(&o)
		peer.Mute()
		deliver(peer, 1, 3)
		time.Sleep(time.Hour + 5*time.Second)
		require.Equal(t, reconnect.StateReady, c.State())
		for range 3 {
			_, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
		}
		resumed := s.now()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.GreaterOrEqual(t, s.now()-resumed, 20*time.Second)
		require.LessOrEqual(t, s.now()-resumed, 30*time.Second)
	})
}

// Promise 8: SlowHandler reports a slow call of OnMessage once. It costs neither the connection
// nor a message.
func TestASlowHandlerIsReported(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		var seen, slow notes
		o := withPolicy(every(time.Hour))
		o.OnMessage = func(_ context.Context, m reconnect.Message) {
			seen.add(string(m.Data))
			if string(m.Data) != "3" {
				time.Sleep(time.Minute)
			}
		}
		o.Run.Trace = &reconnect.Trace{SlowHandler: func(h reconnect.SlowHandler) {
			slow.add(fmt.Sprint(h.Session, h.Since))
		}}
		c, peer := s.settled(&o)
		deliver(peer, 1, 3)
		report := fmt.Sprint(s.session, " 10s")
		time.Sleep(59 * time.Second)
		require.Equal(t, []string{report}, slow.all())
		time.Sleep(time.Minute)
		require.Equal(t, []string{report, report}, slow.all())
		time.Sleep(time.Hour)
		require.Equal(t, []string{"1", "2", "3"}, seen.all())
		require.Equal(t, reconnect.StateReady, c.State())
		require.Len(t, slow.all(), 2)
	})
}

// Promise 8: while OnMessage works, nothing is read ahead, though each look of the timer finds
// it at work.
func TestAHandlerThatIsQuickEnoughReadsItself(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		var c *reconnect.Conn
		handled := uint64(0)
		c, peer := s.settled(&reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {
			handled++
			time.Sleep(9 * time.Second)
			require.Equal(t, handled, c.Stats().Received, "the Conn does not read ahead")
		}})
		deliver(peer, 1, 20)
		time.Sleep(200 * time.Second)
		synctest.Wait()
		require.Equal(t, uint64(20), handled)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Promise 8: a slow reader is not cut, but Overdue reports a reader that does not read at all.
func TestAReaderThatDoesNotReadIsReported(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		var late notes
		o := reconnect.Options{Inbox: reconnect.Inbox{Messages: 2}}
		o.Run.Trace = &reconnect.Trace{
			Overdue: func(o reconnect.Overdue) { late.add(fmt.Sprint(o.What, " ", o.Since, " at ", s.now())) },
		}
		c, peer := s.settled(&o)
		deliver(peer, 1, 9)
		for range 6 { // slow, but it reads
			time.Sleep(21 * time.Second)
			_, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
		}
		require.Empty(t, late.all())
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"reader 30s at 2m40s", "reader 1m0s at 3m10s"}, late.all())
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
			inEachForm(t, func(t *testing.T, s *scene) {
				s.fake = fake
				o := withPolicy(every(time.Hour))
				c, peer := s.ready(&o)
				deliver(peer, 1, 99)
				time.Sleep(time.Hour)
				require.Equal(t, reconnect.StateReady, c.State(), "a slow reader is not cut")
				peer.HangUp()
				require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
				require.ErrorIs(t, c.Status().Err, io.EOF)
				require.LessOrEqual(t, s.now(), time.Hour+10*time.Second)
			})
		})
	}
}

func TestAHangUpIsNoticedWhenNobodyHasReadForTheLimit(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		o := withPolicy(every(time.Hour))
		c, peer := s.settled(&o)
		deliver(peer, 1, 99)
		peer.HangUp()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 40*time.Second, s.now()) // the first look is after 10 s
	})
}

// suspended returns a Conn whose machine was suspended when a message came after 5 s: the wall
// clock goes on, and the timers do not.
func suspended(s *scene) (*reconnect.Conn, *conntest.Fake) {
	s.fake = alive
	var slept atomic.Int64
	o := withPolicy(every(time.Hour))
	reconnect.SetWallClock(&o, func() time.Time { return time.Now().Add(time.Duration(slept.Load())) })
	c, peer := s.ready(&o)
	time.Sleep(5 * time.Second)
	peer.Hear()
	slept.Store(int64(8 * time.Hour))
	return c, peer
}

// Promise 8: the first look after the machine wakes up probes the peer.
func TestASuspendedMachineProbesAtOnce(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, peer := suspended(s)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, peer.Pings(), "though it was heard of 5 s ago by the clock that stood still")
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State(), "it has answered")
	})
}

// Promise 8: after the machine wakes up, the peer has another third of the limit to answer.
func TestASuspendedMachineFindsOutThatItsPeerIsDead(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, peer := suspended(s)
		peer.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.Equal(t, 20*time.Second, s.now())
	})
}

// Promise 8: a suspension never makes the verdict later than it would be without one.
func TestASuspendedMachineJudgesNoLaterThanOneThatWasNot(t *testing.T) {
	for _, awake := range []time.Duration{1, 9, 11, 19, 21, 29} {
		inEachForm(t, func(t *testing.T, s *scene) {
			s.fake = alive
			var slept atomic.Int64
			o := withPolicy(every(time.Hour))
			reconnect.SetWallClock(&o, func() time.Time { return time.Now().Add(time.Duration(slept.Load())) })
			c, peer := s.ready(&o)
			peer.Mute()
			time.AfterFunc(awake*time.Second, func() { slept.Store(int64(time.Hour)) })
			require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
			require.LessOrEqual(t, s.now(), 30*time.Second)
		})
	}
}

// A wall clock that is set back does not look like a suspension.
func TestAClockThatIsSetBackChangesNothing(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		back := time.Duration(0)
		o := withPolicy(every(time.Hour))
		reconnect.SetWallClock(&o, func() time.Time { back -= time.Hour; return time.Now().Add(back) })
		c, peer := s.ready(&o)
		peer.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 30*time.Second, s.now())
	})
}
