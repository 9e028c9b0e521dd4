package send_test

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
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 6: OnReceipt is called for one message after the other, however slow it is and
// whatever their fates are.
func TestCallsOfOnReceiptDoNotOverlap(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		var inside, calls atomic.Int32
		o.Outbox.OnReceipt = func(context.Context, reconnect.Receipt) {
			require.Equal(t, int32(1), inside.Add(1))
			time.Sleep(time.Second)
			inside.Add(-1)
			calls.Add(1)
		}
		o.Outbox.Age = 10 * time.Second
		c := s.Open(o)
		peer := s.WantDial().Accept()
		scene.Queue(t, c, "a", "b")
		require.Equal(t, "a b", scene.Written(peer), "and delays no write")
		scene.SendAndLose(t, c, peer, scene.Out("c"), scene.Out("d"))
		time.Sleep(10 * time.Second)
		scene.Queue(t, c, "e")
		scene.CloseAndWait(c)
		require.Equal(t, int32(5), calls.Load())
	})
}

// Promise 6: each message that Send takes has exactly one receipt, in a mixture of all fates.
func TestOnReceiptIsCalledExactlyOnceForEach(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		o.Outbox.Messages = 5
		o.Outbox.Overflow = reconnect.OutboxDropOldest
		c := s.Open(o)
		peer := s.WantDial().Accept()
		scene.Queue(t, c, "1")
		synctest.Wait()
		scene.SendAndLose(t, c, peer,
			scene.Repeatable("2"), scene.Out("3"), scene.Out("4"), scene.Out("5"), scene.Out("6"))
		scene.Queue(t, c, "7")
		receipts.Want(t, "1: written 1", "2: unknown 1")
		s.WantDial().Accept().FailWrite(scene.ErrNotBegun)
		scene.Queue(t, c, "8")
		synctest.Wait()
		scene.CloseAndWait(c)
		all := map[string]int{}
		for _, r := range receipts.All() {
			all[string(r.Outgoing.Data)]++
			require.Equal(t, r.Fate == reconnect.FateWritten, r.Err == nil)
		}
		require.Equal(t, map[string]int{"1": 1, "2": 1, "3": 1, "4": 1, "5": 1, "6": 1, "7": 1, "8": 1}, all)
		require.False(t, errors.Is(receipts.All()[1].Err, net.ErrClosed))
	})
}

// Promise 6: a receipt does not wait for the messages behind it.
func TestAReceiptComesWhileTheNextMessageWaits(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		c, _ := paced(s, o, budget.Window{N: 1, Per: time.Minute})
		scene.Queue(t, c, "a", "b")
		synctest.Wait()
		receipts.Want(t, "a: written 1")
		time.Sleep(time.Minute)
		receipts.Want(t, "a: written 1", "b: written 1")
	})
}

// Promise 14: OnReceipt may use the Conn.
func TestOnReceiptMaySend(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownFail)
		var c *reconnect.Conn
		o.Outbox.OnReceipt = func(ctx context.Context, r reconnect.Receipt) {
			receipts.Add(ctx, r)
			if string(r.Outgoing.Data) == "a" {
				require.NoError(t, c.Send(scene.Out("b")))
				require.NoError(t, c.Write(context.Background(), scene.Text("c")))
				require.Equal(t, uint64(3), c.Stats().Written)
				c.Kick()
				require.Equal(t, reconnect.StateReady, c.State())
			}
		}
		c = s.Open(o)
		peer := s.WantDial().Accept()
		scene.Queue(t, c, "a")
		require.Equal(t, "a b c", scene.Written(peer))
		receipts.Want(t, "a: written 1", "b: written 1")
	})
}

// OnSession of the next session may wait for OnReceipt, so a Write with its context does not wait
// for that session. A Write in another goroutine does.
func TestWriteWaitsForSessionOutsideOnReceipt(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, _ := scene.Sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		inside, outside := make(chan error, 1), make(chan error, 1)
		o.Outbox.OnReceipt = func(ctx context.Context, _ reconnect.Receipt) {
			inside <- c.Write(ctx, scene.Text("v"))
			go func() { outside <- c.Write(t.Context(), scene.Text("w")) }()
		}
		o.Outbox.Age = time.Second
		c = s.Open(o)
		d := s.WantDial()
		scene.Queue(t, c, "a")
		time.Sleep(2 * time.Second) // until it expires
		err := <-inside
		require.ErrorIs(t, err, reconnect.ErrNotReady)
		require.ErrorContains(t, err, "in OnReceipt nothing waits for a session: write in another goroutine")
		require.Empty(t, outside)
		require.Equal(t, "w", scene.Written(d.Accept()))
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
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				o, receipts := scene.Sending(reconnect.WhenDownKeep)
				var c *reconnect.Conn
				o.Outbox.OnReceipt = func(ctx context.Context, r reconnect.Receipt) {
					end(ctx, c)
					receipts.Add(ctx, r)
				}
				c = s.Open(o)
				peer := s.WantDial().Accept()
				scene.Queue(t, c, "a")
				<-c.Done()
				require.Equal(t, net.ErrClosed, c.Err())
				require.Equal(t, "a", scene.Written(peer))
				receipts.Want(t, "a: written 1")
			})
		})
	}
}

// Promise 11: Shutdown in OnReceipt sends the rest of the queue. It cannot wait for the end,
// which waits for OnReceipt.
func TestShutdownInOnReceiptDrains(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		o, receipts := scene.Sending(reconnect.WhenDownKeep)
		var c *reconnect.Conn
		o.Outbox.OnReceipt = func(ctx context.Context, r reconnect.Receipt) {
			receipts.Add(ctx, r)
			require.ErrorIs(t, c.Shutdown(ctx), context.Canceled)
		}
		c = s.Open(o)
		scene.Queue(t, c, "a", "b", "c")
		peer := s.WantDial().Accept()
		<-c.Done()
		require.Equal(t, "a b c", scene.Written(peer))
		receipts.Want(t, "a: written 1", "b: written 1", "c: written 1")
	})
}

// Promise 11: Done waits for an OnReceipt that does not return, and Overdue names it.
func TestAnOnReceiptThatHangsIsNamed(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		hung := make(chan struct{})
		o, _ := scene.Sending(reconnect.WhenDownKeep)
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
		c = s.Open(o)
		s.WantDial().Accept()
		scene.Queue(t, c, "a")
		synctest.Wait()
		time.AfterFunc(12*time.Second, func() { close(hung) })
		scene.CloseAndWait(c)
		require.Equal(t, 12*time.Second, s.Now())
		require.Equal(t, []report{{"OnReceipt", 5 * time.Second}, {"OnReceipt", 10 * time.Second}}, named)
	})
}

// Promise 10: an OnReceipt that is slow or never returns delays no write, but Send refuses
// messages.
func TestAnOnReceiptThatHangsBoundsTheOutbox(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		hung := make(chan struct{})
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Outbox = reconnect.Outbox{Messages: 3, OnReceipt: func(context.Context, reconnect.Receipt) { <-hung }}
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		for range 4 { // OnReceipt is at the first, and three wait for it
			scene.Queue(t, c, "a")
			synctest.Wait()
		}
		require.Equal(t, "a a a a", scene.Written(peer))
		err := c.Send(reconnect.Outgoing{Message: scene.Text("b")})
		require.ErrorIs(t, err, reconnect.ErrOutboxFull)
		require.ErrorContains(t, err, "3 receipts wait for Outbox.OnReceipt")
		require.NoError(t, c.Write(t.Context(), scene.Text("w")))
		close(hung)
		synctest.Wait()
		scene.Queue(t, c, "b")
		require.Equal(t, "a a a a w b", scene.Written(peer))
	})
}

// Promise 10: the same by bytes.
func TestAnOnReceiptThatHangsBoundsTheBytes(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		hung := make(chan struct{})
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Outbox = reconnect.Outbox{Bytes: 10, OnReceipt: func(context.Context, reconnect.Receipt) { <-hung }}
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		for range 3 {
			scene.Queue(t, c, "12345")
			require.NotEmpty(t, scene.Written(peer))
		}
		require.ErrorIs(t, c.Send(reconnect.Outgoing{Message: scene.Text("b")}), reconnect.ErrOutboxFull)
		close(hung)
	})
}

// After an OnReceipt that ended its goroutine, the next receipt follows.
func TestAnOnReceiptThatDoesNotReturnIsCalledForTheNext(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var reported scene.Notes
		o := scene.WithPolicy(scene.Every(time.Second))
		o.Outbox.OnReceipt = func(_ context.Context, r reconnect.Receipt) {
			reported.Add(string(r.Outgoing.Data))
			runtime.Goexit()
		}
		c := s.Open(&o)
		s.WantDial().Accept()
		scene.Queue(t, c, "a", "b", "c")
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "c"}, reported.All())
	})
}

// awaitingReceipts returns options whose OnReceipt takes a second for each message, and whose
// OnSession reports how long AwaitReceipts took.
func awaitingReceipts(waited chan<- time.Duration, failed chan<- error) reconnect.Options {
	o := scene.WithPolicy(scene.Every(0))
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
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		waited, failed := make(chan time.Duration, 2), make(chan error, 2)
		o := awaitingReceipts(waited, failed)
		c := s.Open(&o)
		peer := s.WantDial().Accept()
		require.Zero(t, <-waited)
		require.NoError(t, <-failed)
		for range 3 {
			require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("x")}))
		}
		synctest.Wait()
		require.Len(t, peer.Written(), 3)
		peer.Fail(scene.ErrLost)
		synctest.Wait()
		// AwaitReceipts does not wait for this one.
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("queued")}))
		s.WantDial().Accept()
		require.Equal(t, 3*time.Second, <-waited)
		require.NoError(t, <-failed)
	})
}

func TestAwaitReceiptsEndsWithOnSession(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		waited, failed := make(chan time.Duration, 2), make(chan error, 2)
		o := awaitingReceipts(waited, failed)
		o.Run.Policy = scene.Every(time.Hour)
		o.OpenTimeout = 100 * time.Millisecond
		c := s.Open(&o)
		s.WantDial().Accept()
		require.NoError(t, <-failed)
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("x")}))
		synctest.Wait()
		c.Redial(1, scene.ErrLost)
		synctest.Wait()
		c.Kick()
		<-waited
		s.WantDial().Accept()
		require.ErrorIs(t, <-failed, context.DeadlineExceeded)
		require.Equal(t, 100*time.Millisecond, <-waited)
	})
}
