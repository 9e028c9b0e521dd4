//go:build !js

package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/books"
	"github.com/redial-go/redial/examples/venue"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
)

// audited is a tour whose client is in sync. An audit checks each event.
type audited struct {
	*tour
	mu   sync.Mutex // guards what follows
	last map[string]books.Event
	err  error // the first error
}

func connected(t *testing.T) *audited {
	m, err := openMarket(venue.New(&venue.Options{Tick: time.Millisecond}))
	require.NoError(t, err)
	t.Cleanup(m.close)
	c, err := books.Follow(m.dialer(), &reconnect.Options{
		Rotate: reconnect.Rotation{Drain: 50 * time.Millisecond},
		Run:    reconnect.RunOptions{Policy: &backoff.Exponential{Base: 20 * time.Millisecond, Cap: 20 * time.Millisecond}},
	})
	require.NoError(t, err)
	a := &audited{tour: &tour{market: m, client: c, log: slog.New(slog.DiscardHandler)}, last: map[string]books.Event{}}
	read := make(chan error, 1)
	go func() { read <- c.Read(context.Background(), a.check) }() // <-read waits for it
	t.Cleanup(func() { c.Feed.Close(); <-read })
	a.want([]string{"C-USD", "GO-USD"})
	a.await(t, a.inSync)
	return a
}

func (a *audited) await(t *testing.T, right func() bool) {
	t.Helper()
	require.NoError(t, a.until(t.Context(), "not so", right))
}

// check notes it if an update is applied to a stale book, twice or before its turn, or after one of
// a later session.
func (a *audited) check(e *books.Event) {
	a.seen(e)
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.last[e.Key]
	switch e.Kind {
	case bridge.EventStale:
		was.Kind = bridge.EventStale
		a.last[e.Key] = was
	case bridge.EventLive, bridge.EventSnapshot:
		stale := was.Kind == bridge.EventStale || was.Session == 0
		if a.err == nil && (e.Session < was.Session || e.Kind == bridge.EventLive && (stale || e.Last != was.Last+1)) {
			a.err = errors.New("wrong: " + e.Kind.String() + " after " + was.Kind.String())
		}
		a.last[e.Key] = *e
	}
}

func TestEachUpdateIsAppliedOnceAndInOrder(t *testing.T) {
	a := connected(t)
	for range 3 {
		for _, trouble := range []func(){a.market.Cut, a.market.Skip, func() { a.market.Shut(1012, "restart") }} {
			before := a.breaks.Load()
			trouble()
			a.await(t, func() bool { return a.breaks.Load() > before && a.inSync() })
		}
		session := a.client.Feed.Status().Session
		a.client.Feed.Rotate(session, reconnect.Advice{})
		a.await(t, func() bool { return a.client.Feed.Status().Session > session && a.inSync() })
	}
	a.market.Halt()
	a.await(t, a.equal)
	a.mu.Lock()
	defer a.mu.Unlock()
	require.NoError(t, a.err)
}

func TestABookThatIsBehindIsNotEqual(t *testing.T) {
	a := connected(t)
	a.market.Halt()
	a.await(t, a.equal)
	a.wanted = []string{"ADA-USD"} // of which there is none
	require.False(t, a.equal())
	other, err := openMarket(venue.New(&venue.Options{Tick: time.Hour}))
	require.NoError(t, err)
	defer other.close()
	a.wanted, a.market = []string{"GO-USD"}, other
	require.False(t, a.equal())
}

func TestAGapMakesOneBookStale(t *testing.T) {
	a := connected(t)
	a.market.Skip()
	a.await(t, func() bool { return a.breaks.Load() > 0 && a.inSync() })
	require.EqualValues(t, 1, a.breaks.Load())
	require.EqualValues(t, 1, a.client.Feed.Status().Session)
}

func TestAnUnknownSymbolCostsItselfOnly(t *testing.T) {
	a := connected(t)
	a.client.Want("ADA-USD", "BAD-USD", "C-USD")
	err := a.client.Set.Wait(t.Context(), "BAD-USD")
	require.EqualError(t, err, `subscription: rejected in session 1: there is no book "BAD-USD"`)
	a.wanted = []string{"ADA-USD", "C-USD"}
	a.await(t, a.inSync)
}

func TestAVenueThatStaysAwayFailsTheTour(t *testing.T) {
	a := connected(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	a.await(t, func() bool { return a.until(ctx, "", a.calm) == nil })
	err := a.survive(ctx, trouble{name: "stays away", begin: func() { a.market.kill(); cancel(errors.New("enough")) }})
	require.EqualError(t, err, "the client is not in sync: enough")
}
