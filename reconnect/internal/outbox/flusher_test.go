package outbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

// A message that is accepted while the next link is attached goes by the next link, because a Write
// may have gone by it before.
func TestAMessageThatComesWhileALinkIsAttachedGoesByThatLink(t *testing.T) {
	for range 20 {
		var life link.Life
		receipts := make(chan Receipt, 1)
		q := New(Options{
			Limits:  queue.Limits{Messages: 10, Bytes: 100},
			Receipt: func(r *Receipt) { receipts <- *r },
			Await:   func(done <-chan struct{}, _ string) { <-done },
		}, &life, nil, nil, 0, false)
		q.Attach(ready(&life, 1), func() {})
		q.Attach(ready(&life, 2), func() {
			go q.Accept(&Outgoing{Message: conn.TextMessage("send")}) // joined by its receipt
			time.Sleep(time.Millisecond)                              // so that it is waiting for the lock, or is accepted too early
		})
		require.Equal(t, uint64(2), (<-receipts).Session)
		life.End()
		q.End()
	}
}

// ready returns a link that is ready.
func ready(life *link.Life, session uint64) *link.Link {
	l := &link.Link{Session: session}
	l.Begin(conntest.NewFake(nil).Conn(), life, budget.Window{})
	life.Counts.Sessions.Store(session)
	return l
}
