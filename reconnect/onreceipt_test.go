package reconnect_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// Promise 6: one after the other, however slow OnReceipt is and however they end.
func TestCallsOfDoneDoNotOverlap(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		var inside, calls atomic.Int32
		o.Outbox.OnReceipt = func(context.Context, reconnect.Receipt) {
			require.Equal(t, int32(1), inside.Add(1))
			time.Sleep(time.Second)
			inside.Add(-1)
			calls.Add(1)
		}
		o.Outbox.Age = 10 * time.Second
		c := s.open(o)
		peer := s.wantDial().accept()
		queue(t, c, "a", "b")
		require.Equal(t, "a b", written(peer), "and delays no write")
		leave(t, c, peer, out("c"), out("d"))
		time.Sleep(10 * time.Second)
		queue(t, c, "e")
		quit(c)
		require.Equal(t, int32(5), calls.Load())
	})
}

// Promise 14: OnReceipt may use the Conn, whatever for.
func TestDoneMaySend(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownFail)
		var c *reconnect.Conn
		o.Outbox.OnReceipt = func(ctx context.Context, r reconnect.Receipt) {
			told.done(ctx, r)
			if string(r.Out.Data) == "a" {
				require.NoError(t, c.Send(out("b")))
				require.NoError(t, c.Write(context.Background(), text("c")))
				require.Equal(t, uint64(3), c.Stats().Written)
				c.Kick()
				require.Equal(t, reconnect.StateReady, c.State())
			}
		}
		c = s.open(o)
		peer := s.wantDial().accept()
		queue(t, c, "a")
		require.Equal(t, "a b c", written(peer))
		told.want(t, "a: written 1", "b: written 1")
	})
}

// Promise 14: OnReceipt is in nobody's way, so that a Write in it may wait for a session.
func TestAWriteInDoneWaitsForASession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		result := make(chan error, 1)
		o.Outbox.OnReceipt = func(ctx context.Context, _ reconnect.Receipt) { result <- c.Write(ctx, text("w")) }
		o.Outbox.Age = time.Second
		c = s.open(o)
		d := s.wantDial()
		queue(t, c, "a")
		time.Sleep(2 * time.Second) // until it expires
		require.Empty(t, result)
		require.Equal(t, "w", written(d.accept()))
		require.NoError(t, <-result)
	})
}

// Promises 11 and 14.
func TestDoneMayEndTheConn(t *testing.T) {
	for name, end := range map[string]func(context.Context, *reconnect.Conn){
		"Close":    func(_ context.Context, c *reconnect.Conn) { c.Close() },
		"Shutdown": func(ctx context.Context, c *reconnect.Conn) { c.Shutdown(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o, told := sending(reconnect.WhenDownKeep)
				var c *reconnect.Conn
				o.Outbox.OnReceipt = func(ctx context.Context, r reconnect.Receipt) {
					end(ctx, c)
					told.done(ctx, r)
				}
				c = s.open(o)
				peer := s.wantDial().accept()
				queue(t, c, "a")
				<-c.Done()
				require.Equal(t, net.ErrClosed, c.Err())
				require.Equal(t, "a", written(peer))
				told.want(t, "a: written 1")
			})
		})
	}
}

// Promise 11: Shutdown in OnReceipt drains what is queued behind. It cannot wait for the
// end, which waits for OnReceipt.
func TestShutdownInDoneDrains(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		o.Outbox.OnReceipt = func(ctx context.Context, r reconnect.Receipt) {
			told.done(ctx, r)
			require.ErrorIs(t, c.Shutdown(ctx), context.Canceled)
		}
		c = s.open(o)
		queue(t, c, "a", "b", "c")
		peer := s.wantDial().accept()
		<-c.Done()
		require.Equal(t, "a b c", written(peer))
		told.want(t, "a: written 1", "b: written 1", "c: written 1")
	})
}

// Promises 11 and 14.
func TestKeepMayCloseTheConn(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		var asked notes
		o.Outbox.Keep = func(_ context.Context, m reconnect.Out, _ error) bool {
			asked.add(string(m.Data))
			c.Close()
			require.ErrorIs(t, c.Write(context.Background(), text("w")), net.ErrClosed)
			return true
		}
		c = s.open(o)
		leave(t, c, s.wantDial().accept(), out("a"), out("b"), out("c"))
		<-c.Done()
		require.Equal(t, []string{"b"}, asked.all())
		told.want(t, "a: unknown 1", "b: dropped 0", "c: dropped 0")
		require.ErrorIs(t, told.last(t).Err, net.ErrClosed)
		require.Zero(t, s.now())
	})
}

// Promise 14: no lock is held while Keep decides.
func TestKeepMaySend(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		o.Outbox.Keep = func(_ context.Context, m reconnect.Out, _ error) bool {
			return c.Send(out("instead of "+string(m.Data))) != nil
		}
		c = s.open(o)
		leave(t, c, s.wantDial().accept(), out("a"), out("b"))
		require.Equal(t, "instead of b", written(s.wantDial().accept()))
	})
}

// Promise 11: Close waits for no write.
func TestCloseDuringAFlushCutsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		c := s.open(o)
		queue(t, c, "a", "b")
		s.wantDial().acceptHeld()
		quit(c)
		require.Zero(t, s.now())
		told.want(t, "a: unknown 1", "b: dropped 0")
		require.ErrorIs(t, told.all()[0].Err, net.ErrClosed)
		require.ErrorIs(t, told.last(t).Err, net.ErrClosed)
	})
}

// Promise 11: a OnReceipt that does not return is waited for, and named.
func TestADoneThatHangsIsNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		hung := make(chan struct{})
		o, _ := sending(reconnect.WhenDownKeep)
		o.Outbox.OnReceipt = func(context.Context, reconnect.Receipt) { <-hung }
		type report struct {
			what  string
			since time.Duration
		}
		var named []report
		var c *reconnect.Conn
		o.Run.Trace = &reconnect.Trace{Overdue: func(o reconnect.Overdue) {
			what, since := o.What, o.Since
			named = append(named, report{what, since})
			require.NoError(t, c.Close(), "from there too")
		}}
		c = s.open(o)
		s.wantDial().accept()
		queue(t, c, "a")
		synctest.Wait()
		time.AfterFunc(12*time.Second, func() { close(hung) })
		quit(c)
		require.Equal(t, 12*time.Second, s.now())
		require.Equal(t, []report{{"OnReceipt", 5 * time.Second}, {"OnReceipt", 10 * time.Second}}, named)
	})
}

// Promise 6: what OnReceipt is told, in order, is what was asked for, whatever the mixture.
func TestDoneIsToldExactlyOnceOfEach(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, told := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 5
		o.Outbox.Overflow = reconnect.OverflowDropOldest
		c := s.open(o)
		peer := s.wantDial().accept()
		queue(t, c, "1")
		synctest.Wait()
		leave(t, c, peer, repeatable("2"), out("3"), out("4"), out("5"), out("6"))
		queue(t, c, "7")
		told.want(t, "1: written 1", "2: unknown 1")
		s.wantDial().accept().FailWrite(errNotBegun)
		queue(t, c, "8")
		synctest.Wait()
		quit(c)
		all := map[string]int{}
		for _, r := range told.all() {
			all[string(r.Out.Data)]++
			require.Equal(t, r.Fate == reconnect.FateWritten, r.Err == nil)
		}
		require.Equal(t, map[string]int{"1": 1, "2": 1, "3": 1, "4": 1, "5": 1, "6": 1, "7": 1, "8": 1}, all)
		require.False(t, errors.Is(told.all()[1].Err, net.ErrClosed))
	})
}
