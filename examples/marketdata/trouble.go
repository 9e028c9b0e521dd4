//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/examples/books"
	"github.com/redial-go/redial/examples/venue"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
)

// trouble is a way in which the venue misbehaves.
type trouble struct {
	name    string
	begin   func()
	lasts   time.Duration // until end is called
	end     func() error  // nil: it is over at once
	symbols []string      // what the client wants from then on; nil: as before
}

func (m *market) troubles() []trouble {
	cut := func(d venue.Door) func() { return func() { m.SetDoor(d); m.Cut() } }
	welcome := func() error { m.SetDoor(venue.Open); return nil }
	return []trouble{
		{"is killed and comes back", m.kill, time.Second, m.start, nil},
		{"falls silent (half-open)", m.Mute, 0, nil, nil},
		{"closes with 1012", func() { m.Shut(1012, "restart") }, 0, nil, venue.Symbols},
		{"answers 503, Retry-After: 1", cut(venue.Busy), time.Second, welcome, nil},
		{"accepts and drops", cut(venue.Drops), time.Second, welcome, []string{"ADA-USD", "GO-USD"}},
		{"sends an oversized message", func() { m.Shout(2 << 20) }, 0, nil, nil},
		{"leaves an update out", m.Skip, 0, nil, nil},
	}
}

// tour leads a client through all troubles, and then through a rotation. It does not depend on the
// speed of the machine: each step waits until it sees what it expects.
type tour struct {
	market *market
	client *books.Client
	log    *slog.Logger
	wanted []string     // the books that the client is to have
	breaks atomic.Int64 // how often a book got stale
}

const (
	stepLimit   = 10 * time.Second
	stableAfter = time.Second // a session that was ready for so long has ended the outage
)

// seen notes what has happened to a book. The reader calls it.
func (t *tour) seen(e *books.Event) {
	switch e.Kind {
	case bridge.EventStale:
		t.breaks.Add(1)
		t.log.Info("book is stale", "book", e.Key, "cause", e.Err)
	case bridge.EventHealed:
		t.log.Info("book is right", "book", e.Key, "seq", e.Last)
	}
}

// want changes what the client wants.
func (t *tour) want(symbols []string) {
	t.wanted = symbols
	t.client.Want(symbols...)
	t.log.Info("client wants", "books", symbols)
}

// run returns an error if a trouble was not survived, or if a book is wrong in the end.
func (t *tour) run(ctx context.Context) error {
	t.want([]string{"C-USD", "GO-USD"})
	for _, trouble := range t.market.troubles() {
		if trouble.symbols != nil {
			t.want(trouble.symbols)
		}
		if err := t.survive(ctx, trouble); err != nil {
			return fmt.Errorf("the venue %s: %w", trouble.name, err)
		}
	}
	if err := t.rotate(ctx); err != nil {
		return fmt.Errorf("rotation: %w", err)
	}
	t.market.Halt()
	if err := t.until(ctx, "the books are not those of the venue", t.equal); err != nil {
		return err
	}
	t.log.Info("ok: the client survived all, the rotation lost nothing, and the books are those of the venue")
	return nil
}

// survive has the venue misbehave, and waits until all books are right again.
func (t *tour) survive(ctx context.Context, trouble trouble) error {
	if err := t.until(ctx, "the client was not in sync before", t.calm); err != nil {
		return err
	}
	before, start := t.breaks.Load(), time.Now()
	t.log.Warn("the venue " + trouble.name)
	trouble.begin()
	if trouble.end != nil {
		select {
		case <-time.After(trouble.lasts):
		case <-ctx.Done():
		}
		t.log.Warn("the venue behaves again")
		if err := trouble.end(); err != nil {
			return err
		}
	}
	if err := t.until(ctx, "the client is not in sync", func() bool { return t.breaks.Load() > before && t.inSync() }); err != nil {
		return err
	}
	t.log.Info("all books are right", "after", time.Since(start).Round(time.Millisecond))
	return nil
}

// rotate has the client replace its session, as it does each day. No book may get stale by that.
func (t *tour) rotate(ctx context.Context) error {
	if err := t.until(ctx, "the client was not in sync before", t.calm); err != nil {
		return err
	}
	before, session := t.breaks.Load(), t.client.Feed.Status().Session
	t.log.Info("the client replaces its session", "session", session)
	t.client.Feed.Rotate(session, reconnect.Advice{})
	switched := func() bool { return t.client.Feed.Status().Session > session && t.inSync() }
	if err := t.until(ctx, "the client did not switch", switched); err != nil {
		return err
	}
	if t.breaks.Load() > before {
		return errors.New("it has made books stale")
	}
	return nil
}

// inSync reports whether the client has a valid book of the ready session for each symbol that it
// wants, and the venue agrees.
func (t *tour) inSync() bool {
	s := t.client.Feed.Status()
	for _, symbol := range t.wanted {
		if b := t.client.View(symbol); !b.Valid() || b.Session != s.Session {
			return false
		}
	}
	return s.State == reconnect.StateReady && t.client.Set.Stats().Held == len(t.wanted)
}

// calm reports whether the client has been in sync for so long that its next wait is the first again.
func (t *tour) calm() bool {
	return t.inSync() && time.Since(t.client.Feed.Status().Since) > stableAfter
}

// equal reports whether the client's books are those of the venue.
func (t *tour) equal() bool {
	for _, symbol := range t.wanted {
		ours, theirs := t.client.View(symbol), t.market.Book(symbol)
		if !ours.Valid() || ours.Seq != theirs.Seq || !maps.Equal(ours.Bids, theirs.Bids) || !maps.Equal(ours.Asks, theirs.Asks) {
			return false
		}
	}
	return true
}

// until waits until right returns true. If that takes too long, it returns an error that begins
// with wrong.
func (t *tour) until(ctx context.Context, wrong string, right func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepLimit, fmt.Errorf("for %v", stepLimit))
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !right() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", wrong, context.Cause(ctx))
		}
	}
	return nil
}
