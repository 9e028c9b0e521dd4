package reconnect

import (
	"context"
	"errors"
	"iter"
	"net"
)

// Read returns the next message, its data copied into buf[:0] if that is large
// enough and into a new slice of the exact size otherwise. In the stream of
// messages each lost connection is an error that is a *[Seam]: read on. Any other
// error is the cause of ctx, or the end: [net.ErrClosed] after Close at once;
// after Shutdown, or if the Conn ended by itself, as [Conn.Err] says and when
// everything has been read.
//
// The end of ctx costs nothing but this call. Goroutines that read at the same
// time take turns; one that ranges over Messages is such a reader.
func (c *Conn) Read(ctx context.Context, buf []byte) (Message, error) {
	if c.o.OnMessage != nil || c.inbox == nil {
		return Message{}, errNoPull
	}
	if err := c.inbox.turn.enter(ctx, nil); err != nil {
		return Message{}, err
	}
	defer c.inbox.turn.leave()
	return c.read(ctx, buf)
}

var errNoPull = errors.New("reconnect: Read on a Conn with OnMessage or an inbox that discards")

func (c *Conn) read(ctx context.Context, buf []byte) (Message, error) {
	for ended := false; ; {
		if c.closed.Load() {
			return Message{}, net.ErrClosed
		}
		m, seam, empty := c.inbox.take(buf)
		switch {
		case seam != nil:
			return m, seam
		case empty == nil:
			return m, nil
		case ended:
			return m, c.err
		}
		select {
		case <-empty:
		case <-ctx.Done():
			return m, context.Cause(ctx)
		case <-c.life.done: // at once after Close; Shutdown lets us read what is left
			if c.closed.Load() {
				return m, net.ErrClosed
			}
			select {
			case <-c.done:
				ended = true
			case <-ctx.Done():
				return m, context.Cause(ctx)
			}
		case <-c.done:
			ended = true // and yet there may be something left
		}
	}
}

// Messages returns the stream of messages, each in a slice of its own, with a
// *[Seam] as error for each lost connection. Any other error is the last pair:
// see [Conn.Read].
func (c *Conn) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			m, err := c.Read(ctx, nil)
			var seam *Seam
			if !yield(m, err) || err != nil && !errors.As(err, &seam) {
				return
			}
		}
	}
}
