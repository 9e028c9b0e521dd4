package send_test

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
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 6.
func TestSendsAreWrittenAndReportedInOrder(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownFail)
		c, peer := s.Ready(o)
		tag := new(int)
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("a"), Tag: tag}))
		scene.Queue(t, c, "b", "c")
		require.Equal(t, "a b c", scene.Written(peer))
		receipts.Want(t, s.Receipts("a: written", "b: written", "c: written")...)
		first := receipts.All()[0]
		now := time.Now()
		require.Equal(t, reconnect.Receipt{
			Outgoing: reconnect.Outgoing{Message: scene.Text("a"), Tag: tag},
			Session:  s.Session, Tries: 1, Began: now, Ended: now,
		}, first)
		require.Same(t, tag, first.Outgoing.Tag)
	})
}

func TestSendDoesNotWaitForTheNetwork(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownFail)
		c, peer := s.Ready(o)
		peer.Hold()
		scene.Queue(t, c, "a", "b")
		receipts.Want(t)
		require.Equal(t, uint64(2), c.Stats().Queued)
		peer.Release()
		require.Equal(t, "a b", scene.Written(peer))
		require.Zero(t, c.Stats().Queued)
		require.Zero(t, s.Now())
	})
}

// Nothing is held back so that others may go along.
func TestALoneMessageIsWrittenAtOnce(t *testing.T) {
	scene.InEachWSForm(t, conntest.Echo, func(t *testing.T, server *scene.WSServer) {
		o, receipts := scene.Sending(reconnect.WhenDownFail)
		c := server.Ready(t, o)
		for i := range 3 {
			scene.Queue(t, c, "lone")
			scene.WantMessage(t, c, server.Session, "lone")
			require.Len(t, receipts.All(), i+1)
			time.Sleep(time.Second)
		}
		require.Equal(t, 3*time.Second, server.Now())
	})
}

// A Write that waits for another has its turn, as long as nothing was sent by Send.
func TestWriteAndSendTakeTurnsWithoutOnReceipt(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		c, peer := s.Ready(new(reconnect.Options))
		peer.Hold()
		go c.Write(t.Context(), scene.Text("a"))
		synctest.Wait()
		go c.Write(t.Context(), scene.Text("b"))
		synctest.Wait()
		scene.Queue(t, c, "c")
		go c.Write(t.Context(), scene.Text("d"))
		synctest.Wait()
		peer.Release()
		got := strings.Fields(scene.Written(peer))
		require.Equal(t, "a", got[0])
		require.ElementsMatch(t, []string{"a", "b", "c", "d"}, got)
		require.Less(t, slices.Index(got, "c"), slices.Index(got, "d"))
		require.Equal(t, uint64(4), c.Stats().Written)
	})
}

func TestOutboxHasRoomAgainWithoutOnReceipt(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		c, peer := s.Ready(&reconnect.Options{Outbox: reconnect.Outbox{Messages: 2}})
		for range 1000 {
			for c.Stats().Queued > 1 {
				runtime.Gosched()
			}
			scene.Queue(t, c, "a")
		}
		require.Equal(t, 1000, len(strings.Fields(scene.Written(peer))))
	})
}

func TestShutdownWritesWhatWasSentWithoutOnReceipt(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		c, peer := s.Ready(new(reconnect.Options))
		peer.Hold()
		scene.Queue(t, c, "a", "b")
		time.AfterFunc(time.Second, peer.Release)
		require.NoError(t, c.Shutdown(t.Context()))
		require.Equal(t, "a b", scene.Written(peer))
	})
}

// Promise 6: if Send returns an error it did not take the message, and OnReceipt is not called.
func TestSendFailsWhileNoSessionIsReadyUnlessMessagesAreKept(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			o, receipts := scene.Sending(down)
			c, d := s.Down(o)
			d.Refuse(scene.ErrLost)
			err := c.Send(reconnect.Outgoing{Message: scene.Text("a")})
			scene.WantFate(t, err, reconnect.FateDropped, 0)
			require.ErrorIs(t, err, reconnect.ErrNotReady)
			require.ErrorIs(t, err, scene.ErrLost, "and why there is none")
			require.Empty(t, scene.Written(s.WantDial().Accept()))
			receipts.Want(t)
			require.Equal(t, uint64(1), c.Stats().Dropped)
		})
	}
}

// Promise 4.
func TestWhatIsKeptIsSentInOrderOnceOnSessionHasReturned(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
			if err := op.Write(scene.Text("login")); err != nil {
				return err
			}
			if op.Session != s.Session {
				return nil
			}
			_, err := op.Read()
			return err
		}
		c, d := s.Down(o)
		scene.Queue(t, c, "a", "b")
		peer := d.Accept()
		scene.Queue(t, c, "c")
		require.Equal(t, "login", scene.Written(peer), "OnSession has sole use of the wire")
		peer.Deliver(scene.Text("welcome"))
		require.Equal(t, "login a b c", scene.Written(peer))
		scene.Queue(t, c, "d")
		require.Equal(t, "login a b c d", scene.Written(peer))
		receipts.Want(t, s.Receipts("a: written", "b: written", "c: written", "d: written")...)
	})
}

// Promise 4: reading goes on while the queue is being written, though the peer floods us and
// reads nothing.
func TestReadingGoesOnWhileTheQueueIsWritten(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		o.OnMessage = func(context.Context, reconnect.Message) {}
		c, d := s.Down(o)
		scene.Queue(t, c, "a", "b")
		peer := d.Accept()
		peer.Hold()
		for range 1000 {
			peer.Deliver(scene.Text("flood"))
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
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				o, receipts := scene.Sending(reconnect.WhenDownKeep)
				c, _ := s.Ready(o)
				require.NoError(t, end(c))
				err := c.Send(reconnect.Outgoing{Message: scene.Text("a")})
				scene.WantFate(t, err, reconnect.FateDropped, 0)
				require.ErrorIs(t, err, net.ErrClosed)
				receipts.Want(t)
			})
		})
	}
}

// The first Send makes the outbox, which must know what has been before.
func TestTheFirstSendMayComeAtAnyTime(t *testing.T) {
	first := func(session uint64) reconnect.Outgoing {
		return reconnect.Outgoing{Message: scene.Text("a"), Session: session}
	}
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c, peer := s.Ready(o)
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		require.ErrorIs(t, c.Send(first(s.Session)), reconnect.ErrSessionLost)
		require.NoError(t, c.Send(first(0)))
		require.Equal(t, "a", scene.Written(s.WantDial().Accept()))
		s.Session++
		receipts.Want(t, s.Receipts("a: written")...)
	})
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c, d := s.Down(o)
		d.Refuse(backoff.Permanent(scene.ErrLost))
		<-c.Done()
		require.ErrorIs(t, c.Send(first(0)), net.ErrClosed)
	})
}

// Promise 6: no message is lost silently when the policy of the Conn gives up.
func TestWhatIsQueuedAtTheEndIsReportedAsDropped(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Run.Policy = backoff.Limit(scene.Every(time.Second), 4, 0)
		c, d := s.Down(o)
		scene.Queue(t, c, "a", "b")
		for d.Refuse(scene.ErrLost); c.State() != reconnect.StateClosed; {
			s.WantDial().Refuse(scene.ErrLost)
		}
		receipts.Want(t, "a: dropped 0", "b: dropped 0")
		require.ErrorIs(t, receipts.Last(t).Err, net.ErrClosed)
		require.ErrorIs(t, c.Err(), backoff.ErrGaveUp)
		require.ErrorIs(t, c.Send(reconnect.Outgoing{Message: scene.Text("c")}), net.ErrClosed)
		require.ErrorIs(t, c.Write(t.Context(), scene.Text("w")), net.ErrClosed, "nor does a Write wait")
	})
}

// A message that the connection refuses costs neither the connection nor the queue.
func TestABadMessageIsDroppedAlone(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		s.Wrap = func(peer *conntest.Fake) conn.Conn { return pickyConn{peer.Conn()} }
		c, d := s.Down(o)
		scene.Queue(t, c, "a", "bad", "b")
		peer := d.Accept()
		require.Equal(t, "a b", scene.Written(peer))
		receipts.Want(t, s.Receipts("a: written", "bad: dropped", "b: written")...)
		require.ErrorIs(t, receipts.All()[1].Err, conn.ErrBadMessage)
		require.ErrorIs(t, c.Write(t.Context(), scene.Text("bad")), conn.ErrBadMessage)
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
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 1
		c, d := s.Down(o)
		scene.Queue(t, c, "a")
		require.ErrorIs(t, c.Send(scene.Out("b")), reconnect.ErrOutboxFull)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, scene.ErrLost)
		defer cancel()
		err := c.SendWait(ctx, scene.Out("b"))
		scene.WantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, scene.ErrLost)
		waiting := make(chan error, 1)
		go func() { waiting <- c.SendWait(t.Context(), scene.Out("c")) }()
		synctest.Wait()
		require.Empty(t, waiting)
		peer := d.Accept()
		require.NoError(t, <-waiting)
		require.Equal(t, "a c", scene.Written(peer))
		receipts.Want(t, s.Receipts("a: written", "c: written")...)
	})
}

// What is being written takes no room. A SendWait does not wait for the end of that write.
func TestSendWaitHasRoomWhenAWriteBegins(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 1
		c, d := s.Down(o)
		scene.Queue(t, c, "a")
		waiting := make(chan error, 1)
		go func() { waiting <- c.SendWait(t.Context(), scene.Out("b")) }()
		synctest.Wait()
		require.Empty(t, waiting)
		peer := d.AcceptHeld()
		require.Len(t, waiting, 1)
		require.NoError(t, <-waiting)
		peer.Release()
		synctest.Wait()
		receipts.Want(t, s.Receipts("a: written", "b: written")...)
	})
}

// Promise 10: SendWait also waits until OnReceipt has caught up, and ends with the Conn. It
// does not wait with a message that can never fit.
func TestSendWaitEndsWhenItCannotSucceed(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		hung := make(chan struct{})
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Outbox = reconnect.Outbox{Messages: 1, Bytes: 5, OnReceipt: func(context.Context, reconnect.Receipt) { <-hung }}
		c, _ := s.Ready(&o)
		for range 2 { // OnReceipt is at the first, the second waits for it
			scene.Queue(t, c, "a")
			synctest.Wait()
		}
		require.ErrorIs(t, c.SendWait(t.Context(), scene.Out("123456")), reconnect.ErrOutboxFull)
		waiting := make(chan error, 1)
		go func() { waiting <- c.SendWait(t.Context(), scene.Out("b")) }()
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
	two := &reconnect.UnsentError{Unsent: make([]reconnect.Receipt, 2), Err: scene.ErrLost}
	require.EqualError(t, two, "reconnect: shutdown: 2 messages were not sent: lost")
	require.True(t, errors.Is(two, scene.ErrLost))
}
