package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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

// Promise 5.
func TestMessagesGoesOnAfterASeam(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		c := s.open(&o)
		go func() {
			peer := s.wantDial().accept()
			peer.Deliver(text("a"))
			synctest.Wait()
			peer.Fail(errLost)
			s.wantDial().accept().Deliver(text("b"))
		}()
		var got []string
		for m, err := range c.Messages(t.Context()) {
			var seam *reconnect.Seam
			switch {
			case errors.As(err, &seam):
				got = append(got, "seam")
			case err != nil:
				got = append(got, err.Error())
			default:
				got = append(got, string(m.Data))
			}
			if string(m.Data) == "b" {
				go c.Close()
			}
		}
		require.Equal(t, []string{"a", "seam", "b", net.ErrClosed.Error()}, got)
	})
}

// Promises 5 and 10: a reader that is away for very long does not cost memory without end,
// and still learns how many connections were lost.
func TestManyUnreadSeamsAreJoined(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		c := s.open(&o)
		const losses = 100
		for range losses {
			s.wantDial().accept().Fail(errLost)
		}
		s.wantDial().accept().Deliver(text("a"))
		synctest.Wait()
		seams, lost := 0, 0
		for lost < losses {
			seams++
			lost += wantSeam(t, c).Lost
		}
		require.Equal(t, 64, seams)
		wantMessage(t, c, losses+1, "a")
	})
}

// Promise 10: nor does one that is away while messages are dropped.
func TestManyUnreadDropsAreJoined(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Second))
		o.Inbox = reconnect.Inbox{Messages: 2, Overflow: reconnect.OverflowDropOldest}
		c := s.open(&o)
		const losses, each = 100, 5
		for range losses {
			peer := s.wantDial().accept()
			deliver(peer, 1, each)
			peer.Fail(errLost)
		}
		s.wantDial().accept()
		seams, lost, got := 0, 0, 0
		for lost < losses {
			m, err := c.Read(t.Context(), nil)
			var seam *reconnect.Seam
			if errors.As(err, &seam) {
				seams++
				lost += seam.Lost
				got += seam.Dropped
			} else if require.NoError(t, err); len(m.Data) > 0 {
				got++
			}
		}
		require.Equal(t, losses*each, got, "each message was read or counted")
		require.LessOrEqual(t, seams, 64)
	})
}
