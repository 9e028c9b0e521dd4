//go:build js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/browser/venue"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/replay"
	"github.com/redial-go/redial/reconnect/subscription"
)

// client keeps the books of a venue right over a connection that breaks.
type client struct {
	feed   *reconnect.Conn
	bridge *replay.Bridge[string, venue.Message]

	mu    sync.Mutex // guards what follows
	books map[string]*book
}

// book is a book of the venue as the page has it.
type book struct {
	venue.Book
	session uint64 // by which the last message came
	stale   bool   // updates are missing, and a snapshot is to come
}

// event is what has happened to a book.
type event = replay.Event[string, venue.Message]

// symbols are the books that the page shows.
var symbols = []string{"ADA-USD", "C-USD", "GO-USD"}

// options are what the address of the page may change. The zero value has the defaults.
type options struct {
	silence time.Duration // for how long the venue may be silent
	wait    time.Duration // each wait before a dial
}

// follow starts to keep a connection to a venue open, whose address is origin and /feed. It calls
// note with what happens.
func follow(origin string, o options, note func(kind, text string)) (*client, error) {
	c := &client{books: map[string]*book{}}
	set, err := subscription.New(&subscription.Options[string]{
		Encode: encode, Answer: answer,
		Essential: func(string) bool { return true }, // a session is ready when the venue has agreed to all
	})
	if err != nil {
		return nil, err
	}
	if c.bridge, err = replay.NewBridge(&replay.BridgeOptions[string, venue.Message]{Parse: parse, Ask: c.ask}); err != nil {
		return nil, err
	}
	set.Replace(symbols...)
	var policy backoff.Policy // nil is the default
	if o.wait > 0 {
		policy = &backoff.Exponential{Base: o.wait, Cap: o.wait}
	}
	c.feed, err = reconnect.New(&dialer.WebSocket{URL: origin + "/feed"}, &reconnect.Options{
		OnSession: func(ctx context.Context, o *reconnect.Opening) error {
			return login(ctx, o, "http"+strings.TrimPrefix(origin, "ws")+"/token")
		},
		Layers: []*reconnect.Layer{set.Layer()},
		Liveness: reconnect.Liveness{Limit: o.silence, Probe: func(_ context.Context, write func(conn.Message) error) error {
			return write(venue.Message{Op: "ping"}.Encode()) // a browser has no ping of its own
		}},
		Run: reconnect.RunOptions{Policy: policy, Trace: notes(note)},
	})
	return c, err
}

// login gets a token, sends it, and waits for the welcome.
func login(ctx context.Context, o *reconnect.Opening, from string) error {
	token, err := fetch(ctx, from)
	if err != nil {
		return err
	}
	if err := o.Write(venue.Message{Op: "login", Token: token}.Encode()); err != nil {
		return err
	}
	m, err := o.Read()
	if err != nil {
		return err
	}
	if answer, err := venue.Decode(m.Data); err != nil || answer.Type != "welcome" {
		return errors.New("the venue does not welcome us")
	}
	return nil
}

// fetch returns what is at url, up to 1 KiB of it.
func fetch(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the venue gives no token: %s", answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	return string(text), err
}

// read keeps the books right until the connection has ended for good, and returns why it has. It
// calls seen with each event, after the event has changed its book.
func (c *client) read(ctx context.Context, seen func(*event)) error {
	for e, err := range c.bridge.Events(ctx, c.feed) {
		if err != nil {
			return err
		}
		c.change(&e)
		seen(&e)
	}
	return nil
}

// change changes the book of a symbol.
func (c *client) change(e *event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.books[e.Key]
	if b == nil && e.Kind != replay.Other { // which is a seam, or the answer to a ping
		b = &book{Book: *venue.NewBook()}
		c.books[e.Key] = b
	}
	switch e.Kind {
	case replay.Snapshot:
		b.Book, b.session = *venue.NewBook(), e.Session
		b.Apply(&e.Value)
	case replay.Live:
		b.Apply(&e.Value)
		b.session = e.Session
	case replay.Stale, replay.Lost:
		b.stale = true
	case replay.Healed:
		b.stale = false
	}
}

// view returns a copy of the book of a symbol, which may be empty.
func (c *client) view(symbol string) book {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.books[symbol]
	if b == nil {
		return book{Book: *venue.NewBook(), stale: true}
	}
	return book{*b.Clone(), b.session, b.stale}
}

// ask asks for a snapshot. The Bridge calls it after a gap.
func (c *client) ask(ctx context.Context, symbol string) error {
	return c.feed.Write(ctx, venue.Message{Op: "snapshot", Books: []string{symbol}}.Encode())
}

// encode makes the message for a change of the subscriptions.
func encode(r *subscription.Request[string]) (conn.Message, error) {
	return venue.Message{ID: r.ID, Op: r.Op.String(), Books: r.Keys}.Encode(), nil
}

// answer reads the answer to such a message.
func answer(m reconnect.Message) (a subscription.Answer[string], ok bool) {
	v, err := venue.Decode(m.Data)
	if err != nil || v.ID == "" {
		return a, false
	}
	if a.ID = v.ID; v.Error != "" {
		a.Err = errors.New(v.Error)
	}
	return a, true
}

// parse reads what belongs to a book of the page. Another is not kept, so that a venue cannot fill
// the memory of the page.
func parse(m reconnect.Message) (it replay.Item[string, venue.Message], ok bool) {
	v, err := venue.Decode(m.Data)
	if err != nil || !slices.Contains(symbols, v.Book) {
		return it, false
	}
	return replay.Item[string, venue.Message]{Key: v.Book, Last: v.Seq, Snapshot: v.Type == "snapshot", Value: v}, true
}
