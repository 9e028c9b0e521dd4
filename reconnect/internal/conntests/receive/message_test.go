package receive_test

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 5.
func TestTheReaderGetsOneSeamForEachLostConnection(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c := s.Open(&o)
		for session := uint64(1); session <= 3; session++ {
			peer := s.WantDial().Accept()
			peer.Deliver(scene.Text("a"), scene.Text("b"))
			synctest.Wait()
			peer.Fail(scene.ErrLost)
			scene.WantMessage(t, c, session, "a")
			scene.WantMessage(t, c, session, "b")
			seam := scene.WantSeam(t, c)
			require.Equal(t, session, seam.Session)
			require.ErrorIs(t, seam.Cause, scene.ErrLost)
			require.Equal(t, 1, seam.Lost)
			scene.WantNothing(t, c)
		}
	})
}

// Promise 5: the seam does not wait for the next connection.
func TestTheSeamIsThereAsSoonAsTheConnectionIsLost(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c := s.Open(nil)
		s.WantDial().Accept().Fail(scene.ErrLost)
		scene.WantSeam(t, c)
		require.Zero(t, s.Now())
	})
}

// Promise 5: an attempt that failed leaves no seam.
func TestAFailedAttemptLeavesNoSeam(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 1 {
				return scene.ErrLost
			}
			return nil
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		s.WantDial().Refuse(scene.ErrLost)
		s.WantDial().Accept()
		scene.WantNothing(t, c)
	})
}

// Promise 5: an attempt that failed leaves a seam if OnSession delivered something, because
// that is stale now.
func TestAnOpeningThatDeliveredLeavesASeam(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			op.Deliver(scene.Text("early"))
			return scene.ErrLost
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		scene.WantMessage(t, c, 1, "early")
		scene.WantSeam(t, c)
		scene.WantNothing(t, c)
		require.Equal(t, uint64(1), c.Stats().Lost)
	})
}

// Promise 5, with OnMessage and OnSeam.
func TestOnSeamComesBetweenTheMessagesOfTwoSessions(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var seen scene.Notes
		o := scene.WithPolicy(scene.Every(time.Second))
		o.OnMessage = func(_ context.Context, m reconnect.Message) { seen.Add(fmt.Sprint(m.Session, string(m.Data))) }
		o.OnSeam = func(_ context.Context, s *reconnect.Seam) { seen.Add(s.Error()) }
		s.Open(&o)
		for range 2 {
			peer := s.WantDial().Accept()
			peer.Deliver(scene.Text("a"), scene.Text("b"))
			synctest.Wait()
			peer.Fail(scene.ErrLost)
		}
		synctest.Wait()
		require.Equal(t,
			[]string{"1a", "1b", "session 1 ended: read: lost", "2a", "2b", "session 2 ended: read: lost"},
			seen.All())
	})
}

// A reader that checks an error for the end of the stream must not find it in a seam.
func TestASeamIsNotTheEnd(t *testing.T) {
	require.NotErrorIs(t, &reconnect.Seam{Cause: io.EOF}, io.EOF)
}

// Promise 5, over framed TCP.
func TestFramedSessionsAreApartByASeam(t *testing.T) {
	scene.WithFramedServer(t, conn.Lines{}, func(t *testing.T, server *scene.FramedServer) {
		o := scene.WithPolicy(scene.Every(time.Second))
		c := server.Open(t, &o)
		server.Next(t).Say(t, "one\ntwo\n")
		server.Network.ResetAll("")
		server.Next(t).Say(t, "three\n")
		scene.WantMessage(t, c, 1, "one")
		scene.WantMessage(t, c, 1, "two")
		require.ErrorIs(t, scene.WantSeam(t, c).Cause, syscall.ECONNRESET)
		scene.WantMessage(t, c, 2, "three")
		scene.WantNothing(t, c)
	})
}

// Promise 5: the streams of two connections are never joined. In each way to lose a connection,
// the next one begins with bytes that would complete the frame in which the last one was cut.
func TestAFrameIsNotCompletedByTheNextConnection(t *testing.T) {
	for name, lose := range map[string]func(c *scene.FramedPeer){
		"reset":   func(c *scene.FramedPeer) { c.Pipe.Reset() },
		"hang up": func(c *scene.FramedPeer) { c.Close() },
		"fin":     func(c *scene.FramedPeer) { c.Pipe.FIN(conntest.ToClient) },
		"stall":   func(c *scene.FramedPeer) { c.Pipe.Stall(conntest.Both) },
	} {
		t.Run(name, func(t *testing.T) {
			scene.WithFramedServer(t, conn.LengthPrefix{Size: 1}, func(t *testing.T, server *scene.FramedServer) {
				o := scene.WithPolicy(scene.Every(time.Second))
				c := server.Open(t, &o)
				first := server.Next(t)
				first.Say(t, "\x03one\x09half of")
				lose(first)
				server.Next(t).Say(t, "\x02it\x04next")
				scene.WantMessage(t, c, 1, "one")
				require.EqualValues(t, 1, scene.WantSeam(t, c).Session)
				scene.WantMessage(t, c, 2, "it")
				scene.WantMessage(t, c, 2, "next")
				scene.WantNothing(t, c)
			})
		})
	}
}
