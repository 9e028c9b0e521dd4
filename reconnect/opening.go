package reconnect

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
)

// Opening is a new connection in the hands of [Options.OnSession], which has sole
// use of it. Its methods are for one goroutine, and end with OnSession.
type Opening struct {
	Session  uint64        // its number
	Cause    error         // why the last session ended; nil for the first
	Downtime time.Duration // since the last ready session was lost, or since the start

	c    *Conn
	l    *link
	ctx  context.Context
	over atomic.Bool
}

// Read returns the next message, in a slice of its own. It ends when the context
// of OnSession does, since that cuts the connection.
func (o *Opening) Read() (conn.Message, error) {
	if o.over.Load() {
		return conn.Message{}, errOver
	}
	m, err := o.l.conn.Read(nil)
	if err != nil {
		return m, o.l.why(err)
	}
	o.c.counts.received(m)
	return m, nil
}

// Write sends a message. It ends as Read does.
func (o *Opening) Write(m conn.Message) error {
	if o.over.Load() {
		return errOver
	}
	if err := o.l.conn.Write(m); err != nil {
		return o.l.why(err)
	}
	o.c.counts.written(m)
	return nil
}

// Deliver hands a message on to the reader of the Conn: what came between a
// subscription and its answer is part of the stream. It returns when the message
// is in the inbox, or OnMessage has returned.
func (o *Opening) Deliver(m conn.Message) error {
	if o.over.Load() {
		return errOver
	}
	o.l.delivered = true
	msg := Message{Message: m, Session: o.l.n}
	switch {
	case o.c.o.OnMessage != nil:
		o.c.o.OnMessage(msg)
		return nil
	case o.c.o.Inbox.Full == Discard:
		return nil
	}
	if err := o.c.inbox.awaitRoom(o.ctx, o.l); err != nil {
		return err
	}
	return o.c.inbox.put(msg)
}

// AwaitFates returns when Outbox.Done has been told of every message that has its
// fate: all that earlier sessions wrote or tried are among them. Who keeps account
// of what was sent has it complete then, and can send again, or ask for, what the
// peer has not got; what is still queued follows when OnSession has returned. It
// ends as Read does.
func (o *Opening) AwaitFates() error {
	if o.over.Load() {
		return errOver
	}
	if o.c.outbox == nil {
		return nil
	}
	return o.c.outbox.awaitTold(o.ctx)
}

// Conn returns the connection itself, for what else it may know, like the
// subprotocol of a [conn.WebSocket]. Use Opening's own methods to read and write.
func (o *Opening) Conn() conn.Conn { return o.l.conn }

var errOver = errors.New("reconnect: Opening used after OnSession returned")
