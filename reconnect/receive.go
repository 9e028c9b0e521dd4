package reconnect

import (
	"context"
	"net"

	"github.com/redial-go/redial/conn"
)

// keep is the largest buffer that is kept between messages.
const keep = 64 << 10

// receive reads l until it is lost, and returns why. It runs in the supervisor's
// goroutine.
func (c *Conn) receive(ctx context.Context, l *link) error {
	switch {
	case c.o.OnMessage != nil:
		return l.why(c.push(l))
	case c.o.Inbox.Full == Discard:
		return l.why(c.discard(l))
	default:
		return l.why(c.fill(ctx, l))
	}
}

// push hands each message to OnMessage. When the liveness timer finds that one
// call takes too long, it takes the turn at the reading end away from us (see
// turn.go).
func (c *Conn) push(l *link) error {
	var buf []byte
	for {
		m, err := l.conn.Read(buf)
		if err != nil {
			return err
		}
		if !c.handle(l, m) {
			return c.drain(l, kept(m.Data))
		}
		buf = kept(m.Data)
	}
}

// handle calls OnMessage, and reports whether the next message is still ours to
// read.
func (c *Conn) handle(l *link, m conn.Message) bool {
	c.counts.received(m)
	l.heard()
	turn := l.turn.Load() + nextTurn // that of reading
	l.turn.Store(turn | handling)
	c.o.OnMessage(Message{Message: m, Session: l.n})
	return l.turn.CompareAndSwap(turn|handling, turn) && !c.closed.Load()
}

// drain is push when a stand-in reads.
func (c *Conn) drain(l *link, buf []byte) error {
	for !c.closed.Load() {
		m, ok := c.inbox.next(l.watch.standIn.done, buf)
		if !ok {
			return l.watch.standIn.err
		}
		buf = kept(m.Data)
		c.o.OnMessage(m)
	}
	return net.ErrClosed
}

// fill puts each message into the inbox.
func (c *Conn) fill(ctx context.Context, l *link) error {
	for {
		if err := c.inbox.awaitRoom(ctx, l); err != nil {
			return err
		}
		m, err := l.conn.Read(c.inbox.free())
		if err != nil {
			return err
		}
		c.counts.received(m)
		l.heard()
		if err := c.inbox.put(Message{Message: m, Session: l.n}); err != nil {
			return err
		}
	}
}

// discard reads, since pings are answered only while somebody does.
func (c *Conn) discard(l *link) error {
	var buf []byte
	for {
		m, err := l.conn.Read(buf)
		if err != nil {
			return err
		}
		c.counts.received(m)
		l.heard()
		buf = kept(m.Data)
	}
}

func kept(buf []byte) []byte {
	if cap(buf) > keep {
		return nil
	}
	return buf[:0]
}
