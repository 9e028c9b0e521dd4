package reconnect_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
)

// Promise 6: OnReceipt is called for one message after the other, however slow it is and
// whatever their fates are.
func TestCallsOfOnReceiptDoNotOverlap(t *testing.T) {
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
		sendAndLose(t, c, peer, out("c"), out("d"))
		time.Sleep(10 * time.Second)
		queue(t, c, "e")
		closeAndWait(c)
		require.Equal(t, int32(5), calls.Load())
	})
}

// Promise 6: each message that Send takes has exactly one receipt, in a mixture of all fates.
func TestOnReceiptIsCalledExactlyOnceForEach(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 5
		o.Outbox.Overflow = reconnect.OutboxDropOldest
		c := s.open(o)
		peer := s.wantDial().accept()
		queue(t, c, "1")
		synctest.Wait()
		sendAndLose(t, c, peer, repeatable("2"), out("3"), out("4"), out("5"), out("6"))
		queue(t, c, "7")
		receipts.want(t, "1: written 1", "2: unknown 1")
		s.wantDial().accept().FailWrite(errNotBegun)
		queue(t, c, "8")
		synctest.Wait()
		closeAndWait(c)
		all := map[string]int{}
		for _, r := range receipts.all() {
			all[string(r.Outgoing.Data)]++
			require.Equal(t, r.Fate == reconnect.FateWritten, r.Err == nil)
		}
		require.Equal(t, map[string]int{"1": 1, "2": 1, "3": 1, "4": 1, "5": 1, "6": 1, "7": 1, "8": 1}, all)
		require.False(t, errors.Is(receipts.all()[1].Err, net.ErrClosed))
	})
}

// Promise 6: a receipt does not wait for the messages behind it.
func TestAReceiptComesWhileTheNextMessageWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		c, _ := paced(s, o, budget.Window{N: 1, Per: time.Minute})
		queue(t, c, "a", "b")
		synctest.Wait()
		receipts.want(t, "a: written 1")
		time.Sleep(time.Minute)
		receipts.want(t, "a: written 1", "b: written 1")
	})
}

// Promise 14: OnReceipt may use the Conn.
func TestOnReceiptMaySend(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownFail)
		var c *reconnect.Conn
		o.Outbox.OnReceipt = func(ctx context.Context, r reconnect.Receipt) {
			receipts.add(ctx, r)
			if string(r.Outgoing.Data) == "a" {
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
		receipts.want(t, "a: written 1", "b: written 1")
	})
}

// OnSession of the next session may wait for OnReceipt, so a Write with its context does not wait
// for that session. A Write in another goroutine does.
func TestWriteWaitsForSessionOutsideOnReceipt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, _ := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		inside, outside := make(chan error, 1), make(chan error, 1)
		o.Outbox.OnReceipt = func(ctx context.Context, _ reconnect.Receipt) {
			inside <- c.Write(ctx, text("v"))
			go func() { outside <- c.Write(t.Context(), text("w")) }()
		}
		o.Outbox.Age = time.Second
		c = s.open(o)
		d := s.wantDial()
		queue(t, c, "a")
		time.Sleep(2 * time.Second) // until it expires
		err := <-inside
		require.ErrorIs(t, err, reconnect.ErrNotReady)
		require.ErrorContains(t, err, "in OnReceipt nothing waits for a session: write in another goroutine")
		require.Empty(t, outside)
		require.Equal(t, "w", written(d.accept()))
		require.NoError(t, <-outside)
	})
}

// Promises 11 and 14.
func TestOnReceiptMayEndTheConn(t *testing.T) {
	for name, end := range map[string]func(context.Context, *reconnect.Conn){
		"Close":    func(_ context.Context, c *reconnect.Conn) { c.Close() },
		"Shutdown": func(ctx context.Context, c *reconnect.Conn) { c.Shutdown(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o, receipts := sending(reconnect.WhenDownKeep)
				var c *reconnect.Conn
				o.Outbox.OnReceipt = func(ctx context.Context, r reconnect.Receipt) {
					end(ctx, c)
					receipts.add(ctx, r)
				}
				c = s.open(o)
				peer := s.wantDial().accept()
				queue(t, c, "a")
				<-c.Done()
				require.Equal(t, net.ErrClosed, c.Err())
				require.Equal(t, "a", written(peer))
				receipts.want(t, "a: written 1")
			})
		})
	}
}

// Promise 11: Shutdown in OnReceipt sends the rest of the queue. It cannot wait for the end,
// which waits for OnReceipt.
func TestShutdownInOnReceiptDrains(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o, receipts := sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		o.Outbox.OnReceipt = func(ctx context.Context, r reconnect.Receipt) {
			receipts.add(ctx, r)
			require.ErrorIs(t, c.Shutdown(ctx), context.Canceled)
		}
		c = s.open(o)
		queue(t, c, "a", "b", "c")
		peer := s.wantDial().accept()
		<-c.Done()
		require.Equal(t, "a b c", written(peer))
		receipts.want(t, "a: written 1", "b: written 1", "c: written 1")
	})
}

// Promise 11: Done waits for an OnReceipt that does not return, and Overdue names it.
func TestAnOnReceiptThatHangsIsNamed(t *testing.T) {
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
		closeAndWait(c)
		require.Equal(t, 12*time.Second, s.now())
		require.Equal(t, []report{{"OnReceipt", 5 * time.Second}, {"OnReceipt", 10 * time.Second}}, named)
	})
}

// Promise 10: an OnReceipt that is slow or never returns delays no write, but Send refuses
// messages.
func TestAnOnReceiptThatHangsBoundsTheOutbox(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		hung := make(chan struct{})
		o := withPolicy(every(time.Second))
		o.Outbox = reconnect.Outbox{Messages: 3, OnReceipt: func(context.Context, reconnect.Receipt) { <-hung }}
		c := s.open(&o)
		peer := s.wantDial().accept()
		for range 4 { // OnReceipt is at the first, and three wait for it
			queue(t, c, "a")
			synctest.Wait()
		}
		require.Equal(t, "a a a a", written(peer))
		err := c.Send(reconnect.Outgoing{Message: text("b")})
		require.ErrorIs(t, err, reconnect.ErrOutboxFull)
		require.ErrorContains(t, err, "3 receipts wait for Outbox.OnReceipt")
		require.NoError(t, c.Write(t.Context(), text("w")))
		close(hung)
		synctest.Wait()
		queue(t, c, "b")
		require.Equal(t, "a a a a w b", written(peer))
	})
}

// Promise 10: the same by bytes.
func TestAnOnReceiptThatHangsBoundsTheBytes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		hung := make(chan struct{})
		o := withPolicy(every(time.Second))
		o.Outbox = reconnect.Outbox{Bytes: 10, OnReceipt: func(context.Context, reconnect.Receipt) { <-hung }}
		c := s.open(&o)
		peer := s.wantDial().accept()
		for range 3 {
			queue(t, c, "12345")
			require.NotEmpty(t, written(peer))
		}
		require.ErrorIs(t, c.Send(reconnect.Outgoing{Message: text("b")}), reconnect.ErrOutboxFull)
		close(hung)
	})
}

// After an OnReceipt that ended its goroutine, the next receipt follows.
func TestAnOnReceiptThatDoesNotReturnIsCalledForTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var reported notes
		o := withPolicy(every(time.Second))
		o.Outbox.OnReceipt = func(_ context.Context, r reconnect.Receipt) {
			reported.add(string(r.Outgoing.Data))
			runtime.Goexit()
		}
		c := s.open(&o)
		s.wantDial().accept()
		queue(t, c, "a", "b", "c")
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "c"}, reported.all())
	})
}

// awaitingReceipts returns options whose OnReceipt takes a second for each message, and whose
// OnSession reports how long AwaitReceipts took.
func awaitingReceipts(waited chan<- time.Duration, failed chan<- error) reconnect.Options {
	o := withPolicy(every(0))
	o.WhenDown = reconnect.WhenDownKeep
	o.Outbox.OnReceipt = func(context.Context, reconnect.Receipt) { time.Sleep(time.Second) }
	o.OnSession = func(_ context.Context, op *reconnect.Opening) error {
		begun := time.Now()
		err := op.AwaitReceipts()
		failed <- err
		waited <- time.Since(begun)
		return err
	}
	return o
}

// Without the wait, what a lost session wrote would look as if it were still queued.
func TestAwaitReceiptsWaitsForThoseOfTheLastSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		waited, failed := make(chan time.Duration, 2), make(chan error, 2)
		o := awaitingReceipts(waited, failed)
		c := s.open(&o)
		peer := s.wantDial().accept()
		require.Zero(t, <-waited)
		require.NoError(t, <-failed)
		for range 3 {
			require.NoError(t, c.Send(reconnect.Outgoing{Message: text("x")}))
		}
		synctest.Wait()
		require.Len(t, peer.Written(), 3)
		peer.Fail(errLost)
		synctest.Wait()
		require.NoError(t, c.Send(reconnect.Outgoing{Message: text("queued")})) // AwaitReceipts does not wait for this one
		s.wantDial().accept()
		require.Equal(t, 3*time.Second, <-waited)
		require.NoError(t, <-failed)
	})
}

func TestAwaitReceiptsEndsWithOnSession(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		waited, failed := make(chan time.Duration, 2), make(chan error, 2)
		o := awaitingReceipts(waited, failed)
		o.Run.Policy = every(time.Hour)
		o.OpenTimeout = 100 * time.Millisecond
		c := s.open(&o)
		s.wantDial().accept()
		require.NoError(t, <-failed)
		require.NoError(t, c.Send(reconnect.Outgoing{Message: text("x")}))
		synctest.Wait()
		c.Redial(1, errLost)
		synctest.Wait()
		c.Kick()
		<-waited
		s.wantDial().accept()
		require.ErrorIs(t, <-failed, context.DeadlineExceeded)
		require.Equal(t, 100*time.Millisecond, <-waited)
	})
}
