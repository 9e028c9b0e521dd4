//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"time"

	"github.com/redial-go/redial/examples/books"
	"github.com/redial-go/redial/examples/venue"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
)

// trouble is a way in which the venue misbehaves.
type trouble struct {
	name  string
	begin func()
	end   func() error // called when the trouble has lasted; nil: it is over at once
}

// lasts is how long a trouble lasts. It is longer than the client's longest wait, which is a second, so that the client always dials meanwhile.
const lasts = 1200 * time.Millisecond

func (m *market) troubles() []trouble {
	cut := func(d venue.Door) func() { return func() { m.SetDoor(d); m.Cut() } }
	welcome := func() error { m.SetDoor(venue.Open); return nil }
	return []trouble{
		{"is killed and comes back", m.kill, m.start},
		{"falls silent (half-open)", m.Mute, nil},
		{"closes with 1012", func() { m.Shut(1012, "restart") }, nil},
		{"answers 503, Retry-After: 1", cut(venue.Busy), welcome},
		{"accepts and drops", cut(venue.Drops), welcome},
		{"sends an oversized message", func() { m.Shout(2 << 20) }, nil},
		{"leaves an update out", m.Skip, nil},
	}
}

// tour leads a client through all troubles, and then through a rotation.
type tour struct {
	market *market
	client *books.Client
	log    *slog.Logger
	report *report
}

// seen logs the end and the return of a book, but not the end by Shutdown. The reader calls it.
func (t *tour) seen(e *books.Event) {
	t.report.event(e)
	switch e.Kind {
	case bridge.EventStale:
		if ownEnd(e.Err) {
			return
		}
		t.log.Info("book is stale", "book", e.Key, "cause", e.Err)
	case bridge.EventHealed:
		t.log.Info("book is right", "book", e.Key, "seq", e.Last)
	}
}

// ownEnd reports whether err is the seam of a Shutdown or a Close.
func ownEnd(err error) bool {
	seam, ok := errors.AsType[*reconnect.Seam](err)
	return ok && (seam.Reason == backoff.ReasonShutdown || errors.Is(seam.Cause, net.ErrClosed))
}

// run returns an error if the client does not survive a trouble, or if its books are not those of the
// venue in the end.
func (t *tour) run(ctx context.Context) error {
	t.client.Want(venue.Symbols...)
	for _, trouble := range t.market.troubles() {
		sleep(ctx, time.Second)
		if err := t.until(ctx, t.valid); err != nil {
			return err
		}
		t.log.Warn("the venue " + trouble.name)
		t.report.begin("the venue " + trouble.name)
		trouble.begin()
		sleep(ctx, lasts)
		if trouble.end != nil {
			t.log.Warn("the venue behaves again")
			if err := trouble.end(); err != nil {
				return err
			}
		}
	}
	sleep(ctx, time.Second)
	if err := t.until(ctx, t.valid); err != nil {
		return err
	}
	t.log.Info("the client replaces its session, as it does each day")
	t.report.begin("the client replaces its session")
	t.client.Feed.Rotate(t.client.Feed.Status().Session, reconnect.Advice{})
	sleep(ctx, time.Second)
	t.market.Halt()
	if err := t.until(ctx, t.equal); err != nil {
		return err
	}
	t.log.Info("ok: the books are those of the venue")
	t.report.table()
	fmt.Fprintln(t.report.out, "ok: the books are those of the venue")
	return nil
}

// valid reports whether the client has all books, and nothing is missing in them.
func (t *tour) valid() bool {
	for _, symbol := range venue.Symbols {
		if b := t.client.View(symbol); !b.Valid() {
			return false
		}
	}
	return true
}

// equal reports whether the books are those of the venue.
func (t *tour) equal() bool {
	for _, symbol := range venue.Symbols {
		if !reflect.DeepEqual(t.client.View(symbol).Book, *t.market.Book(symbol)) {
			return false
		}
	}
	return t.valid()
}

// until waits until right returns true, for 30 s at most. When ctx has ended it returns the cause.
func (t *tour) until(ctx context.Context, right func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("the books are not right after 30 s"))
	defer cancel()
	for ctx.Err() == nil {
		if right() {
			return nil
		}
		sleep(ctx, 5*time.Millisecond)
	}
	return context.Cause(ctx)
}

// sleep returns after d, or when ctx has ended.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
