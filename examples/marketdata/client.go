//go:build !js

package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/replay"
	"github.com/redial-go/redial/reconnect/subscription"
)

// client keeps an order book of each symbol that it wants.
type client struct {
	feed   *reconnect.Conn
	set    *subscription.Set[string]
	bridge *replay.Bridge[string, message]

	mu    sync.Mutex // guards what follows
	books map[string]*book
}

// event is what has happened to a book.
type event = replay.Event[string, message]

// follow starts to keep a connection to a venue open. It sets what the client needs in d and o; the
// rest is the caller's. signingKey signs the tokens, and events gets what happens to subscriptions.
func follow(d *dialer.WebSocket, o *reconnect.Options, signingKey string, events func(subscription.Event[string])) (*client, error) {
	c := &client{books: map[string]*book{}}
	var err error
	if c.set, err = subscription.New(&subscription.Options[string]{
		Encode: encode, Answer: answer, Events: events,
		Essential: func(string) bool { return true }, // a session is ready when the venue has agreed to all
	}); err != nil {
		return nil, err
	}
	if c.bridge, err = replay.NewBridge(&replay.BridgeOptions[string, message]{Parse: parse, Ask: c.ask}); err != nil {
		return nil, err
	}
	d.Prepare = func(_ context.Context, r *dialer.Request) error {
		r.Header.Set("Authorization", "Bearer "+token(signingKey)) // a new one for each dial
		return nil
	}
	o.Layers = append(o.Layers, c.set.Layer())
	// The venue allows 5 messages in any second, by the time at which they arrive. The interval is
	// longer here, for a network whose delay varies by 200 ms at most.
	o.Pace = budget.Window{N: 5, Per: 1200 * time.Millisecond}
	o.Rotate.After = 24 * time.Hour // then the venue ends a connection
	o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error {
		return write(message{Op: "ping"}.encode())
	}
	c.feed, err = reconnect.New(d, o)
	return c, err
}

// want replaces the symbols that the client wants. Call it at any time.
func (c *client) want(symbols ...string) {
	c.set.Replace(symbols...)
	c.mu.Lock()
	defer c.mu.Unlock()
	for symbol := range c.books {
		c.forget(symbol)
	}
}

// forget drops the book of a symbol that is not wanted any more. It reports whether it did.
func (c *client) forget(symbol string) bool {
	s := c.set.State(symbol)
	if s != subscription.StateNone && s != subscription.StateLeaving {
		return false
	}
	c.bridge.Forget(symbol)
	delete(c.books, symbol)
	return true
}

// read keeps the books right until the Conn or ctx has ended, and returns why it has. It calls
// seen with each event, after the event has changed its book.
func (c *client) read(ctx context.Context, seen func(*event)) error {
	for e, err := range c.bridge.Events(ctx, c.feed) {
		if err != nil {
			return err
		}
		if e.Kind != replay.Other { // which is the answer to a ping, or a seam: the books get Stale
			c.change(&e)
		}
		seen(&e)
	}
	return nil
}

// change changes the book of a symbol.
func (c *client) change(e *event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forget(e.Key) { // it was sent before the venue knew
		return
	}
	b := c.books[e.Key]
	if b == nil {
		b = newBook()
		c.books[e.Key] = b
	}
	switch e.Kind {
	case replay.Snapshot:
		stale := b.stale
		*b = *newBook() // nothing of the old book remains
		b.stale = stale // until Healed, if it was
		b.update(e.Session, &e.Value)
	case replay.Live:
		b.update(e.Session, &e.Value)
	case replay.Stale:
		b.stale = true
	case replay.Lost: // there is no snapshot to be had now; Healed follows all the same
		b.lost = true
	case replay.Healed:
		b.stale = false
	}
}

// ask asks for a snapshot. The Bridge calls it after a gap.
func (c *client) ask(ctx context.Context, symbol string) error {
	return c.feed.Write(ctx, message{Op: "snapshot", Books: []string{symbol}}.encode())
}

// view returns a copy of the book of a symbol.
func (c *client) view(symbol string) view {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.books[symbol]; b != nil {
		return b.view()
	}
	return view{}
}

// symbols returns the symbols of which there is a book, in order.
func (c *client) symbols() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.books))
}
