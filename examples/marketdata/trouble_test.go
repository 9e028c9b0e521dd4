//go:build !js

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/books"
	"github.com/redial-go/redial/examples/venue"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
	"github.com/redial-go/redial/reconnect/subscription"
)

// audited is a tour whose client is in sync. An audit checks each event.
type audited struct {
	*tour
	wanted []string     // the books that the client is to have
	breaks atomic.Int64 // how often a book became stale

	mu   sync.Mutex // guards what follows
	last map[string]books.Event
	err  error // the first error
}

func connected(t *testing.T) *audited {
	m, err := openMarket(venue.New(&venue.Options{Tick: time.Millisecond}))
	require.NoError(t, err)
	t.Cleanup(m.close)
	c, err := books.Follow(m.dialer(), &reconnect.Options{
		Liveness: reconnect.Liveness{Limit: 3 * time.Second},
		Rotate:   reconnect.Rotation{Drain: 50 * time.Millisecond},
		Run:      reconnect.RunOptions{Policy: &backoff.Exponential{Base: 20 * time.Millisecond, Cap: 20 * time.Millisecond}},
	})
	require.NoError(t, err)
	a := &audited{
		tour: &tour{
			market: m,
			client: c,
			log:    slog.New(slog.DiscardHandler),
			report: newReport(io.Discard),
		},
		last: map[string]books.Event{},
	}
	read := make(chan error, 1)
	go func() { read <- c.Read(context.Background(), a.check) }() // <-read waits for it
	t.Cleanup(func() { c.Feed.Close(); <-read })
	a.want(venue.Symbols...)
	a.await(t, a.inSync)
	return a
}

func (a *audited) want(symbols ...string) {
	a.wanted = symbols
	a.client.Want(symbols...)
}

func (a *audited) await(t *testing.T, right func() bool) {
	t.Helper()
	require.NoError(t, a.until(t.Context(), right))
}

// inSync reports whether the client has a valid book of the ready session for each symbol that it
// wants, and the venue agrees. Skip may leave out an update that
// the client does not miss: one for a subscription or a connection that is just ending.
func (a *audited) inSync() bool {
	leaving := func(symbol string) bool { return a.client.Set.State(symbol) == subscription.StateLeaving }
	if slices.ContainsFunc(venue.Symbols, leaving) || a.market.Clients() != 1 {
		return false
	}
	s := a.client.Feed.Status()
	for _, symbol := range a.wanted {
		if b := a.client.View(symbol); !b.Valid() || b.Session != s.Session {
			return false
		}
	}
	return s.State == reconnect.StateReady && a.client.Set.Stats().Held == len(a.wanted)
}

// survives has the venue misbehave, and waits until all books are right again.
func (a *audited) survives(t *testing.T, begin func()) {
	t.Helper()
	before := a.breaks.Load()
	begin()
	a.await(t, func() bool { return a.breaks.Load() > before && a.inSync() })
}

// rotates has the client replace its session. No book may become stale by that.
func (a *audited) rotates(t *testing.T) {
	t.Helper()
	before, session := a.breaks.Load(), a.client.Feed.Status().Session
	a.client.Feed.Rotate(session, reconnect.Advice{})
	a.await(t, func() bool { return a.client.Feed.Status().Session > session && a.inSync() })
	require.Equal(t, before, a.breaks.Load())
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
		a.breaks.Add(1)
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
		a.survives(t, a.market.Cut)
		a.survives(t, a.market.Skip)
		a.survives(t, func() { a.market.Shut(1012, "restart") })
		a.rotates(t)
	}
	a.market.Halt()
	a.await(t, a.equal)
	a.mu.Lock()
	defer a.mu.Unlock()
	require.NoError(t, a.err)
}

func TestTheClientSurvivesEachTrouble(t *testing.T) {
	t.Parallel()
	a := connected(t)
	for i, trouble := range a.market.troubles() {
		a.want(append([]string{"GO-USD"}, venue.Symbols[:i%3]...)...) // other books each time
		a.await(t, a.inSync)
		a.survives(t, func() {
			trouble.begin()
			if trouble.end != nil {
				time.Sleep(100 * time.Millisecond)
				require.NoError(t, trouble.end())
			}
		})
	}
	a.rotates(t)
}

func TestABookThatIsBehindIsNotEqual(t *testing.T) {
	a := connected(t)
	a.market.Halt()
	a.await(t, a.equal)
	other, err := openMarket(venue.New(&venue.Options{Tick: time.Hour}))
	require.NoError(t, err)
	defer other.close()
	a.market = other
	require.False(t, a.equal())
	a.client.Want("C-USD", "GO-USD")
	require.False(t, a.valid())
}

func TestAGapMakesOneBookStale(t *testing.T) {
	a := connected(t)
	a.survives(t, a.market.Skip)
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
	a.market.kill()
	cancel(errors.New("enough"))
	require.EqualError(t, a.until(ctx, func() bool { return a.breaks.Load() > 0 && a.valid() }), "enough")
}

func TestATourThatIsInterruptedMakesNoMoreTrouble(t *testing.T) {
	a := connected(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	var log strings.Builder
	a.log = slog.New(slog.NewTextHandler(&log, nil))
	require.EqualError(t, a.run(ctx), "enough")
	require.Empty(t, log.String())
}
