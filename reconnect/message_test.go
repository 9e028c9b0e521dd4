package reconnect_test

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
)

// Promise 5.
func TestTheReaderGetsOneSeamForEachLostConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		c := s.open(&o)
		for session := uint64(1); session <= 3; session++ {
			peer := s.wantDial().accept()
			peer.Deliver(text("a"), text("b"))
			synctest.Wait()
			peer.Fail(errLost)
			wantMessage(t, c, session, "a")
			wantMessage(t, c, session, "b")
			seam := wantSeam(t, c)
			require.Equal(t, session, seam.Session)
			require.ErrorIs(t, seam.Cause, errLost)
			require.Equal(t, 1, seam.Lost)
			wantNothing(t, c)
		}
	})
}

// Promise 5: the seam does not wait for the next connection.
func TestTheSeamIsThereAsSoonAsTheConnectionIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		s.wantDial().accept().Fail(errLost)
		wantSeam(t, c)
		require.Zero(t, s.now())
	})
}

// Promise 5: an attempt that failed leaves no seam.
func TestAFailedAttemptLeavesNoSeam(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if op.Session == 1 {
				return errLost
			}
			return nil
		}
		c := s.open(&o)
		s.wantDial().accept()
		s.wantDial().refuse(errLost)
		s.wantDial().accept()
		wantNothing(t, c)
	})
}

// Promise 5: an attempt that failed leaves a seam if OnSession delivered something, because
// that is stale now.
func TestAnOpeningThatDeliveredLeavesASeam(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := withPolicy(every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			op.Deliver(text("early"))
			return errLost
		}
		c := s.open(&o)
		s.wantDial().accept()
		wantMessage(t, c, 1, "early")
		wantSeam(t, c)
		wantNothing(t, c)
		require.Equal(t, uint64(1), c.Stats().Lost)
	})
}

// Promise 5, with OnMessage and OnSeam.
func TestOnSeamComesBetweenTheMessagesOfTwoSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var seen notes
		o := withPolicy(every(time.Second))
		o.OnMessage = func(_ context.Context, m reconnect.Message) { seen.add(fmt.Sprint(m.Session, string(m.Data))) }
		o.OnSeam = func(_ context.Context, s *reconnect.Seam) { seen.add(s.Error()) }
		s.open(&o)
		for range 2 {
			peer := s.wantDial().accept()
			peer.Deliver(text("a"), text("b"))
			synctest.Wait()
			peer.Fail(errLost)
		}
		synctest.Wait()
		require.Equal(t, []string{"1a", "1b", "session 1 ended: read: lost", "2a", "2b", "session 2 ended: read: lost"}, seen.all())
	})
}

// A reader that checks an error for the end of the stream must not find it in a seam.
func TestASeamIsNotTheEnd(t *testing.T) {
	require.NotErrorIs(t, &reconnect.Seam{Cause: io.EOF}, io.EOF)
}

// Promise 5, over framed TCP.
func TestFramedSessionsAreApartByASeam(t *testing.T) {
	withFramedServer(t, conn.Lines{}, func(t *testing.T, server *framedServer) {
		o := withPolicy(every(time.Second))
		c := server.open(t, &o)
		server.next(t).say(t, "one\ntwo\n")
		server.network.ResetAll("")
		server.next(t).say(t, "three\n")
		wantMessage(t, c, 1, "one")
		wantMessage(t, c, 1, "two")
		require.ErrorIs(t, wantSeam(t, c).Cause, syscall.ECONNRESET)
		wantMessage(t, c, 2, "three")
		wantNothing(t, c)
	})
}

// Promise 5: the streams of two connections are never joined. In each way to lose a connection,
// the next one begins with bytes that would complete the frame in which the last one was cut.
func TestAFrameIsNotCompletedByTheNextConnection(t *testing.T) {
	for name, lose := range map[string]func(c *framedPeer){
		"reset":   func(c *framedPeer) { c.pipe.Reset() },
		"hang up": func(c *framedPeer) { c.Close() },
		"fin":     func(c *framedPeer) { c.pipe.FIN(conntest.ToClient) },
		"stall":   func(c *framedPeer) { c.pipe.Stall(conntest.Both) },
	} {
		t.Run(name, func(t *testing.T) {
			withFramedServer(t, conn.LengthPrefix{Size: 1}, func(t *testing.T, server *framedServer) {
				o := withPolicy(every(time.Second))
				c := server.open(t, &o)
				first := server.next(t)
				first.say(t, "\x03one\x09half of")
				lose(first)
				server.next(t).say(t, "\x02it\x04next")
				wantMessage(t, c, 1, "one")
				require.EqualValues(t, 1, wantSeam(t, c).Session)
				wantMessage(t, c, 2, "it")
				wantMessage(t, c, 2, "next")
				wantNothing(t, c)
			})
		})
	}
}
