package send_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The tests of sender.go that are about a Write that waits in the queue, behind messages of Send.

// Promise 4: a Write comes after the messages that were queued before it.
func TestAWriteGoesBehindTheQueue(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			o, receipts := scene.Sending(down)
			c, peer := s.Ready(o)
			peer.Hold()
			scene.Queue(t, c, "a", "b")
			synctest.Wait()
			wrote := scene.StartWrite(t.Context(), c, "w")
			scene.Queue(t, c, "c")
			again := scene.StartWrite(t.Context(), c, "x")
			peer.Release()
			require.Equal(t, "a b w c x", scene.Written(peer))
			require.NoError(t, <-wrote)
			require.NoError(t, <-again)
			receipts.Want(t, s.Receipts("a: written", "b: written", "c: written")...)
			require.Equal(t, uint64(5), c.Stats().Written)
		})
	}
}

// Promise 4: a message that was sent later comes after a Write that waits for another.
func TestASendGoesBehindTheWritesThatWait(t *testing.T) {
	for range 50 { // because the scheduler decides who is first
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			o, _ := scene.Sending(reconnect.WhenDownKeep)
			c, peer := s.Ready(o)
			peer.Hold()
			first := scene.StartWrite(t.Context(), c, "1")
			second := scene.StartWrite(t.Context(), c, "2")
			third := scene.StartWrite(t.Context(), c, "3")
			scene.Queue(t, c, "a")
			synctest.Wait()
			peer.Release()
			require.Equal(t, "1 2 3 a", scene.Written(peer))
			for _, wrote := range []<-chan error{first, second, third} {
				require.NoError(t, <-wrote)
			}
		})
	}
}

// Promise 4: Writes and Sends during an outage go out in the order of the calls.
func TestWritesOfAnOutageGoOutInOrderWithSends(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c, d := s.Down(o)
		scene.Queue(t, c, "a")
		one := scene.StartWrite(t.Context(), c, "1")
		scene.Queue(t, c, "b")
		two := scene.StartWrite(t.Context(), c, "2")
		d.Refuse(scene.ErrLost)
		require.Equal(t, "a 1 b 2", scene.Written(s.WantDial().Accept()))
		require.NoError(t, <-one)
		require.NoError(t, <-two)
	})
}

// Promise 7: the end of its context ends the wait of a Write, and takes its message out of the
// queue.
func TestTheContextOfAWriteEndsItsWaitInTheQueue(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c, peer := s.Ready(o)
		peer.Hold()
		scene.Queue(t, c, "a")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, scene.ErrLost)
		defer cancel()
		err := c.Write(ctx, scene.Text("w"))
		scene.WantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, scene.ErrLost)
		require.Equal(t, time.Second, s.Now())
		require.Equal(t, uint64(1), c.Stats().Queued)
		require.Equal(t, uint64(1), c.Stats().Dropped)
		peer.Release()
		require.Equal(t, "a", scene.Written(peer))
	})
}

// cancelledWrite opens a Conn and returns its first peer, to which a Write is being written, and
// the channel of that Write. The context of the Write has ended.
func cancelledWrite(
	t *testing.T, s *scene.Scene, o *reconnect.Options,
) (*reconnect.Conn, *conntest.Fake, <-chan error) {
	t.Helper()
	c, d := s.Down(o)
	ctx, cancel := context.WithCancel(t.Context())
	wrote := scene.StartWrite(ctx, c, "w")
	peer := d.AcceptHeld()
	cancel()
	synctest.Wait()
	require.Empty(t, wrote, "it is being written")
	return c, peer, wrote
}

// Promise 7: the end of its context does not cut a Write from the queue that is under way.
func TestTheContextOfAQueuedWriteNeverEndsItsWriteUnderWay(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c, peer, wrote := cancelledWrite(t, s, o)
		peer.Release()
		require.NoError(t, <-wrote)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Promise 7: a Write whose context has ended does not wait again if its try did not begin.
func TestAWriteThatWasNotBegunDoesNotOutliveItsContext(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownWait)
		c, peer, wrote := cancelledWrite(t, s, o)
		peer.FailWrite(scene.ErrNotBegun)
		scene.WantFate(t, <-wrote, reconnect.FateDropped, s.Session)
		require.Zero(t, c.Stats().Queued)
		require.Equal(t, uint64(1), c.Stats().Dropped)
	})
}

// Promise 7: nor does the next session of a rotation write it.
func TestRotationDoesNotRetryCancelledWrite(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			if s.Form.Overlap == reconnect.OverlapBreakFirst {
				t.Skip("the rotation ends the write, whose fate is unknown then")
			}
			o, _ := scene.Sending(down)
			c, old, wrote := cancelledWrite(t, s, o)
			c.Rotate(s.Session, reconnect.Advice{})
			next := s.WantDial().Accept()
			old.FailWrite(scene.ErrNotBegun)
			synctest.Wait()
			err := <-wrote
			scene.WantFate(t, err, reconnect.FateDropped, s.Session)
			require.ErrorIs(t, err, context.Canceled)
			require.Empty(t, scene.Texts(next))
		})
	}
}

// Promise 6: a Write that was under way when the connection died is never tried again.
func TestAQueuedWriteWhoseConnectionDiesIsOfUnknownFate(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c, d := s.Down(o)
		wrote := scene.StartWrite(t.Context(), c, "w")
		d.AcceptHeld().Fail(scene.ErrLost)
		scene.WantFate(t, <-wrote, reconnect.FateUnknown, s.Session)
		require.Empty(t, scene.Written(s.WantDial().Accept()))
		require.Equal(t, uint64(1), c.Stats().Unknown)
	})
}

// Promise 6: a Write in the queue survives the loss, if WhenDown lets it wait for a session.
func TestAQueuedWriteWaitsForTheNextSession(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			o, _ := scene.Sending(down)
			c, peer := s.Ready(o)
			peer.Hold()
			scene.Queue(t, c, "a")
			synctest.Wait()
			wrote := scene.StartWrite(t.Context(), c, "w")
			peer.Fail(scene.ErrLost)
			require.Equal(t, "w", scene.Written(s.WantDial().Accept()))
			require.NoError(t, <-wrote)
		})
	}
}

func TestAQueuedWriteFailsWithItsSessionIfItMayNotWait(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownFail)
		c, peer := s.Ready(o)
		peer.Hold()
		scene.Queue(t, c, "a")
		synctest.Wait()
		wrote := scene.StartWrite(t.Context(), c, "w")
		peer.Fail(scene.ErrLost)
		err := <-wrote
		scene.WantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, scene.ErrLost)
		require.Zero(t, s.Now())
	})
}

// A WriteTo that waits for its turn does not go by another session.
func TestAQueuedWriteToIsDroppedWithItsSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c, peer := s.Ready(o)
		peer.Hold()
		scene.Queue(t, c, "a")
		synctest.Wait()
		wrote := make(chan error, 1)
		go func() { wrote <- c.WriteTo(t.Context(), s.Session, scene.Text("b")) }()
		synctest.Wait()
		peer.Fail(scene.ErrLost)
		err := <-wrote
		scene.WantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrSessionLost)
		require.Empty(t, scene.Written(s.WantDial().Accept()))
	})
}

// Promise 11: a Write in OnMessage with the context of OnMessage does not wait for a session,
// because the supervisor cannot dial while OnMessage runs.
func TestAQueuedWriteInTheHandlerEndsWithItsSession(t *testing.T) {
	for name, lose := range map[string]func(*reconnect.Conn, func(error)){
		"lost":    func(c *reconnect.Conn, fail func(error)) { fail(scene.ErrLost) },
		"severed": func(c *reconnect.Conn, _ func(error)) { c.Redial(c.Status().Session, scene.ErrLost) },
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				o, _ := scene.Sending(reconnect.WhenDownKeep)
				var c *reconnect.Conn
				result := make(chan error, 1)
				o.OnMessage = func(ctx context.Context, _ reconnect.Message) { result <- c.Write(ctx, scene.Text("w")) }
				opened, peer := s.Settled(o)
				c = opened
				peer.Hold()
				scene.Queue(t, c, "a", "b")
				synctest.Wait()
				peer.Deliver(scene.Text("m"))
				synctest.Wait()
				lose(c, peer.Fail)
				scene.WantFate(t, <-result, reconnect.FateDropped, 0)
				require.Equal(t, "b", scene.Written(s.WantDial().Accept()))
			})
		})
	}
}

// Promise 11: a Write in OnMessage does not wait for a session by which to try again.
func TestAQueuedWriteInTheHandlerIsTriedOnce(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		result := make(chan error, 1)
		o.OnMessage = func(ctx context.Context, _ reconnect.Message) { result <- c.Write(ctx, scene.Text("w")) }
		s.Wrap = func(peer *conntest.Fake) conn.Conn { return &dyingConn{Conn: peer.Conn()} }
		c, peer := s.Settled(o)
		peer.Hold()
		scene.Queue(t, c, "a")
		peer.Deliver(scene.Text("m"))
		synctest.Wait()
		peer.Release()
		scene.WantFate(t, <-result, reconnect.FateDropped, s.Session)
		s.WantDial()
	})
}

// dyingConn is a connection that dies of one message, before a byte of it has left.
type dyingConn struct{ conn.Conn }

func (f *dyingConn) Write(m conn.Message) error {
	if string(m.Data) == "w" {
		return scene.ErrNotBegun
	}
	return f.Conn.Write(m)
}

func TestAQueuedWriteEndsWithTheConn(t *testing.T) {
	for name, end := range map[string]func(*reconnect.Conn) error{
		"Close":    (*reconnect.Conn).Close,
		"Shutdown": func(c *reconnect.Conn) error { return c.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
				o, _ := scene.Sending(reconnect.WhenDownKeep)
				c, _ := s.Down(o)
				wrote := scene.StartWrite(t.Context(), c, "w")
				require.NoError(t, end(c))
				err := <-wrote
				scene.WantFate(t, err, reconnect.FateDropped, 0)
				require.ErrorIs(t, err, net.ErrClosed)
				require.Zero(t, s.Now())
			})
		})
	}
}

// Promise 11: Done waits for a callback that hangs, and a Write does not.
func TestAQueuedWriteEndsThoughACallbackHangs(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		hung := make(chan struct{})
		o.OnMessage = func(context.Context, reconnect.Message) { <-hung }
		c, peer := s.Settled(o)
		peer.Hold()
		peer.Deliver(scene.Text("m"))
		scene.Queue(t, c, "a")
		synctest.Wait()
		wrote := scene.StartWrite(t.Context(), c, "w")
		time.AfterFunc(time.Second, func() { close(hung) })
		go c.Close()
		require.ErrorIs(t, <-wrote, net.ErrClosed)
		require.Zero(t, s.Now())
		<-c.Done()
		require.Equal(t, time.Second, s.Now())
	})
}

// Promise 6: a Write may be given to two sessions if not a byte of it left by the first.
func TestAQueuedWriteThatWasNotBegunIsWrittenByTheNextSession(t *testing.T) {
	scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c, d := s.Down(o)
		one, two := scene.StartWrite(t.Context(), c, "1"), scene.StartWrite(t.Context(), c, "2")
		d.AcceptHeld().FailWrite(scene.ErrNotBegun)
		require.Equal(t, "1 2", scene.Written(s.WantDial().Accept()))
		require.NoError(t, <-one)
		require.NoError(t, <-two)
	})
}
