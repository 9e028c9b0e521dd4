package reconnect_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// Promise 11: after Close nothing more is handed on, though it was there.
func TestNoMessageComesAfterCloseInTheHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		var c *reconnect.Conn
		seen := 0
		c = s.open(&reconnect.Options{OnMessage: func(context.Context, reconnect.Message) { seen++; c.Close() }})
		s.wantDial().accept().Deliver(text("1"), text("2"), text("3"))
		<-c.Done()
		require.Equal(t, 1, seen)
	})
}

// The same, for pull.
func TestNoMessageComesFromReadAfterClose(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		deliver(s.wantDial().accept(), 1, 3)
		c.Close()
		m, err := c.Read(t.Context(), nil)
		require.Error(t, err, "got %q", m.Data)
	})
}

// Promise 8: a handler that is quick enough keeps its place at the connection,
// though each look of the timer finds it at work.
func TestAHandlerThatIsQuickEnoughReadsItself(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		var c *reconnect.Conn
		handled := uint64(0)
		c = s.open(&reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {
			handled++
			time.Sleep(9 * time.Second)
			require.Equal(t, handled, c.Stats().Received, "nobody reads ahead")
		}})
		peer := s.wantDial().accept()
		deliver(peer, 1, 20)
		time.Sleep(200 * time.Second)
		synctest.Wait()
		require.Equal(t, uint64(20), handled)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// meter is a connection that notes the largest buffer it was given to read into.
type meter struct {
	*conntest.Fake
	largest int
}

func (m *meter) Read(buf []byte) (conn.Message, error) {
	m.largest = max(m.largest, cap(buf))
	return m.Fake.Read(buf)
}

// Promise 10: one large message does not cost memory ever after.
func TestALargeBufferIsNotKept(t *testing.T) {
	for name, o := range map[string]*reconnect.Options{
		"push":    {OnMessage: func(context.Context, reconnect.Message) {}},
		"pull":    {Inbox: reconnect.Inbox{Overflow: reconnect.OverflowDropOldest, Messages: 1}},
		"discard": {Inbox: reconnect.Inbox{Overflow: reconnect.OverflowDiscard}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &meter{Fake: conntest.NewFake(nil)}
				c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return m, nil }), o)
				require.NoError(t, err)
				defer quit(c)
				m.Deliver(conn.Message{Type: conn.Binary, Data: make([]byte, 1<<20)})
				deliver(m.Fake, 1, 20)
				require.LessOrEqual(t, m.largest, 64<<10)
			})
		})
	}
}
