package rotate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The peers together get the messages of each goroutine in the order in which they were accepted,
// by Send or by Write, though sessions are replaced and lost all the time.
func TestMessagesGoOutInTheirOrderWhileSessionsComeAndGo(t *testing.T) {
	const senders, messages = 2, 4000
	for name, way := range overlaps {
		t.Run(name, func(t *testing.T) {
			d := &order{r: rand.New(rand.NewPCG(1, 2))}
			o := scene.WithPolicy(scene.Every(time.Microsecond))
			o.WhenDown, o.Inbox.Overflow = reconnect.WhenDownKeep, reconnect.InboxDiscard
			o.Rotate = reconnect.Rotation{Overlap: way, Drain: 100 * time.Microsecond}
			o.Outbox.OnReceipt = func(context.Context, reconnect.Receipt) {}
			c, err := reconnect.New(d, &o)
			require.NoError(t, err)
			defer scene.CloseAndWait(c)
			var all sync.WaitGroup
			for n := range senders {
				all.Go(func() { sendInOrder(t, c, fmt.Sprint(n), messages) })
			}
			sent := make(chan struct{})
			go func() { defer close(sent); all.Wait() }()
			d.trouble(c, sent)
			_, unsent := errors.AsType[*reconnect.UnsentError](c.Shutdown(t.Context()))
			require.False(t, unsent)
			for n := range senders {
				d.wantOrder(t, fmt.Sprint(n), messages)
			}
		})
	}
}

// sendInOrder sends numbers with a name, by Send and by Write.
func sendInOrder(t *testing.T, c *reconnect.Conn, name string, messages int) {
	for i := range messages {
		m := scene.Text(fmt.Sprintf("%s %d", name, i))
		var err error
		if i%3 == 0 {
			err = c.Write(t.Context(), m)
		} else {
			err = c.SendWait(t.Context(), reconnect.Outgoing{Message: m})
		}
		if err != nil && i%3 != 0 { // a Write may have begun when its session was lost
			t.Errorf("%s: %v", m.Data, err)
		}
		if i%10 == 0 {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// order is a dialer that keeps its connections in the order of their sessions.
type order struct {
	mu    sync.Mutex
	r     *rand.Rand
	peers []*conntest.Fake
}

func (d *order) Dial(context.Context) (conn.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fake := conntest.NewFake(&conntest.FakeOptions{Pings: true, Transport: d.r.IntN(2) == 0})
	if d.r.IntN(4) == 0 {
		fake.FailWriteAfter(d.r.IntN(100), fmt.Errorf("%w: %w", conn.ErrNotWritten, scene.ErrLost))
	}
	d.peers = append(d.peers, fake)
	return fake.Conn(), nil
}

// trouble has sessions replaced, and lost, until all is sent.
func (d *order) trouble(c *reconnect.Conn, sent <-chan struct{}) {
	for {
		select {
		case <-sent:
			return
		case <-time.After(20 * time.Microsecond):
		}
		c.Rotate(c.Status().Session, reconnect.Advice{})
		d.mu.Lock()
		if n := len(d.peers); n > 1 && d.r.IntN(4) == 0 {
			d.peers[n-1-d.r.IntN(2)].Fail(scene.ErrLost)
		}
		d.mu.Unlock()
	}
}

// wantOrder asserts that the peers have got the messages with a name in their order, most of
// them, and none twice.
func (d *order) wantOrder(t *testing.T, name string, messages int) {
	got, last := 0, -1
	for session, peer := range d.peers {
		for _, m := range peer.Written() {
			var from string
			var i int
			_, err := fmt.Sscan(string(m.Data), &from, &i)
			require.NoError(t, err)
			if from == name {
				require.Greater(t, i, last, "%s in session %d", name, session+1)
				got, last = got+1, i
			}
		}
	}
	require.Greater(t, got, messages/2)
}
