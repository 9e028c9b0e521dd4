package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
	"github.com/redial-go/redial/reconnect/ledger"
)

// client is one member of the room, over any number of connections.
type client struct {
	id, name string
	keep     time.Duration // how long a line may be unacknowledged
	screen   *terminal.Screen
	ledger   *ledger.Ledger  // the lines that the room has not acknowledged
	conn     *reconnect.Conn // set before the first dial
	refused  int             // how many lines the ledger did not accept; only the goroutine in talk uses it

	// Only hello and hear, which never run at the same time, use what follows.
	at    bridge.Cursor     // the room, and the last line received in it; zero before the first welcome
	heard map[string]uint64 // the number of the last line shown of each author
}

const (
	maxHeard  = 10000 // authors
	maxUnsaid = 1000  // lines that may be unacknowledged; after that the program reads no more input
)

// newClient starts to keep a connection to the room open.
func newClient(d reconnect.Dialer, name string, keep time.Duration, s *terminal.Screen, o reconnect.RunOptions) (c *client, err error) {
	c = &client{id: rand.Text(), name: name, keep: keep, screen: s, heard: map[string]uint64{}}
	c.ledger, err = ledger.New(&ledger.Options{
		Encode: func(e ledger.Entry) (conn.Message, error) {
			return encode(message{Type: "say", ID: e.Seq, Text: string(e.Data)}), nil
		},
		Messages: maxUnsaid,
		Age:      keep,
		OnReset:  ledger.ResetKeepNumbers, // because the room tells lines apart by their author and number
		OnDone:   c.done,
	})
	if err != nil {
		return nil, err
	}
	o.Trace = &reconnect.Trace{WaitStart: c.away}
	_, err = reconnect.New(d, &reconnect.Options{
		OnSession: c.hello,
		OnMessage: c.hear,
		Layers: []*reconnect.Layer{c.ledger.Layer(), {Start: func(k *reconnect.Conn) error {
			c.conn = k
			return nil
		}}},
		Run: o,
	})
	return c, err
}

// hello makes a new connection ready. It introduces the client, and learns what the room has
// from it. When it has returned, the ledger sends the other lines.
func (c *client) hello(_ context.Context, o *reconnect.Opening) error {
	if err := o.Write(encode(message{Type: "hello", Client: c.id, Name: c.name, Room: c.at.Epoch, Seen: c.at.Offset})); err != nil {
		return err
	}
	answer, err := o.Read()
	if err != nil {
		return err
	}
	m, err := decode(answer.Data)
	if err == nil && m.Type != "welcome" {
		err = fmt.Errorf("the first message is %q, not a welcome", m.Type)
	}
	if err == nil {
		err = c.ledger.ResumeEpoch(o, m.Room, m.ID)
	}
	if err != nil {
		return fmt.Errorf("the server does not speak this protocol: %w", err)
	}
	c.welcomed(m, o.Downtime)
	return nil
}

// welcomed shows that the session begins, and what was missed.
func (c *client) welcomed(m message, downtime time.Duration) {
	text := "here as " + c.name + "; Ctrl-D leaves, and an empty line dials at once while the server is away"
	if c.at.Epoch != "" {
		text = "back after " + terminal.Seconds(downtime)
	}
	if n := c.ledger.Stats().Unacked; n > 0 {
		text += ", " + terminal.Count(n, "message") + " to send"
	}
	c.screen.Note("%s", text)
	if c.at.Epoch != "" && c.at.Epoch != m.Room {
		c.screen.Note("the server has forgotten what was said before")
	}
	if m.Missed > 0 {
		c.screen.Note("%d lines missed", m.Missed)
	}
	c.at = bridge.Cursor{Epoch: m.Room, Offset: m.Seq}
}

// hear handles one message of the room. A message that breaks the protocol ends the session.
func (c *client) hear(_ context.Context, msg reconnect.Message) {
	m, err := decode(msg.Data)
	switch {
	case err != nil:
	case m.Type == "ack":
		err = c.ledger.AckedTo(msg.Session, m.ID)
	case m.Type == "line" && c.at.Take(c.at.Epoch, m.Seq) == bridge.PlacementNext:
		c.show(m)
	default:
		err = fmt.Errorf("%s %d after line %d", m.Type, m.Seq, c.at.Offset)
	}
	if err != nil {
		c.conn.Redial(msg.Session, fmt.Errorf("unexpected message from the server: %w", err))
	}
}

// show prints a line, unless it was shown before. A line comes twice only if the server has
// restarted without a log: see the package comment.
func (c *client) show(m message) {
	if m.ID <= c.heard[m.From] {
		return
	}
	if len(c.heard) >= maxHeard {
		clear(c.heard)
	}
	c.heard[m.From] = m.ID
	if m.From == authorOf(c.id) && c.screen.Terminal() {
		return // the user sees it where it was typed
	}
	c.screen.Line(m.Name + ": " + terminal.Clean(m.Text))
}

// done shows a line that the room may not have, and why. The ledger calls it with each line.
func (c *client) done(r ledger.Settled) {
	if r.Outcome == ledger.OutcomeAcknowledged {
		return
	}
	what, reason := "not sent", r.Err.Error()
	switch {
	case r.Sent:
		what, reason = "perhaps not sent", "no answer"
	case errors.Is(r.Err, ledger.ErrExpired):
		reason = fmt.Sprintf("it waited for more than %v", c.keep)
	case errors.Is(r.Err, net.ErrClosed):
		reason = "the end came first"
	}
	c.screen.Note("%s: %s: %q", what, reason, r.Data)
}
