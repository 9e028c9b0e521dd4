package reconnect

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// orderly is a dialer whose peers note what they get.
type orderly struct {
	mu    sync.Mutex
	peers []*conntest.Fake
}

func (d *orderly) Dial(context.Context) (conn.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers = append(d.peers, conntest.NewFake(&conntest.FakeOptions{Pings: true, Idles: true}))
	return d.peers[len(d.peers)-1].Conn(), nil
}

// session returns the number of the session that has brought a message, 0 if none has.
func (d *orderly) session(text string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return 1 + slices.IndexFunc(d.peers, func(f *conntest.Fake) bool {
		return slices.ContainsFunc(f.Written(), func(m conn.Message) bool { return string(m.Data) == text })
	})
}

// The next session gets the messages of Write and of Send from the same moment on. The test
// holds the lock of the outbox, as other senders do, while that moment comes.
func TestASendDoesNotGoByTheOldSessionAfterAWriteByTheNext(t *testing.T) {
	for range 20 {
		d := &orderly{}
		receipts := make(chan Receipt, 1)
		c, err := New(d, &Options{Outbox: Outbox{OnReceipt: func(_ context.Context, r Receipt) { receipts <- r }}})
		require.NoError(t, err)
		require.NoError(t, c.AwaitReady(t.Context()))
		require.NoError(t, c.Send(Out{Message: conn.TextMessage("makes the outbox")}))
		<-receipts
		q := c.sender.outbox()
		for q.mu.Lock(); q.link.flushing; q.mu.Lock() { // the flusher would keep the slot from Write
			q.mu.Unlock()
			time.Sleep(time.Microsecond)
		}
		c.Rotate(1, Advice{})
		for c.sender.ready().session != 2 && c.sender.mu.TryLock() { // attach has not begun
			c.sender.mu.Unlock()
			time.Sleep(10 * time.Microsecond)
		}
		require.NoError(t, c.Write(t.Context(), conn.TextMessage("write")))
		q.mu.Unlock()
		require.NoError(t, c.Send(Out{Message: conn.TextMessage("send")}))
		<-receipts
		require.NoError(t, c.Close())
		<-c.Done()
		require.Positive(t, d.session("write"))
		require.LessOrEqual(t, d.session("write"), d.session("send"))
	}
}
