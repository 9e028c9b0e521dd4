package reconnect_test

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
)

// The tests of sender.go that are about a Write that waits in the queue, behind messages of Send.

// Promise 4: a Write comes after the messages that were queued before it.
func TestAWriteGoesBehindTheQueue(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		inEachForm(t, func(t *testing.T, s *scene) {
			o, receipts := sending(down)
			c, peer := s.ready(o)
			peer.Hold()
			queue(t, c, "a", "b")
			synctest.Wait()
			wrote := startWrite(t.Context(), c, "w")
			queue(t, c, "c")
			again := startWrite(t.Context(), c, "x")
			peer.Release()
			require.Equal(t, "a b w c x", written(peer))
			require.NoError(t, <-wrote)
			require.NoError(t, <-again)
			receipts.want(t, s.receipts("a: written", "b: written", "c: written")...)
			require.Equal(t, uint64(5), c.Stats().Written)
		})
	}
}

// Promise 4: a message that was sent later comes after a Write that waits for another.
func TestASendGoesBehindTheWritesThatWait(t *testing.T) {
	for range 50 { // because the scheduler decides who is first
		inEachForm(t, func(t *testing.T, s *scene) {
			o, _ := sending(reconnect.WhenDownKeep)
			c, peer := s.ready(o)
			peer.Hold()
			first := startWrite(t.Context(), c, "1")
			second := startWrite(t.Context(), c, "2")
			third := startWrite(t.Context(), c, "3")
			queue(t, c, "a")
			synctest.Wait()
			peer.Release()
			require.Equal(t, "1 2 3 a", written(peer))
			for _, wrote := range []<-chan error{first, second, third} {
				require.NoError(t, <-wrote)
			}
		})
	}
}

// Promise 4: Writes and Sends during an outage go out in the order of the calls.
func TestWritesOfAnOutageGoOutInOrderWithSends(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c, d := s.down(o)
		queue(t, c, "a")
		one := startWrite(t.Context(), c, "1")
		queue(t, c, "b")
		two := startWrite(t.Context(), c, "2")
		d.refuse(errLost)
		require.Equal(t, "a 1 b 2", written(s.wantDial().accept()))
		require.NoError(t, <-one)
		require.NoError(t, <-two)
	})
}

// Promise 7: the end of its context ends the wait of a Write, and takes its message out of the
// queue.
func TestTheContextOfAWriteEndsItsWaitInTheQueue(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c, peer := s.ready(o)
		peer.Hold()
		queue(t, c, "a")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
		defer cancel()
		err := c.Write(ctx, text("w"))
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, errLost)
		require.Equal(t, time.Second, s.now())
		require.Equal(t, uint64(1), c.Stats().Queued)
		require.Equal(t, uint64(1), c.Stats().Dropped)
		peer.Release()
		require.Equal(t, "a", written(peer))
	})
}

// cancelledWrite opens a Conn and returns its first peer, to which a Write is being written, and
// the channel of that Write. The context of the Write has ended.
func cancelledWrite(t *testing.T, s *scene, o *reconnect.Options) (*reconnect.Conn, *conntest.Fake, <-chan error) {
	t.Helper()
	c, d := s.down(o)
	ctx, cancel := context.WithCancel(t.Context())
	wrote := startWrite(ctx, c, "w")
	peer := d.acceptHeld()
	cancel()
	synctest.Wait()
	require.Empty(t, wrote, "it is being written")
	return c, peer, wrote
}

// Promise 7: the end of its context does not cut a Write from the queue that is under way.
func TestTheContextOfAQueuedWriteNeverEndsItsWriteUnderWay(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c, peer, wrote := cancelledWrite(t, s, o)
		peer.Release()
		require.NoError(t, <-wrote)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// Promise 7: a Write whose context has ended does not wait again if its try did not begin.
func TestAWriteThatWasNotBegunDoesNotOutliveItsContext(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownWait)
		c, peer, wrote := cancelledWrite(t, s, o)
		peer.FailWrite(errNotBegun)
		wantFate(t, <-wrote, reconnect.FateDropped, s.session)
		require.Zero(t, c.Stats().Queued)
		require.Equal(t, uint64(1), c.Stats().Dropped)
	})
}

// Promise 7: nor does the next session of a rotation write it.
func TestRotationDoesNotRetryCancelledWrite(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		inEachForm(t, func(t *testing.T, s *scene) {
			if s.form.overlap == reconnect.OverlapBreakFirst {
				t.Skip("the rotation ends the write, whose fate is unknown then")
			}
			o, _ := sending(down)
			c, old, wrote := cancelledWrite(t, s, o)
			c.Rotate(s.session, reconnect.Advice{})
			next := s.wantDial().accept()
			old.FailWrite(errNotBegun)
			synctest.Wait()
			err := <-wrote
			wantFate(t, err, reconnect.FateDropped, s.session)
			require.ErrorIs(t, err, context.Canceled)
			require.Empty(t, texts(next))
		})
	}
}

// Promise 6: a Write that was under way when the connection died is never tried again.
func TestAQueuedWriteWhoseConnectionDiesIsOfUnknownFate(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c, d := s.down(o)
		wrote := startWrite(t.Context(), c, "w")
		d.acceptHeld().Fail(errLost)
		wantFate(t, <-wrote, reconnect.FateUnknown, s.session)
		require.Empty(t, written(s.wantDial().accept()))
		require.Equal(t, uint64(1), c.Stats().Unknown)
	})
}

// Promise 6: a Write in the queue survives the loss, if WhenDown lets it wait for a session.
func TestAQueuedWriteWaitsForTheNextSession(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		inEachForm(t, func(t *testing.T, s *scene) {
			o, _ := sending(down)
			c, peer := s.ready(o)
			peer.Hold()
			queue(t, c, "a")
			synctest.Wait()
			wrote := startWrite(t.Context(), c, "w")
			peer.Fail(errLost)
			require.Equal(t, "w", written(s.wantDial().accept()))
			require.NoError(t, <-wrote)
		})
	}
}

func TestAQueuedWriteFailsWithItsSessionIfItMayNotWait(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownFail)
		c, peer := s.ready(o)
		peer.Hold()
		queue(t, c, "a")
		synctest.Wait()
		wrote := startWrite(t.Context(), c, "w")
		peer.Fail(errLost)
		err := <-wrote
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, errLost)
		require.Zero(t, s.now())
	})
}

// A WriteTo that waits for its turn does not go by another session.
func TestAQueuedWriteToIsDroppedWithItsSession(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c, peer := s.ready(o)
		peer.Hold()
		queue(t, c, "a")
		synctest.Wait()
		wrote := make(chan error, 1)
		go func() { wrote <- c.WriteTo(t.Context(), s.session, text("b")) }()
		synctest.Wait()
		peer.Fail(errLost)
		err := <-wrote
		wantFate(t, err, reconnect.FateDropped, 0)
		require.ErrorIs(t, err, reconnect.ErrSessionLost)
		require.Empty(t, written(s.wantDial().accept()))
	})
}

// Promise 11: a Write in OnMessage with the context of OnMessage does not wait for a session,
// because the supervisor cannot dial while OnMessage runs.
func TestAQueuedWriteInTheHandlerEndsWithItsSession(t *testing.T) {
	for name, lose := range map[string]func(*reconnect.Conn, func(error)){
		"lost":    func(c *reconnect.Conn, fail func(error)) { fail(errLost) },
		"severed": func(c *reconnect.Conn, _ func(error)) { c.Redial(c.Status().Session, errLost) },
	} {
		t.Run(name, func(t *testing.T) {
			inEachForm(t, func(t *testing.T, s *scene) {
				o, _ := sending(reconnect.WhenDownKeep)
				var c *reconnect.Conn
				result := make(chan error, 1)
				o.OnMessage = func(ctx context.Context, _ reconnect.Message) { result <- c.Write(ctx, text("w")) }
				opened, peer := s.settled(o)
				c = opened
				peer.Hold()
				queue(t, c, "a", "b")
				synctest.Wait()
				peer.Deliver(text("m"))
				synctest.Wait()
				lose(c, peer.Fail)
				wantFate(t, <-result, reconnect.FateDropped, 0)
				require.Equal(t, "b", written(s.wantDial().accept()))
			})
		})
	}
}

// Promise 11: a Write in OnMessage does not wait for a session by which to try again.
func TestAQueuedWriteInTheHandlerIsTriedOnce(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		result := make(chan error, 1)
		o.OnMessage = func(ctx context.Context, _ reconnect.Message) { result <- c.Write(ctx, text("w")) }
		s.wrap = func(peer *conntest.Fake) conn.Conn { return &dyingConn{Conn: peer.Conn()} }
		c, peer := s.settled(o)
		peer.Hold()
		queue(t, c, "a")
		peer.Deliver(text("m"))
		synctest.Wait()
		peer.Release()
		wantFate(t, <-result, reconnect.FateDropped, s.session)
		s.wantDial()
	})
}

// dyingConn is a connection that dies of one message, before a byte of it has left.
type dyingConn struct{ conn.Conn }

func (f *dyingConn) Write(m conn.Message) error {
	if string(m.Data) == "w" {
		return errNotBegun
	}
	return f.Conn.Write(m)
}

func TestAQueuedWriteEndsWithTheConn(t *testing.T) {
	for name, end := range map[string]func(*reconnect.Conn) error{
		"Close":    (*reconnect.Conn).Close,
		"Shutdown": func(c *reconnect.Conn) error { return c.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			inEachForm(t, func(t *testing.T, s *scene) {
				o, _ := sending(reconnect.WhenDownKeep)
				c, _ := s.down(o)
				wrote := startWrite(t.Context(), c, "w")
				require.NoError(t, end(c))
				err := <-wrote
				wantFate(t, err, reconnect.FateDropped, 0)
				require.ErrorIs(t, err, net.ErrClosed)
				require.Zero(t, s.now())
			})
		})
	}
}

// Promise 11: Done waits for a callback that hangs, and a Write does not.
func TestAQueuedWriteEndsThoughACallbackHangs(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		hung := make(chan struct{})
		o.OnMessage = func(context.Context, reconnect.Message) { <-hung }
		c, peer := s.settled(o)
		peer.Hold()
		peer.Deliver(text("m"))
		queue(t, c, "a")
		synctest.Wait()
		wrote := startWrite(t.Context(), c, "w")
		time.AfterFunc(time.Second, func() { close(hung) })
		go c.Close()
		require.ErrorIs(t, <-wrote, net.ErrClosed)
		require.Zero(t, s.now())
		<-c.Done()
		require.Equal(t, time.Second, s.now())
	})
}

// Promise 6: a Write may be given to two sessions if not a byte of it left by the first.
func TestAQueuedWriteThatWasNotBegunIsWrittenByTheNextSession(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c, d := s.down(o)
		one, two := startWrite(t.Context(), c, "1"), startWrite(t.Context(), c, "2")
		d.acceptHeld().FailWrite(errNotBegun)
		require.Equal(t, "1 2", written(s.wantDial().accept()))
		require.NoError(t, <-one)
		require.NoError(t, <-two)
	})
}
