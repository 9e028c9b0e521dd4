package run_test

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
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The tests of shutdown.go that are about the queue: what Shutdown still sends, and how it reports the rest.

// Promise 11: Shutdown writes the queue, and then says goodbye.
func TestShutdownFirstWritesWhatIsQueued(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownFail)
		c := s.Open(o)
		peer := s.WantDial().Accept()
		peer.Hold()
		scene.Queue(t, c, "a", "b")
		shut := scene.StartShutdown(t.Context(), c)
		time.Sleep(time.Minute)
		require.Empty(t, shut)
		require.ErrorIs(t, c.Send(scene.Out("c")), net.ErrClosed)
		require.ErrorIs(t, c.Write(t.Context(), scene.Text("w")), net.ErrClosed)
		_, _, polite := peer.ClosedWith()
		require.False(t, polite, "not before the queue is empty")
		peer.Release()
		require.NoError(t, <-shut)
		require.Equal(t, "a b", scene.Written(peer))
		receipts.Want(t, "a: written 1", "b: written 1")
		code, _, polite := peer.ClosedWith()
		require.True(t, polite)
		require.Equal(t, 1000, code)
	})
}

// Promise 11: Shutdown sends the queue by the next session, over a loss and a failed dial.
func TestShutdownDrainsByAFurtherSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		peer := s.WantDial().Accept()
		peer.Hold()
		scene.Queue(t, c, "b", "c")
		synctest.Wait()
		shut := scene.StartShutdown(t.Context(), c)
		peer.FailWrite(scene.ErrNotBegun)
		s.WantDial().Refuse(scene.ErrLost)
		next := s.WantDial().AcceptHeld()
		require.Empty(t, shut)
		next.Release()
		require.NoError(t, <-shut)
		require.Equal(t, "b c", scene.Written(next))
		receipts.Want(t, "b: written 2", "c: written 2")
		_, _, polite := next.ClosedWith()
		require.True(t, polite)
		require.Equal(t, 2*time.Second, s.Now())
	})
}

// Promise 11: Shutdown drains over real connections that are cut under it.
func TestShutdownDrainsOverWebSocketsThatAreCut(t *testing.T) {
	seen := new(scene.MessageLog)
	scene.WithWSServer(t, seen.Serve, func(t *testing.T, server *scene.WSServer) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := server.Ready(t, o)
		server.Pipe(t).Window(conntest.ToServer, 1000)
		server.Pipe(t).Stall(conntest.ToServer)
		for i := range 20 {
			require.NoError(t, c.Send(reconnect.Outgoing{
				Message:    scene.Named(fmt.Sprint(i), 10_000),
				Repeatable: true,
			}))
		}
		shut := scene.StartShutdown(t.Context(), c)
		time.Sleep(time.Second)
		server.Network.ResetAll(scene.WSAddr)
		require.NoError(t, <-shut)
		require.Len(t, receipts.All(), 20)
		require.Len(t, seen.All()[1], 20)
		require.Equal(t, 2, receipts.All()[0].Tries)
	})
}

func TestShutdownBeforeTheFirstSessionDrains(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		scene.Queue(t, c, "a")
		shut := scene.StartShutdown(t.Context(), c)
		peer := s.WantDial().Accept()
		require.NoError(t, <-shut)
		require.Equal(t, "a", scene.Written(peer))
	})
}

// Promises 6 and 11: the server never comes back.
func TestShutdownReportsWhatItCouldNotSend(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		scene.SendAndLose(t, c, s.WantDial().Accept(), scene.Repeatable("a"), scene.Out("b"), scene.Out("c"))
		ctx, cancel := context.WithTimeoutCause(t.Context(), 59*time.Second+500*time.Millisecond, scene.ErrLost)
		defer cancel()
		shut := scene.StartShutdown(ctx, c)
		for len(shut) == 0 {
			select {
			case d := <-s.Dials:
				d.Refuse(scene.ErrLost)
			case <-c.Done():
			}
			synctest.Wait()
		}
		err := <-shut
		scene.WantUnsent(t, err, scene.ErrLost, "a", "b", "c")
		require.ErrorIs(t, err, scene.ErrLost)
		require.Equal(t, 59*time.Second+500*time.Millisecond, s.Now())
		receipts.Want(t, "a: unknown 1", "b: dropped 0", "c: dropped 0")
		require.ErrorIs(t, receipts.Last(t).Err, net.ErrClosed)
		require.Equal(t, net.ErrClosed, c.Err())
	})
}

// Promise 11: with a context that has ended, Shutdown sends nothing and reports the queue.
func TestShutdownWithAContextThatHasEndedDrainsNothing(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		scene.Queue(t, c, "a")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(scene.ErrLost)
		scene.WantUnsent(t, c.Shutdown(ctx), scene.ErrLost, "a")
		receipts.Want(t, "a: dropped 0")
		require.Zero(t, s.Now())
	})
}

// Promise 11: a stuck write does not hold Shutdown for longer than its context lasts.
func TestShutdownCutsAStuckWriteInTheEnd(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		s.WantDial().Accept().Hold()
		scene.Queue(t, c, "a", "b")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, scene.ErrLost)
		defer cancel()
		scene.WantUnsent(t, c.Shutdown(ctx), scene.ErrLost, "a", "b")
		require.Equal(t, time.Second, s.Now())
		receipts.Want(t, "a: unknown 1", "b: dropped 0")
	})
}

// Promise 11: Shutdown does not dial for messages that are not kept.
func TestShutdownDoesNotRedialForWhatIsNotKept(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o, receipts := scene.Sending(down)
			c := s.Open(o)
			peer := s.WantDial().Accept()
			peer.Hold()
			scene.Queue(t, c, "a", "b")
			synctest.Wait()
			shut := scene.StartShutdown(t.Context(), c)
			peer.Fail(scene.ErrLost)
			scene.WantUnsent(t, <-shut, nil, "a", "b")
			receipts.Want(t, "a: unknown 1", "b: dropped 0")
			s.WantNoDial()
		})
	}
}

// Shutdown ends when the queue is empty, whether its messages were written or not.
func TestShutdownEndsWhenTheLastMessageIsTooLate(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		s.WantDial()
		late := scene.Out("a")
		late.Deadline = s.Start().Add(time.Minute / 4)
		require.NoError(t, c.Send(late))
		scene.WantUnsent(t, c.Shutdown(t.Context()), nil, "a")
		require.Equal(t, time.Minute/4, s.Now())
	})
}

// Promise 11: each of two Shutdowns gets the whole report. The context that ends first ends
// both.
func TestTwoShutdownsEndTogether(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		s.WantDial()
		scene.Queue(t, c, "a", "b")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, scene.ErrLost)
		defer cancel()
		patient, hasty := scene.StartShutdown(t.Context(), c), scene.StartShutdown(ctx, c)
		scene.WantUnsent(t, <-hasty, scene.ErrLost, "a", "b")
		scene.WantUnsent(t, <-patient, net.ErrClosed, "a", "b")
		require.Equal(t, time.Second, s.Now())
		receipts.Want(t, "a: dropped 0", "b: dropped 0")
		scene.WantUnsent(t, c.Shutdown(t.Context()), net.ErrClosed, "a", "b")
	})
}

func TestTwoShutdownsDrainTogether(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		c := s.Open(o)
		scene.Queue(t, c, "a")
		first, second := scene.StartShutdown(t.Context(), c), scene.StartShutdown(t.Context(), c)
		peer := s.WantDial().Accept()
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		require.Equal(t, "a", scene.Written(peer))
	})
}

// Promise 11: Close cuts a Shutdown short, and the Shutdown reports what is left.
func TestCloseEndsADrain(t *testing.T) {
	for range 20 { // because the scheduler decides who is first
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o, receipts := scene.Sending(reconnect.WhenDownKeep)
			c := s.Open(o)
			s.WantDial().Accept().Hold()
			scene.Queue(t, c, "a", "b")
			synctest.Wait()
			shut := scene.StartShutdown(t.Context(), c)
			c.Close()
			scene.WantUnsent(t, <-shut, net.ErrClosed, "a", "b")
			receipts.Want(t, "a: unknown 1", "b: dropped 0")
			require.Zero(t, s.Now())
		})
	}
}

// Promise 11: after the policy has given up there is no session by which to send.
func TestShutdownEndsWhenThePolicyGivesUp(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		o.Run.Policy = backoff.Limit(scene.Every(time.Second), 1, 0)
		c := s.Open(o)
		scene.Queue(t, c, "a")
		shut := scene.StartShutdown(t.Context(), c)
		s.WantDial().Refuse(scene.ErrLost)
		s.WantDial().Refuse(scene.ErrLost)
		scene.WantUnsent(t, <-shut, net.ErrClosed, "a")
		require.Equal(t, time.Second, s.Now())
	})
}

// Promise 11: Shutdown lets a Write finish that is under way.
func TestShutdownWaitsForTheWriteUnderWay(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownWait)
		c := s.Open(o)
		under := scene.StartWrite(t.Context(), c, "1")
		behind := scene.StartWrite(t.Context(), c, "2")
		peer := s.WantDial().AcceptHeld()
		shut := scene.StartShutdown(t.Context(), c)
		require.ErrorIs(t, <-behind, net.ErrClosed)
		time.Sleep(time.Second)
		peer.Release()
		require.NoError(t, <-under)
		require.NoError(t, <-shut)
		require.Equal(t, "1", scene.Written(peer))
	})
}

// Promise 6: a Write whose try did not begin is not written by a session that comes after
// Shutdown.
func TestAWriteThatWasNotBegunEndsWithShutdown(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o, _ := scene.Sending(down)
			c := s.Open(o)
			wrote := scene.StartWrite(t.Context(), c, "w")
			peer := s.WantDial().AcceptHeld()
			shut := scene.StartShutdown(t.Context(), c)
			peer.FailWrite(scene.ErrNotBegun)
			synctest.Wait()
			require.Len(t, shut, 1)
			scene.WantFate(t, <-wrote, reconnect.FateDropped, 1)
			require.NoError(t, <-shut)
		})
	}
}

// A message that SendWait has no room for yet is new, and the drain may last.
func TestASendWaitThatWaitsEndsWithShutdown(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 1
		c := s.Open(o)
		scene.Queue(t, c, "a")
		waiting := make(chan error, 1)
		go func() { waiting <- c.SendWait(t.Context(), scene.Out("b")) }()
		synctest.Wait()
		shut := scene.StartShutdown(t.Context(), c)
		require.Empty(t, shut, "a waits for a session")
		require.Len(t, waiting, 1)
		require.ErrorIs(t, <-waiting, net.ErrClosed)
		require.Equal(t, "a", scene.Written(s.WantDial().Accept()))
		require.NoError(t, <-shut)
	})
}

// Promise 11: inside a callback Shutdown sends the queue by the present session. It does not
// wait for the end, which waits for the callback.
func TestShutdownInsideACallbackDrains(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		result := make(chan error, 1)
		o.OnMessage = func(ctx context.Context, _ reconnect.Message) { result <- c.Shutdown(ctx) }
		c = s.Open(o)
		peer := s.WantDial().Accept()
		peer.Hold()
		scene.Queue(t, c, "a", "b")
		peer.Deliver(scene.Text("bye"))
		synctest.Wait()
		require.Empty(t, result)
		peer.Release()
		require.ErrorIs(t, <-result, context.Canceled)
		<-c.Done()
		receipts.Want(t, "a: written 1", "b: written 1")
		_, _, polite := peer.ClosedWith()
		require.True(t, polite)
	})
}

// Promise 11: inside a callback Shutdown reports what the present session did not send.
func TestShutdownInsideACallbackEndsWithTheSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		result := make(chan error, 1)
		o.OnMessage = func(ctx context.Context, _ reconnect.Message) { result <- c.Shutdown(ctx) }
		c = s.Open(o)
		peer := s.WantDial().Accept()
		peer.Hold()
		scene.Queue(t, c, "a", "b")
		peer.Deliver(scene.Text("bye"))
		synctest.Wait()
		peer.Fail(scene.ErrLost)
		scene.WantUnsent(t, <-result, context.Canceled, "a", "b")
		<-c.Done()
		receipts.Want(t, "a: unknown 1", "b: dropped 0")
		s.WantNoDial()
		require.Equal(t, time.Second, s.Now())
	})
}
