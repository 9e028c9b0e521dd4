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

// Promise 11.
func TestShutdownFirstWritesWhatIsQueued(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownFail)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "a", "b")
		shut := shutdown(t.Context(), c)
		time.Sleep(time.Minute)
		require.Empty(t, shut)
		require.ErrorIs(t, c.Send(out("c")), net.ErrClosed)
		require.ErrorIs(t, c.Write(t.Context(), text("w")), net.ErrClosed)
		_, _, polite := peer.ClosedWith()
		require.False(t, polite, "not before the queue is empty")
		peer.Release()
		require.NoError(t, <-shut)
		require.Equal(t, "a b", written(peer))
		told.want(t, "a: written 1", "b: written 1")
		code, _, polite := peer.ClosedWith()
		require.True(t, polite)
		require.Equal(t, 1000, code)
	})
}

// Promise 11: over a loss, and a failed dial.
func TestShutdownDrainsByAFurtherSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		peer := s.wantDial().accept()
		peer.Hold()
		queue(t, c, "b", "c")
		synctest.Wait()
		shut := shutdown(t.Context(), c)
		peer.FailWrite(errNotBegun)
		s.wantDial().refuse(errLost)
		next := s.wantDial().acceptHeld()
		require.Empty(t, shut)
		next.Release()
		require.NoError(t, <-shut)
		require.Equal(t, "b c", written(next))
		told.want(t, "b: written 2", "c: written 2")
		_, _, polite := next.ClosedWith()
		require.True(t, polite)
		require.Equal(t, 2*time.Second, s.now())
	})
}

// Promise 11: Shutdown drains over real connections that are cut under it.
func TestShutdownDrainsOverWebSocketsThatAreCut(t *testing.T) {
	k := new(clerk)
	inVenue(t, k.serve, func(t *testing.T, v *venue) {
		o, told := sending(reconnect.WhenDownKeep)
		c := v.ready(t, o)
		v.pipe(t).Window(conntest.ToServer, 1000)
		v.pipe(t).Stall(conntest.ToServer)
		for i := range 20 {
			require.NoError(t, c.Send(reconnect.Out{Message: named(fmt.Sprint(i), 10_000), Repeatable: true}))
		}
		shut := shutdown(t.Context(), c)
		time.Sleep(time.Second)
		v.network.ResetAll(venueAddr)
		require.NoError(t, <-shut)
		require.Len(t, told.all(), 20)
		require.Len(t, k.all()[1], 20)
		require.Equal(t, 2, told.all()[0].Tries)
	})
}

func TestShutdownBeforeTheFirstSessionDrains(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		queue(t, c, "a")
		shut := shutdown(t.Context(), c)
		peer := s.wantDial().accept()
		require.NoError(t, <-shut)
		require.Equal(t, "a", written(peer))
	})
}

// Promises 6 and 11: the server never comes back.
func TestShutdownReportsWhatItCouldNotSend(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		leave(t, c, s.wantDial().accept(), repeatable("a"), out("b"), out("c"))
		ctx, cancel := context.WithTimeoutCause(t.Context(), 59*time.Second+500*time.Millisecond, errLost)
		defer cancel()
		shut := shutdown(ctx, c)
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
		told.want(t, "a: unknown 1", "b: dropped 0", "c: dropped 0")
		require.ErrorIs(t, told.last(t).Err, net.ErrClosed)
		require.Equal(t, net.ErrClosed, c.Err())
	})
}

// Promise 11.
func TestShutdownWithAContextThatHasEndedDrainsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		queue(t, c, "a")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errLost)
		wantUnsent(t, c.Shutdown(ctx), errLost, "a")
		told.want(t, "a: dropped 0")
		require.Zero(t, s.now())
	})
}

// Promise 11: a stuck write does not hold Shutdown longer than its context lasts.
func TestShutdownCutsAStuckWriteInTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		s.wantDial().accept().Hold()
		queue(t, c, "a", "b")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
		defer cancel()
		wantUnsent(t, c.Shutdown(ctx), errLost, "a", "b")
		require.Equal(t, time.Second, s.now())
		told.want(t, "a: unknown 1", "b: dropped 0")
	})
}

// Promise 11: what is not kept is not worth a further session.
func TestShutdownDoesNotRedialForWhatIsNotKept(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait} {
		inBubble(t, func(t *testing.T, s *scene) {
			o, told := sending(down)
			c := s.open(o)
			peer := s.wantDial().accept()
			peer.Hold()
			queue(t, c, "a", "b")
			synctest.Wait()
			shut := shutdown(t.Context(), c)
			peer.Fail(errLost)
			wantUnsent(t, <-shut, nil, "a", "b")
			told.want(t, "a: unknown 1", "b: dropped 0")
			s.wantNoDial()
		})
	}
}

// The end of the queue is the end, whether it was written or not.
func TestShutdownEndsWhenTheLastMessageIsTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		s.wantDial()
		late := out("a")
		late.Deadline = s.start.Add(time.Minute / 4)
		require.NoError(t, c.Send(late))
		wantUnsent(t, c.Shutdown(t.Context()), nil, "a")
		require.Equal(t, time.Minute/4, s.now())
	})
}

// Promise 11: each of two gets the whole report; the context that ends first ends both.
func TestTwoShutdownsEndTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		s.wantDial()
		queue(t, c, "a", "b")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errLost)
		defer cancel()
		patient, hasty := shutdown(t.Context(), c), shutdown(ctx, c)
		wantUnsent(t, <-hasty, errLost, "a", "b")
		wantUnsent(t, <-patient, net.ErrClosed, "a", "b")
		require.Equal(t, time.Second, s.now())
		told.want(t, "a: dropped 0", "b: dropped 0")
		wantUnsent(t, c.Shutdown(t.Context()), net.ErrClosed, "a", "b")
	})
}

func TestTwoShutdownsDrainTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		queue(t, c, "a")
		first, second := shutdown(t.Context(), c), shutdown(t.Context(), c)
		peer := s.wantDial().accept()
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		require.Equal(t, "a", written(peer))
	})
}

// Promise 11: Close cuts a Shutdown short, and what is left is reported.
func TestCloseEndsADrain(t *testing.T) {
	for range 20 { // the report must not be a matter of luck
		inBubble(t, func(t *testing.T, s *scene) {
			o, told := sending(reconnect.WhenDownKeep)
			c := s.open(o)
			s.wantDial().accept().Hold()
			queue(t, c, "a", "b")
			synctest.Wait()
			shut := shutdown(t.Context(), c)
			c.Close()
			wantUnsent(t, <-shut, net.ErrClosed, "a", "b")
			told.want(t, "a: unknown 1", "b: dropped 0")
			require.Zero(t, s.now())
		})
	}
}

// Promise 11: there will be no session to drain by.
func TestShutdownEndsWhenThePolicyGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		o.Run.Policy = backoff.Limit(every(time.Second), 1, 0)
		c := s.open(o)
		queue(t, c, "a")
		shut := shutdown(t.Context(), c)
		s.wantDial().refuse(errLost)
		s.wantDial().refuse(errLost)
		wantUnsent(t, <-shut, net.ErrClosed, "a")
		require.Equal(t, time.Second, s.now())
	})
}

// Promise 11: a Write that is being written when Shutdown begins comes to its end.
func TestShutdownWaitsForTheWriteUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownWait)
		c := s.open(o)
		under := write(t.Context(), c, "1")
		behind := write(t.Context(), c, "2")
		peer := s.wantDial().acceptHeld()
		shut := shutdown(t.Context(), c)
		require.ErrorIs(t, <-behind, net.ErrClosed)
		time.Sleep(time.Second)
		peer.Release()
		require.NoError(t, <-under)
		require.NoError(t, <-shut)
		require.Equal(t, "1", written(peer))
	})
}

// Promise 6: it is not written by a session that comes after Shutdown.
func TestAWriteThatWasNotBegunEndsWithShutdown(t *testing.T) {
	for _, down := range []reconnect.WhenDown{reconnect.WhenDownWait, reconnect.WhenDownKeep} {
		inBubble(t, func(t *testing.T, s *scene) {
			o, _ := sending(down)
			c := s.open(o)
			wrote := write(t.Context(), c, "w")
			peer := s.wantDial().acceptHeld()
			shut := shutdown(t.Context(), c)
			peer.FailWrite(errNotBegun)
			synctest.Wait()
			require.Len(t, shut, 1)
			wantFate(t, <-wrote, reconnect.FateDropped, 1)
			require.NoError(t, <-shut)
		})
	}
}

// Promise 11: inside a callback Shutdown drains as far as the present session lasts.
// It does not wait for the end, which waits for the callback.
func TestShutdownInsideACallbackDrains(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
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
		told.want(t, "a: written 1", "b: written 1")
		_, _, polite := peer.ClosedWith()
		require.True(t, polite)
	})
}

// Promise 11: what it could not drain it says.
func TestShutdownInsideACallbackEndsWithTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
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
		told.want(t, "a: unknown 1", "b: dropped 0")
		s.wantNoDial()
		require.Zero(t, s.now())
	})
}
