package reconnect_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// hoard is a conn.BlockNotifier that says that it waits when the test wants it to.
type hoard struct {
	*conntest.Fake
	tell func()
}

func (h *hoard) BeforeBlock(f func()) bool { h.tell = f; return true }

// hoarding returns a Conn over a hoard, and what comes of one Read of it.
func hoarding(t *testing.T, in reconnect.Inbox) (*hoard, <-chan string) {
	h := &hoard{Fake: conntest.NewFake(nil)}
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return h, nil }), &reconnect.Options{Inbox: in})
	require.NoError(t, err)
	t.Cleanup(func() { quit(c) })
	got := make(chan string, 1)
	go func() {
		m, err := c.Read(context.Background(), nil)
		if err != nil {
			got <- err.Error()
			return
		}
		got <- string(m.Data)
	}()
	synctest.Wait()
	return h, got
}

// What comes in one burst wakes the reader once: when the connection waits.
func TestMessagesAreCollectedUntilTheConnectionWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, got := hoarding(t, reconnect.Inbox{})
		deliver(h.Fake, 1, 15)
		require.Empty(t, got)
		h.tell()
		require.Equal(t, "1", <-got)
	})
}

func TestABatchIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, got := hoarding(t, reconnect.Inbox{})
		deliver(h.Fake, 1, 16)
		require.Equal(t, "1", <-got)
	})
}

// A full inbox is told at once, since the supervisor may block on it.
func TestAFullInboxIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, got := hoarding(t, reconnect.Inbox{Messages: 2})
		deliver(h.Fake, 1, 2)
		require.Equal(t, "1", <-got)
	})
}

// Promise 5.
func TestALossIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, got := hoarding(t, reconnect.Inbox{})
		deliver(h.Fake, 1, 1)
		h.Fail(errLost)
		require.Equal(t, "1", <-got)
	})
}

// A connection that cannot tell when it waits has nothing collected.
func TestWithoutAWaiterEachMessageIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		got := make(chan string, 1)
		go func() {
			m, _ := c.Read(context.Background(), nil)
			got <- string(m.Data)
		}()
		deliver(s.wantDial().accept(), 1, 1)
		require.Equal(t, "1", <-got)
	})
}
