package reconnect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/link"
)

// A session that comes to lead is stored twice: for the messages, and for the status. Rotate and Check ask
// for both. Between the two stores they must wait, and not do nothing. The test is in no bubble, because a
// goroutine that waits for a lock keeps a bubble from going on.
func TestRotateAndCheckWaitWhileASessionComesToLead(t *testing.T) {
	c := new(Conn)
	first, next := &served{Link: link.Link{Session: 1}}, &served{Link: link.Link{Session: 2}}
	c.state.start(&c.life, &c.first.seat)
	c.state.link.Store(first)
	c.sender.link.Store(&first.Link)
	require.Same(t, first, c.readySession())
	var seat seat
	c.state.rotating(&seat)
	seat.link.Store(next)
	found := make(chan *served, 1)
	c.state.succeed(&seat, next, func() {
		c.sender.link.Store(&next.Link)
		go func() { found <- c.readySession() }() // <-found waits for it
		select {
		case l := <-found:
			t.Errorf("it did not wait, and found a session: %v", l != nil)
			found <- l
		case <-time.After(50 * time.Millisecond):
		}
	})
	require.True(t, next == <-found)
}
