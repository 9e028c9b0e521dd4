package reconnect_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// The tests of shutdown.go that are about the queue: what Shutdown still sends, and how it reports the rest.

// Promise 11: Shutdown writes the queue, and then says goodbye.
func TestShutdownFirstWritesWhatIsQueued(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownFail)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "a", "b")
		shut := startShutdown(t.Context(), c)
		time.Sleep(time.Minute)
		require.Empty(t, shut)
		require.ErrorIs(t, c.Send(out("c")), net.ErrClosed)
		require.ErrorIs(t, c.Write(t.Context(), text("w")), net.ErrClosed)
		_, _, polite := peer.ClosedWith()
		require.False(t, polite, "not before the queue is empty")
		peer.Release()
		require.NoError(t, <-shut)
		require.Equal(t, "a b", written(peer))
		receipts.want(t, "a: written 1", "b: written 1")
		code, _, polite := peer.ClosedWith()
		require.True(t, polite)
		require.Equal(t, 1000, code)
	})
}

// Promise 11: Shutdown sends the queue by the next session, over a loss and a failed dial.
func TestShutdownDrainsByAFurtherSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "b", "c")
		synctest.Wait()
		shut := startShutdown(t.Context(), c)
		peer.FailWrite(errNotBegun)
		s.wantDial().refuse(errLost)
		next := s.wantDial().acceptHeld()
		require.Empty(t, shut)
		next.Release()
		require.NoError(t, <-shut)
		require.Equal(t, "b c", written(next))
		receipts.want(t, "b: written 2", "c: written 2")
		_, _, polite := next.ClosedWith()
		require.True(t, polite)
		require.Equal(t, 2*time.Second, s.now())
	})
}

// Promise 11: Shutdown drains over real connections that are cut under it.
func TestShutdownDrainsOverWebSocketsThatAreCut(t *testing.T) {
	seen := new(messageLog)
	withWSServer(t, seen.serve, func(t *testing.T, server *wsServer) {
		o, receipts := sending(reconnect.WhenDownKeep)
		c := server.ready(t, o)
		server.pipe(t).Window(conntest.ToServer, 1000)
		server.pipe(t).Stall(conntest.ToServer)
		for i := range 20 {
			require.NoError(t, c.Send(reconnect.Outgoing{Message: named(fmt.Sprint(i), 10_000), Repeatable: true}))
		}
		shut := startShutdown(t.Context(), c)
		time.Sleep(time.Second)
		server.network.ResetAll(wsAddr)
		require.NoError(t, <-shut)
		require.Len(t, receipts.all(), 20)
		require.Len(t, seen.all()[1], 20)
		require.Equal(t, 2, receipts.all()[0].Tries)
	})
}

func TestShutdownBeforeTheFirstSessionDrains(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		queue(t, c, "a")
		shut := startShutdown(t.Context(), c)
		peer := s.wantDial().accept()
		require.NoError(t, <-shut)
		require.Equal(t, "a", written(peer))
	})
}

// Promises 6 and 11: the server never comes back.
func TestShutdownReportsWhatItCouldNotSend(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		sendAndLose(t, c, s.wantDial().accept(), repeatable("a"), out("b"), out("c"))
		ctx, cancel := context.WithTimeoutCause(t.Context(), 59*time.Second+500*time.Millisecond, errLost)
		defer cancel()
		shut := startShutdown(ctx, c)
		for len(shut) == 0 {
			select {
			case d := <-s.dials:
				d.refuse(errLost)
			case <-c.Done():
			}
			synctest.Wait()
		}
		err := <-shut
		wantUnsent(t, err, errLost, "a", "b", "c")
		require.ErrorIs(t, err, errLost)
		require.Equal(t, 59*time.Second+500*time.Millisecond, s.now())
		receipts.want(t, "a: unknown 1", "b: dropped 0", "c: dropped 0")
		require.ErrorIs(t, receipts.last(t).Err, net.ErrClosed)
		require.Equal(t, net.ErrClosed, c.Err())
	})
}

// Promise 11: with a context that has ended, Shutdown sends nothing and reports the queue.
func TestShutdownWithAContextThatHasEndedDrainsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		queue(t, c, "a")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errLost)
		wantUnsent(t, c.Shutdown(ctx), errLost, "a")
		receipts.want(t, "a: dropped 0")
		require.Zero(t, s.now())
	})
}

// Promise 11: a stuck write does not hold Shutdown for longer than its context lasts.
func TestShutdownCutsAStuckWriteInTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		s.wantDial().accept().Hold()
		queue(t, c, "a", "b")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
		defer cancel()
		wantUnsent(t, c.Shutdown(ctx), errLost, "a", "b")
		require.Equal(t, time.Second, s.now())
		receipts.want(t, "a: unknown 1", "b: dropped 0")
	})
}

// Promise 11: Shutdown does not dial for messages that are not kept.
func TestShutdownDoesNotRedialForWhatIsNotKept(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait} {
		inBubble(t, func(t *testing.T, s *scene) {
			o, receipts := sending(down)
			c := s.open(o)
			peer := s.wantDial().accept()
			peer.Hold()
			queue(t, c, "a", "b")
			synctest.Wait()
			shut := startShutdown(t.Context(), c)
			peer.Fail(errLost)
			wantUnsent(t, <-shut, nil, "a", "b")
			receipts.want(t, "a: unknown 1", "b: dropped 0")
			s.wantNoDial()
		})
	}
}

// Shutdown ends when the queue is empty, whether its messages were written or not.
func TestShutdownEndsWhenTheLastMessageIsTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		s.wantDial()
		late := out("a")
		late.Deadline = s.start().Add(time.Minute / 4)
		require.NoError(t, c.Send(late))
		wantUnsent(t, c.Shutdown(t.Context()), nil, "a")
		require.Equal(t, time.Minute/4, s.now())
	})
}

// Promise 11: each of two Shutdowns gets the whole report. The context that ends first ends
// both.
func TestTwoShutdownsEndTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		s.wantDial()
		queue(t, c, "a", "b")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
		defer cancel()
		patient, hasty := startShutdown(t.Context(), c), startShutdown(ctx, c)
		wantUnsent(t, <-hasty, errLost, "a", "b")
		wantUnsent(t, <-patient, net.ErrClosed, "a", "b")
		require.Equal(t, time.Second, s.now())
		receipts.want(t, "a: dropped 0", "b: dropped 0")
		wantUnsent(t, c.Shutdown(t.Context()), net.ErrClosed, "a", "b")
	})
}

func TestTwoShutdownsDrainTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		queue(t, c, "a")
		first, second := startShutdown(t.Context(), c), startShutdown(t.Context(), c)
		peer := s.wantDial().accept()
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		require.Equal(t, "a", written(peer))
	})
}

// Promise 11: Close cuts a Shutdown short, and the Shutdown reports what is left.
func TestCloseEndsADrain(t *testing.T) {
	for range 20 { // because the scheduler decides who is first
		inBubble(t, func(t *testing.T, s *scene) {
			o, receipts := sending(reconnect.WhenDownKeep)
			c := s.open(o)
			s.wantDial().accept().Hold()
			queue(t, c, "a", "b")
			synctest.Wait()
			shut := startShutdown(t.Context(), c)
			c.Close()
			wantUnsent(t, <-shut, net.ErrClosed, "a", "b")
			receipts.want(t, "a: unknown 1", "b: dropped 0")
			require.Zero(t, s.now())
		})
	}
}

// Promise 11: after the policy has given up there is no session by which to send.
func TestShutdownEndsWhenThePolicyGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		o.Run.Policy = backoff.Limit(every(time.Second), 1, 0)
		c := s.open(o)
		queue(t, c, "a")
		shut := startShutdown(t.Context(), c)
		s.wantDial().refuse(errLost)
		s.wantDial().refuse(errLost)
		wantUnsent(t, <-shut, net.ErrClosed, "a")
		require.Equal(t, time.Second, s.now())
	})
}

// Promise 11: Shutdown lets a Write finish that is under way.
func TestShutdownWaitsForTheWriteUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownWait)
		c := s.open(o)
		under := startWrite(t.Context(), c, "1")
		behind := startWrite(t.Context(), c, "2")
		peer := s.wantDial().acceptHeld()
		shut := startShutdown(t.Context(), c)
		require.ErrorIs(t, <-behind, net.ErrClosed)
		time.Sleep(time.Second)
		peer.Release()
		require.NoError(t, <-under)
		require.NoError(t, <-shut)
		require.Equal(t, "1", written(peer))
	})
}

// Promise 6: a Write whose try did not begin is not written by a session that comes after
// Shutdown.
func TestAWriteThatWasNotBegunEndsWithShutdown(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		inBubble(t, func(t *testing.T, s *scene) {
			o, _ := sending(down)
			c := s.open(o)
			wrote := startWrite(t.Context(), c, "w")
			peer := s.wantDial().acceptHeld()
			shut := startShutdown(t.Context(), c)
			peer.FailWrite(errNotBegun)
			synctest.Wait()
			require.Len(t, shut, 1)
			wantFate(t, <-wrote, reconnect.FateDropped, 1)
			require.NoError(t, <-shut)
		})
	}
}

// A message that SendWait has no room for yet is new, and the drain may last.
func TestASendWaitThatWaitsEndsWithShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 1
		c := s.open(o)
		queue(t, c, "a")
		waiting := make(chan error, 1)
		go func() { waiting <- c.SendWait(t.Context(), out("b")) }()
		synctest.Wait()
		shut := startShutdown(t.Context(), c)
		require.Empty(t, shut, "a waits for a session")
		require.Len(t, waiting, 1)
		require.ErrorIs(t, <-waiting, net.ErrClosed)
		require.Equal(t, "a", written(s.wantDial().accept()))
		require.NoError(t, <-shut)
	})
}

// Promise 11: inside a callback Shutdown sends the queue by the present session. It does not
// wait for the end, which waits for the callback.
func TestShutdownInsideACallbackDrains(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		result := make(chan error, 1)
		o.OnMessage = func(ctx context.Context, _ reconnect.Message) { result <- c.Shutdown(ctx) }
		c = s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "a", "b")
		peer.Deliver(text("bye"))
		synctest.Wait()
		require.Empty(t, result)
		peer.Release()
		require.ErrorIs(t, <-result, context.Canceled)
		<-c.Done()
		receipts.want(t, "a: written 1", "b: written 1")
		_, _, polite := peer.ClosedWith()
		require.True(t, polite)
	})
}

// Promise 11: inside a callback Shutdown reports what the present session did not send.
func TestShutdownInsideACallbackEndsWithTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		result := make(chan error, 1)
		o.OnMessage = func(ctx context.Context, _ reconnect.Message) { result <- c.Shutdown(ctx) }
		c = s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "a", "b")
		peer.Deliver(text("bye"))
		synctest.Wait()
		peer.Fail(errLost)
		wantUnsent(t, <-result, context.Canceled, "a", "b")
		<-c.Done()
		receipts.want(t, "a: unknown 1", "b: dropped 0")
		s.wantNoDial()
		require.Equal(t, time.Second, s.now())
	})
}
