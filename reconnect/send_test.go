package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Promise 6.
func TestSendsAreWrittenAndReportedInOrder(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownFail)
		c, peer := s.ready(o)
		tag := new(int)
		require.NoError(t, c.Send(reconnect.Outgoing{Message: text("a"), Tag: tag}))
		queue(t, c, "b", "c")
		require.Equal(t, "a b c", written(peer))
		receipts.want(t, s.receipts("a: written", "b: written", "c: written")...)
		first := receipts.all()[0]
		now := time.Now()
		require.Equal(t, reconnect.Receipt{
			Outgoing: reconnect.Outgoing{Message: text("a"), Tag: tag},
			Session:  s.session, Tries: 1, Began: now, Ended: now,
		}, first)
		require.Same(t, tag, first.Outgoing.Tag)
	})
}

func TestSendDoesNotWaitForTheNetwork(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownFail)
		c, peer := s.ready(o)
		peer.Hold()
		queue(t, c, "a", "b")
		receipts.want(t)
		require.Equal(t, uint64(2), c.Stats().Queued)
		peer.Release()
		require.Equal(t, "a b", written(peer))
		require.Zero(t, c.Stats().Queued)
		require.Zero(t, s.now())
	})
}

// Nothing is held back so that others may go along.
func TestALoneMessageIsWrittenAtOnce(t *testing.T) {
	inEachWSForm(t, conntest.Echo, func(t *testing.T, server *wsServer) {
		o, receipts := sending(reconnect.WhenDownFail)
		c := server.ready(t, o)
		for i := range 3 {
			queue(t, c, "lone")
			wantMessage(t, c, server.session, "lone")
			require.Len(t, receipts.all(), i+1)
			time.Sleep(time.Second)
		}
		require.Equal(t, 3*time.Second, server.now())
	})
}

// A Write that waits for another has its turn, as long as nothing was sent by Send.
func TestWriteAndSendTakeTurnsWithoutOnReceipt(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, peer := s.ready(new(reconnect.Options))
		peer.Hold()
		go c.Write(t.Context(), text("a"))
		synctest.Wait()
		go c.Write(t.Context(), text("b"))
		synctest.Wait()
		queue(t, c, "c")
		go c.Write(t.Context(), text("d"))
		synctest.Wait()
		peer.Release()
		got := strings.Fields(written(peer))
		require.Equal(t, "a", got[0])
		require.ElementsMatch(t, []string{"a", "b", "c", "d"}, got)
		require.Less(t, slices.Index(got, "c"), slices.Index(got, "d"))
		require.Equal(t, uint64(4), c.Stats().Written)
	})
}

func TestOutboxHasRoomAgainWithoutOnReceipt(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, peer := s.ready(&reconnect.Options{Outbox: reconnect.Outbox{Messages: 2}})
		for range 1000 {
			for c.Stats().Queued > 1 {
				runtime.Gosched()
			}
			queue(t, c, "a")
		}
		require.Equal(t, 1000, len(strings.Fields(written(peer))))
	})
}

func TestShutdownWritesWhatWasSentWithoutOnReceipt(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, peer := s.ready(new(reconnect.Options))
		peer.Hold()
		queue(t, c, "a", "b")
		time.AfterFunc(time.Second, peer.Release)
		require.NoError(t, c.Shutdown(t.Context()))
		require.Equal(t, "a b", written(peer))
	})
}

// Promise 6: if Send returns an error it did not take the message, and OnReceipt is not called.
func TestSendFailsWhileNoSessionIsReadyUnlessMessagesAreKept(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait} {
		inEachForm(t, func(t *testing.T, s *scene) {
			o, receipts := sending(down)
			c, d := s.down(o)
			d.refuse(errLost)
			err := c.Send(reconnect.Outgoing{Message: text("a")})
			wantFate(t, err, reconnect.FateDropped, 0)
			require.ErrorIs(t, err, reconnect.ErrNotReady)
			require.ErrorIs(t, err, errLost, "and why there is none")
			require.Empty(t, written(s.wantDial().accept()))
			receipts.want(t)
			require.Equal(t, uint64(1), c.Stats().Dropped)
		})
	}
}

// Promise 4.
func TestWhatIsKeptIsSentInOrderOnceOnSessionHasReturned(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if err := op.Write(text("login")); err != nil {
				return err
			}
			if op.Session != s.session {
				return nil
			}
			_, err := op.Read()
			return err
		}
		c, d := s.down(o)
		queue(t, c, "a", "b")
		peer := d.accept()
		queue(t, c, "c")
		require.Equal(t, "login", written(peer), "OnSession has sole use of the wire")
		peer.Deliver(text("welcome"))
		require.Equal(t, "login a b c", written(peer))
		queue(t, c, "d")
		require.Equal(t, "login a b c d", written(peer))
		receipts.want(t, s.receipts("a: written", "b: written", "c: written", "d: written")...)
	})
}

// Promise 4: reading goes on while the queue is being written, though the peer floods us and
// reads nothing.
func TestReadingGoesOnWhileTheQueueIsWritten(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		o.OnMessage = func(context.Context, reconnect.Message) {}
		c, d := s.down(o)
		queue(t, c, "a", "b")
		peer := d.accept()
		peer.Hold()
		for range 1000 {
			peer.Deliver(text("flood"))
		}
		synctest.Wait()
		require.Equal(t, uint64(1000), c.Stats().Received)
	})
}

func TestSendAfterTheEndIsRefused(t *testing.T) {
	for name, end := range map[string]func(*reconnect.Conn) error{
		"Close":    (*reconnect.Conn).Close,
		"Shutdown": func(c *reconnect.Conn) error { return c.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			inEachForm(t, func(t *testing.T, s *scene) {
				o, receipts := sending(reconnect.WhenDownKeep)
				c, _ := s.ready(o)
				require.NoError(t, end(c))
				err := c.Send(reconnect.Outgoing{Message: text("a")})
				wantFate(t, err, reconnect.FateDropped, 0)
				require.ErrorIs(t, err, net.ErrClosed)
				receipts.want(t)
			})
		})
	}
}

// The first Send makes the outbox, which must know what has been before.
func TestTheFirstSendMayComeAtAnyTime(t *testing.T) {
	first := func(session uint64) reconnect.Outgoing {
		return reconnect.Outgoing{Message: text("a"), Session: session}
	}
	inEachForm(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		c, peer := s.ready(o)
		peer.Fail(errLost)
		synctest.Wait()
		require.ErrorIs(t, c.Send(first(s.session)), reconnect.ErrSessionLost)
		require.NoError(t, c.Send(first(0)))
		require.Equal(t, "a", written(s.wantDial().accept()))
		s.session++
		receipts.want(t, s.receipts("a: written")...)
	})
	inEachForm(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c, d := s.down(o)
		d.refuse(backoff.Permanent(errLost))
		<-c.Done()
		require.ErrorIs(t, c.Send(first(0)), net.ErrClosed)
	})
}

// Promise 6: no message is lost silently when the policy of the Conn gives up.
func TestWhatIsQueuedAtTheEndIsReportedAsDropped(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.Run.Policy = backoff.Limit(every(time.Second), 4, 0)
		c, d := s.down(o)
		queue(t, c, "a", "b")
		for d.refuse(errLost); c.State() != reconnect.StateClosed; {
			s.wantDial().refuse(errLost)
		}
		receipts.want(t, "a: dropped 0", "b: dropped 0")
		require.ErrorIs(t, receipts.last(t).Err, net.ErrClosed)
		require.ErrorIs(t, c.Err(), backoff.ErrGaveUp)
		require.ErrorIs(t, c.Send(reconnect.Outgoing{Message: text("c")}), net.ErrClosed)
		require.ErrorIs(t, c.Write(t.Context(), text("w")), net.ErrClosed, "nor does a Write wait")
	})
}

// A message that the connection refuses costs neither the connection nor the queue.
func TestABadMessageIsDroppedAlone(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		s.wrap = func(peer *conntest.Fake) conn.Conn { return pickyConn{peer.Conn()} }
		c, d := s.down(o)
		queue(t, c, "a", "bad", "b")
		peer := d.accept()
		require.Equal(t, "a b", written(peer))
		receipts.want(t, s.receipts("a: written", "bad: dropped", "b: written")...)
		require.ErrorIs(t, receipts.all()[1].Err, conn.ErrBadMessage)
		require.ErrorIs(t, c.Write(t.Context(), text("bad")), conn.ErrBadMessage)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// pickyConn is a connection that refuses one message.
type pickyConn struct{ conn.Conn }

func (c pickyConn) Write(m conn.Message) error {
	if string(m.Data) == "bad" {
		return fmt.Errorf("%w: %w", conn.ErrNotWritten, conn.ErrBadMessage)
	}
	return c.Conn.Write(m)
}

// Promise 10: SendWait waits where Send refuses, until its context ends.
func TestSendWaitWaitsForRoom(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 1
		c, d := s.down(o)
		queue(t, c, "a")
		require.ErrorIs(t, c.Send(out("b")), reconnect.ErrOutboxFull)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
		defer cancel()
		err := c.SendWait(ctx, out("b"))
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, errLost)
		waiting := make(chan error, 1)
		go func() { waiting <- c.SendWait(t.Context(), out("c")) }()
		synctest.Wait()
		require.Empty(t, waiting)
		peer := d.accept()
		require.NoError(t, <-waiting)
		require.Equal(t, "a c", written(peer))
		receipts.want(t, s.receipts("a: written", "c: written")...)
	})
}

// What is being written takes no room. A SendWait does not wait for the end of that write.
func TestSendWaitHasRoomWhenAWriteBegins(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 1
		c, d := s.down(o)
		queue(t, c, "a")
		waiting := make(chan error, 1)
		go func() { waiting <- c.SendWait(t.Context(), out("b")) }()
		synctest.Wait()
		require.Empty(t, waiting)
		peer := d.acceptHeld()
		require.Len(t, waiting, 1)
		require.NoError(t, <-waiting)
		peer.Release()
		synctest.Wait()
		receipts.want(t, s.receipts("a: written", "b: written")...)
	})
}

// Promise 10: SendWait also waits until OnReceipt has caught up, and ends with the Conn. It
// does not wait with a message that can never fit.
func TestSendWaitEndsWhenItCannotSucceed(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		hung := make(chan struct{})
		o := withPolicy(every(time.Second))
		o.Outbox = reconnect.Outbox{Messages: 1, Bytes: 5, OnReceipt: func(context.Context, reconnect.Receipt) { <-hung }}
		c, _ := s.ready(&o)
		for range 2 { // OnReceipt is at the first, the second waits for it
			queue(t, c, "a")
			synctest.Wait()
		}
		require.ErrorIs(t, c.SendWait(t.Context(), out("123456")), reconnect.ErrOutboxFull)
		waiting := make(chan error, 1)
		go func() { waiting <- c.SendWait(t.Context(), out("b")) }()
		synctest.Wait()
		require.Empty(t, waiting)
		c.Close()
		require.ErrorIs(t, <-waiting, net.ErrClosed)
		close(hung)
	})
}

func TestTheErrorOfUnsentMessagesIsClear(t *testing.T) {
	one := &reconnect.UnsentError{Unsent: make([]reconnect.Receipt, 1)}
	require.EqualError(t, one, "reconnect: shutdown: 1 message was not sent")
	two := &reconnect.UnsentError{Unsent: make([]reconnect.Receipt, 2), Err: errLost}
	require.EqualError(t, two, "reconnect: shutdown: 2 messages were not sent: lost")
	require.True(t, errors.Is(two, errLost))
}
