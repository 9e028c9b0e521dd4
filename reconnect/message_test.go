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
		o := run(every(time.Second))
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

// Promise 5: an attempt that came to nothing is no seam.
func TestAFailedAttemptLeavesNoSeam(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
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

// Promise 5: but if it delivered something, that is stale now.
func TestAnOpeningThatDeliveredLeavesASeam(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			op.Deliver(text("early"))
			return errLost
		}
		c := s.open(&o)
		s.wantDial().accept()
		wantMessage(t, c, 1, "early")
		wantSeam(t, c)
		wantNothing(t, c)
	})
}

// Promise 5, for push.
func TestOnSeamComesBetweenTheMessagesOfTwoSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var seen notes
		o := run(every(time.Second))
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

// A reader that checks for the end of everything must not take a seam for it.
func TestASeamIsNotTheEnd(t *testing.T) {
	require.NotErrorIs(t, &reconnect.Seam{Cause: io.EOF}, io.EOF)
}

// Promise 5, over a stream of bytes.
func TestFramedSessionsAreApartByASeam(t *testing.T) {
	atDesk(t, conn.Lines{}, func(t *testing.T, d *desk) {
		o := run(every(time.Second))
		c := d.open(t, &o)
		d.next(t).say(t, "one\ntwo\n")
		d.network.ResetAll("")
		d.next(t).say(t, "three\n")
		wantMessage(t, c, 1, "one")
		wantMessage(t, c, 1, "two")
		require.ErrorIs(t, wantSeam(t, c).Cause, syscall.ECONNRESET)
		wantMessage(t, c, 2, "three")
		wantNothing(t, c)
	})
}

// The stream is never spliced: what the next connection begins with would
// complete the frame that the last one was cut in, for each way to lose it.
func TestAFrameIsNotCompletedByTheNextConnection(t *testing.T) {
	for name, lose := range map[string]func(c *customer){
		"reset":   func(c *customer) { c.pipe.Reset() },
		"hang up": func(c *customer) { c.Close() },
		"fin":     func(c *customer) { c.pipe.FIN(conntest.ToClient) },
		"stall":   func(c *customer) { c.pipe.Stall(conntest.Both) },
	} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, conn.LengthPrefix{Size: 1}, func(t *testing.T, d *desk) {
				o := run(every(time.Second))
				c := d.open(t, &o)
				first := d.next(t)
				first.say(t, "\x03one\x09half of")
				lose(first)
				d.next(t).say(t, "\x02it\x04next")
				wantMessage(t, c, 1, "one")
				require.EqualValues(t, 1, wantSeam(t, c).Session)
				wantMessage(t, c, 2, "it")
				wantMessage(t, c, 2, "next")
				wantNothing(t, c)
			})
		})
	}
}
