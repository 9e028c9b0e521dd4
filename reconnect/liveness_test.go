package reconnect_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// Promise 8: 30 s at the defaults, and two probes.
func TestASilentPeerIsDeadAfterTheLimit(t *testing.T) {
	for _, fake := range []conntest.FakeOptions{alive, {Pings: true}} {
		inBubble(t, func(t *testing.T, s *scene) {
			s.fake = fake
			o := run(every(time.Hour))
			c := s.open(&o)
			peer := s.wantDial().accept()
			peer.Mute()
			require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
			require.Equal(t, 30*time.Second, s.now())
			require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
			require.Equal(t, 2, peer.Pings())
			require.Equal(t, uint64(2), c.Stats().Probes)
		})
	}
}

// Promise 8: a peer that answers lives, at one ping for each third of the limit.
func TestAPeerThatAnswersPingsLives(t *testing.T) {
	for _, fake := range []conntest.FakeOptions{alive, {Pings: true}} {
		inBubble(t, func(t *testing.T, s *scene) {
			s.fake = fake
			c := s.open(nil)
			peer := s.wantDial().accept()
			time.Sleep(time.Hour + time.Second)
			require.Equal(t, reconnect.StateReady, c.State())
			require.Equal(t, 360, peer.Pings())
		})
	}
}

// Promise 8: any byte is life, so a peer that talks is not pinged.
func TestAnyByteIsLife(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c := s.open(nil)
		peer := s.wantDial().accept()
		peer.Mute()
		for range 100 {
			time.Sleep(9 * time.Second)
			peer.Hear() // half a message, say
		}
		require.Equal(t, reconnect.StateReady, c.State())
		require.Zero(t, peer.Pings())
	})
}

// Promise 8: where bytes are not noted, messages are life.
func TestAMessageIsLife(t *testing.T) {
	for name, o := range map[string]*reconnect.Options{
		"push":    {OnMessage: func(context.Context, reconnect.Message) {}},
		"pull":    {Inbox: reconnect.Inbox{Overflow: reconnect.OverflowDropOldest}},
		"discard": {Inbox: reconnect.Inbox{Overflow: reconnect.OverflowDiscard}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				s.fake = conntest.FakeOptions{Pings: true}
				c := s.open(o)
				peer := s.wantDial().accept()
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

// Promise 8: one answer between two probes starts it all over.
func TestALateAnswerIsAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c := s.open(nil)
		peer := s.wantDial().accept()
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

// Without a way to ask there is no verdict.
func TestSilenceAloneIsNoVerdict(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().accept()
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

func TestLivenessCanBeSwitchedOff(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		c := s.open(&reconnect.Options{Liveness: reconnect.Liveness{Limit: -1}})
		s.wantDial().accept().Mute()
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State())
		require.Zero(t, c.Stats().Probes)
	})
}

// Promise 8: a connection whose peer has left without a word, at the defaults.
func TestAHalfOpenConnectionIsNoticedAfterThirtySeconds(t *testing.T) {
	inVenue(t, nil, func(t *testing.T, v *venue) {
		o := run(every(time.Hour))
		c := v.ready(t, &o)
		time.Sleep(time.Hour)
		wantNothing(t, c) // the venue is silent, but answers pings
		require.NoError(t, c.Write(t.Context(), text("the last byte")))
		synctest.Wait()
		v.network.StallAll(venueAddr)
		stalled := v.now()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, stalled+30*time.Second, v.now())
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
	})
}

// Promise 8: any byte is life. This server answers no ping, and its message
// comes at one byte in 15 s.
func TestAServerThatSendsIsAliveWithoutPongs(t *testing.T) {
	inVenue(t, conntest.NeverRead, func(t *testing.T, v *venue) {
		v.dialer.Conn.MessageTimeout = -1
		c := v.ready(t, nil)
		message := conntest.Frame{Head: conntest.Fin | conntest.TextFrame, Payload: []byte("at last")}.Bytes()
		for i := range message {
			time.Sleep(15 * time.Second)
			v.pipe(t).Inject(conntest.ToClient, message[i:i+1])
		}
		synctest.Wait()
		require.NotZero(t, c.Stats().Probes)
		wantMessage(t, c, 1, "at last")
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, time.Duration(len(message))*15*time.Second+30*time.Second, v.now())
	})
}

// Promise 8: any byte is life, half a line too.
func TestAFramedPeerThatTricklesLives(t *testing.T) {
	atDesk(t, conn.Lines{}, func(t *testing.T, d *desk) {
		d.dialer.Conn.MessageTimeout = -1
		o := run(every(time.Hour))
		o.Liveness.Probe = func(context.Context, func(conn.Message) error) error { return nil }
		c := d.open(t, &o)
		peer := d.next(t)
		for _, piece := range strings.SplitAfter("a long line\n", "") {
			time.Sleep(25 * time.Second)
			peer.say(t, piece)
		}
		wantMessage(t, c, 1, "a long line")
	})
}

// A server that pings without end and never reads: our answers get stuck.
func TestAFloodOfPingsIsNoWayToHoldAConnection(t *testing.T) {
	ping := conntest.Frame{Head: conntest.Fin | conntest.PingFrame, Payload: make([]byte, 125)}
	inVenue(t, nil, func(t *testing.T, v *venue) {
		v.Next(v.AcceptWith(func(ctx context.Context, _ *websocket.Conn, _ *http.Request) {
			for ctx.Err() == nil {
				if _, err := conntest.PipeOf(ctx).Server().Write(ping.Bytes()); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}))
		o := run(every(time.Hour))
		c := v.ready(t, &o)
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorAs(t, c.Status().Err, new(*conn.SlowMessageError))
		require.Less(t, v.now(), 11*time.Second) // WriteTimeout after the window is full
	})
}

// Promise 8: no verdict while the inbox is full, and none from before when it
// is read again.
func TestNoVerdictWhileTheApplicationDoesNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		o := run(every(time.Hour))
		o.Inbox.Messages = 1
		c := s.open(&o)
		peer := s.wantDial().accept()
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

// Promise 8: a handler that is slow is reported, once per call, and costs neither the
// connection nor a message.
func TestASlowHandlerIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		var seen, slow notes
		o := run(every(time.Hour))
		o.OnMessage = func(_ context.Context, m reconnect.Message) {
			seen.add(string(m.Data))
			if string(m.Data) != "3" {
				time.Sleep(time.Minute)
			}
		}
		o.Run.Trace = &reconnect.Trace{SlowHandler: func(h reconnect.SlowHandler) {
			slow.add(fmt.Sprint(h.Session, h.Since))
		}}
		c := s.open(&o)
		peer := s.wantDial().accept()
		deliver(peer, 1, 3)
		time.Sleep(59 * time.Second)
		require.Equal(t, []string{"1 10s"}, slow.all())
		time.Sleep(time.Minute)
		require.Equal(t, []string{"1 10s", "1 10s"}, slow.all())
		time.Sleep(time.Hour)
		require.Equal(t, []string{"1", "2", "3"}, seen.all())
		require.Equal(t, reconnect.StateReady, c.State())
		require.Len(t, slow.all(), 2)
	})
}

// Promise 8: a handler that is quick enough keeps its place at the connection,
// though each look of the timer finds it at work.
func TestAHandlerThatIsQuickEnoughReadsItself(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		var c *reconnect.Conn
		handled := uint64(0)
		c = s.open(&reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {
			handled++
			time.Sleep(9 * time.Second)
			require.Equal(t, handled, c.Stats().Received, "nobody reads ahead")
		}})
		peer := s.wantDial().accept()
		deliver(peer, 1, 20)
		time.Sleep(200 * time.Second)
		synctest.Wait()
		require.Equal(t, uint64(20), handled)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Promise 8: nobody is cut for reading slowly, but somebody hears of a reader that
// does not read at all.
func TestAReaderThatDoesNotReadIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		var late notes
		c := s.open(&reconnect.Options{Inbox: reconnect.Inbox{Messages: 2}, Run: reconnect.RunOptions{Trace: &reconnect.Trace{
			Overdue: func(o reconnect.Overdue) { late.add(fmt.Sprint(o.What, " ", o.Since, " at ", s.now())) },
		}}})
		deliver(s.wantDial().accept(), 1, 9)
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

// Promise 8: a program that only writes learns that its peer has hung up, which
// stands behind messages that nobody reads; with and without a way to probe.
func TestAHangUpBehindAFullInboxIsNoticed(t *testing.T) {
	for name, fake := range map[string]conntest.FakeOptions{
		"ping": {Pings: true, Idles: true, HangsUp: true}, "no ping": {HangsUp: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				s.fake = fake
				o := run(every(time.Hour))
				c := s.open(&o)
				peer := s.wantDial().accept()
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

// asleep is a Conn whose machine was suspended when a message came after 5 s: its
// wall clock goes on, its timers do not.
func asleep(s *scene) (*reconnect.Conn, *conntest.Fake) {
	s.fake = alive
	var slept atomic.Int64
	o := run(every(time.Hour))
	o.Liveness.Now = func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }
	c := s.open(&o)
	peer := s.wantDial().accept()
	time.Sleep(5 * time.Second)
	peer.Hear()
	slept.Store(int64(8 * time.Hour))
	return c, peer
}

// Promise 8: the peer is probed at the first look after the wake-up.
func TestASuspendedMachineProbesAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := asleep(s)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, peer.Pings(), "though it was heard of 5 s ago by the clock that stood still")
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State(), "it has answered")
	})
}

// Promise 8: and judged by its answer within another third of the limit.
func TestASuspendedMachineFindsOutThatItsPeerIsDead(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := asleep(s)
		peer.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.Equal(t, 20*time.Second, s.now())
	})
}

// Promise 8: no later than if nobody had noticed that the machine slept.
func TestASuspendedMachineJudgesNoLaterThanOneThatWasNot(t *testing.T) {
	for _, awake := range []time.Duration{1, 9, 11, 19, 21, 29} {
		inBubble(t, func(t *testing.T, s *scene) {
			s.fake = alive
			var slept atomic.Int64
			o := run(every(time.Hour))
			o.Liveness.Now = func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }
			c := s.open(&o)
			s.wantDial().accept().Mute()
			time.AfterFunc(awake*time.Second, func() { slept.Store(int64(time.Hour)) })
			require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
			require.LessOrEqual(t, s.now(), 30*time.Second)
		})
	}
}

// A wall clock that is set back is no sign of anything.
func TestAClockThatIsSetBackChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		back := time.Duration(0)
		o := run(every(time.Hour))
		o.Liveness.Now = func() time.Time { back -= time.Hour; return time.Now().Add(back) }
		c := s.open(&o)
		s.wantDial().accept().Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 30*time.Second, s.now())
	})
}
