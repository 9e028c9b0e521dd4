// Package books keeps order books right over a connection that breaks. Package subscription keeps
// the client subscribed to what it wants, and package bridge finds the gaps and asks for snapshots.
// The client is the part to copy from examples/marketdata and examples/browser.
package books

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/examples/venue"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
	"github.com/redial-go/redial/reconnect/subscription"
)

// Client keeps an order book of each symbol that it wants. Any goroutine may call its methods.
type Client struct {
	Feed   *reconnect.Conn
	Set    *subscription.Set[string]
	Bridge *bridge.Bridge[string, venue.Message]

	mu    sync.Mutex // guards books
	books map[string]*Book
}

// Event is what has happened to a book.
type Event = bridge.Event[string, venue.Message]

// Follow starts to keep a connection to a venue open. It sets what the client needs in o; the rest,
// and the login, are the caller's, who also closes the Feed.
func Follow(d reconnect.Dialer, o *reconnect.Options) (*Client, error) {
	c := &Client{books: map[string]*Book{}}
	var err error
	if c.Set, err = subscription.New(&subscription.Options[string]{
		Encode: encode, Answer: answer,
		Essential: func(string) bool { return true }, // a session is ready when the venue has agreed to all
	}); err != nil {
		return nil, err
	}
	if c.Bridge, err = bridge.New(&bridge.Options[string, venue.Message]{Parse: c.parse, Ask: c.ask}); err != nil {
		return nil, err
	}
	o.Layers = append(o.Layers, c.Set.Layer())
	o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error {
		return write(venue.Message{Op: "ping"}.Encode()) // not every venue answers a ping of the protocol, and a browser has none
	}
	c.Feed, err = reconnect.New(d, o)
	return c, err
}

// Want replaces the symbols that the client wants. Call it at any time.
func (c *Client) Want(symbols ...string) {
	c.Set.Replace(symbols...)
	c.mu.Lock()
	defer c.mu.Unlock()
	for symbol := range c.books {
		c.forget(symbol)
	}
}

// forget drops the book of a symbol that is not wanted any more. It reports whether it did. The
// caller holds mu.
func (c *Client) forget(symbol string) bool {
	s := c.Set.State(symbol)
	if s != subscription.StateNone && s != subscription.StateLeaving {
		return false
	}
	c.Bridge.Forget(symbol)
	delete(c.books, symbol)
	return true
}

// Read keeps the books right until the Conn or ctx has ended, and returns why it has. It calls
// seen with each event, after the event has changed its book.
func (c *Client) Read(ctx context.Context, seen func(*Event)) error {
	for e, err := range c.Bridge.Events(ctx, c.Feed) {
		if err != nil {
			return err
		}
		if e.Kind != bridge.EventOther { // which is the answer to a ping, or a seam: the books get Stale
			c.change(&e)
		}
		seen(&e)
	}
	return nil
}

// change changes the book of a symbol.
func (c *Client) change(e *Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forget(e.Key) { // it was sent before the venue knew
		return
	}
	b := c.books[e.Key]
	if b == nil {
		b = &Book{Book: *venue.NewBook()}
		c.books[e.Key] = b
	}
	switch e.Kind {
	case bridge.EventSnapshot, bridge.EventLive:
		if e.Kind == bridge.EventSnapshot {
			b.Book, b.lost = *venue.NewBook(), false // nothing of the old book remains
		}
		b.Apply(&e.Value)
		b.Session = e.Session
	case bridge.EventStale:
		b.stale = true
	case bridge.EventLost: // there is no snapshot to be had now; EventHealed follows all the same
		b.lost = true
	case bridge.EventHealed:
		b.stale = false
	}
}

// ask asks for a snapshot. The Bridge calls it after a gap.
func (c *Client) ask(ctx context.Context, symbol string) error {
	return c.Feed.Write(ctx, venue.Message{Op: "snapshot", Books: []string{symbol}}.Encode())
}

// Book is an order book: a snapshot and all updates since.
type Book struct {
	venue.Book
	Session uint64 // by which the last message came
	stale   bool   // updates are missing, and a snapshot is to come
	lost    bool   // updates are missing until the next snapshot, whenever that comes
}

// Valid reports whether nothing is missing.
func (b *Book) Valid() bool { return b.Seq > 0 && !b.stale && !b.lost }

// View returns a copy of the book of a symbol, which is empty if there is none.
func (c *Client) View(symbol string) Book {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.books[symbol]
	if b == nil {
		return Book{Book: *venue.NewBook()}
	}
	return Book{*b.Clone(), b.Session, b.stale, b.lost}
}

// encode makes the message for a change of the subscriptions.
func encode(r *subscription.Request[string]) (conn.Message, error) {
	return venue.Message{ID: r.ID, Op: r.Op.String(), Books: r.Keys}.Encode(), nil
}

// answer reads the answer to such a message.
func answer(m reconnect.Message) (a subscription.Answer[string], ok bool) {
	if !bytes.Contains(m.Data, []byte(`"id":`)) {
		return a, false // so that an update is parsed only once
	}
	v, err := venue.Decode(m.Data)
	if err != nil || v.ID == "" {
		return a, false
	}
	if a.ID = v.ID; v.Error != "" {
		a.Err = errors.New(v.Error)
	}
	return a, true
}

// parse reads what belongs to a book. A book that is not wanted is not kept, so that a venue cannot
// fill the memory.
func (c *Client) parse(m reconnect.Message) (it bridge.Item[string, venue.Message], ok bool) {
	v, err := venue.Decode(m.Data)
	if err != nil || v.Book == "" || c.Set.State(v.Book) == subscription.StateNone {
		return it, false
	}
	return bridge.Item[string, venue.Message]{Key: v.Book, Last: v.Seq, Snapshot: v.Type == "snapshot", Value: v}, true
}
