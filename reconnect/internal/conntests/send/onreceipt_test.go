package send_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// SendWait in OnReceipt does not wait for room among the receipts, because nothing else could make
// it. It fails immediately, and the other senders continue.
func TestSendWaitInOnReceiptFailsIfReceiptsAreFull(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		var c *reconnect.Conn
		var receipts scene.ReceiptLog
		result := make(chan error, 1)
		o := &reconnect.Options{WhenDown: reconnect.WhenDownKeep}
		o.Outbox = reconnect.Outbox{Messages: 2, OnReceipt: func(ctx context.Context, r reconnect.Receipt) {
			receipts.Add(ctx, r)
			if len(result) == 0 && r.Outgoing.Tag == "first" {
				time.Sleep(time.Second) // the receipts of the others wait
				result <- c.SendWait(ctx, reconnect.Outgoing{Message: scene.Text("again")})
			}
		}}
		c = s.Open(o)
		s.WantDial().Accept()
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("m"), Tag: "first"}))
		synctest.Wait()
		var senders sync.WaitGroup
		for range 10 {
			senders.Go(func() {
				_ = c.SendWait(t.Context(), reconnect.Outgoing{Message: scene.Text("x")})
			})
		}
		senders.Wait()
		err := <-result
		require.ErrorIs(t, err, reconnect.ErrOutboxFull)
		require.ErrorContains(t, err,
			"receipts wait for Outbox.OnReceipt: SendWait does not wait in OnReceipt: send in another goroutine")
		require.Len(t, receipts.All(), 11)
	})
}

// Nor does it wait for room in the queue, which only a session makes whose OnSession may wait for
// OnReceipt.
func TestSendWaitInOnReceiptDoesNotWait(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		var c *reconnect.Conn
		result := make(chan error, 1)
		o := scene.WithPolicy(scene.Every(time.Second))
		o.WhenDown = reconnect.WhenDownKeep
		o.OnSession = func(_ context.Context, op *reconnect.Opening) error { return op.AwaitReceipts() }
		o.Outbox = reconnect.Outbox{Messages: 2, OnReceipt: func(ctx context.Context, r reconnect.Receipt) {
			if r.Fate == reconnect.FateUnknown {
				result <- c.SendWait(ctx, reconnect.Outgoing{Message: scene.Text("again")})
			}
		}}
		c = s.Open(&o)
		peer := s.WantDial().AcceptHeld()
		scene.Queue(t, c, "order")
		synctest.Wait()
		scene.Queue(t, c, "a", "b")
		peer.Fail(scene.ErrLost) // the fate of the order is unknown
		s.WantDial().Accept()
		require.NoError(t, c.AwaitReady(t.Context()))
		err := <-result
		require.ErrorIs(t, err, reconnect.ErrOutboxFull)
		require.ErrorContains(t, err, "SendWait does not wait in OnReceipt: send in another goroutine")
	})
}

// OnSession may wait for OnReceipt, by AwaitReceipts. So a Write in OnReceipt does not wait for a
// session, even if one was ready when it began.
func TestOnReceiptDoesNotWaitForSession(t *testing.T) {
	write := func(ctx context.Context, c *reconnect.Conn) error { return c.Write(ctx, scene.Text("w")) }
	await := func(ctx context.Context, c *reconnect.Conn) error {
		_, err := c.AwaitSession(ctx)
		return err
	}
	for name, call := range map[string]func(ctx context.Context, c *reconnect.Conn) error{
		"Write": write, "AwaitSession": await,
	} {
		for _, down := range []reconnect.WhenDown{reconnect.WhenDownWait, reconnect.WhenDownKeep} {
			t.Run(name, func(t *testing.T) {
				scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
					s.Fake = scene.Alive
					var c *reconnect.Conn
					result := make(chan error, 1)
					o := scene.WithPolicy(scene.Every(time.Second))
					o.WhenDown = down
					o.OnSession = func(_ context.Context, op *reconnect.Opening) error { return op.AwaitReceipts() }
					o.Outbox.OnReceipt = func(ctx context.Context, r reconnect.Receipt) {
						if r.Fate != reconnect.FateWritten {
							result <- call(ctx, c)
						}
					}
					c = s.Open(&o)
					peer := s.WantDial().AcceptHeld()
					scene.Queue(t, c, "order")
					synctest.Wait()
					peer.Fail(scene.ErrLost) // its fate is unknown
					s.WantDial().Accept()
					require.NoError(t, c.AwaitReady(t.Context()))
					require.ErrorIs(t, <-result, reconnect.ErrNotReady)
				})
			})
		}
	}
}
