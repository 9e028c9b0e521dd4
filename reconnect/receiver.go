package reconnect

import (
	"context"
	"errors"
	"iter"
	"net"

	"github.com/redial-go/redial/conn"
)

// receiver is the reading half of a [Conn]: it hands what comes by a link to
// OnMessage, or into the inbox, from which the user reads.
type receiver struct {
	life  *lifetime
	inbox *inbox // nil: push, or discard
}

func newReceiver(life *lifetime) receiver {
	r := receiver{life: life}
	if life.o.OnMessage == nil && life.o.Inbox.Overflow != OverflowDiscard {
		r.inbox = newInbox(life.o.Inbox)
	}
	return r
}

// open prepares for what OnSession delivers of a new link.
func (r *receiver) open() {
	if r.inbox != nil {
		r.inbox.setBatching(false)
	}
}

// ready prepares for the messages of a link that is ready.
func (r *receiver) ready(l *link) {
	if r.inbox != nil {
		r.inbox.batchFor(l.conn)
	}
}

// receive reads l until it is lost, and returns why. It runs in the supervisor's
// goroutine.
func (r *receiver) receive(ctx context.Context, l *link) error {
	switch {
	case r.life.o.OnMessage != nil:
		return l.why(r.push(l))
	case r.inbox == nil:
		return l.why(r.discard(l))
	default:
		return l.why(r.fill(ctx, l))
	}
}

// push hands each message to OnMessage.
func (r *receiver) push(l *link) error {
	var p page
	defer p.free()
	buffer := p.buffer
	for !l.lost() && !r.life.closed.Load() {
		m, err := l.read(buffer)
		if err != nil {
			return err
		}
		r.life.counts.received(m)
		l.heard()
		r.handle(l, m)
		p.done(l, m)
	}
	return net.ErrClosed
}

// handle calls OnMessage.
func (r *receiver) handle(l *link, m conn.Message) {
	l.pause(handling)
	r.life.o.OnMessage(l, Message{Message: m, Session: l.session})
	l.resume()
}

// page is the memory of one message at a time.
type page struct {
	chunk *chunk
	last  int // size of the message before
}

// buffer returns where a message of that size should be written to. One whose size
// is not known, 0, is expected to be as large as the one before; -1 asks for little
// room.
func (p *page) buffer(size int) []byte {
	if size == 0 {
		size = min(p.last, largestChunk)
	}
	if p.chunk != nil && cap(p.chunk.buf) < size {
		p.free()
	}
	if p.chunk == nil {
		if p.chunk = newChunk(size); p.chunk == nil {
			return nil
		}
	}
	return p.chunk.room()
}

// done says that nobody needs m any more, which l has read.
func (p *page) done(l *link, m conn.Message) {
	p.last = len(m.Data)
	if l.late != nil {
		p.free()
	}
}

func (p *page) free() {
	if p.chunk != nil {
		p.chunk.free()
		p.chunk = nil
	}
}

// fill puts each message into the inbox.
func (r *receiver) fill(ctx context.Context, l *link) error {
	buffer := r.inbox.buffer
	for !l.lost() {
		if err := r.awaitRoom(ctx, l); err != nil {
			return err
		}
		m, err := l.read(buffer)
		if err != nil {
			r.inbox.abandon()
			return err
		}
		r.life.counts.received(m)
		l.heard()
		if err := r.inbox.put(Message{Message: m, Session: l.session}); err != nil {
			return err
		}
	}
	return net.ErrClosed
}

// discard reads, because pings are answered only while somebody does.
func (r *receiver) discard(l *link) error {
	var p page
	defer p.free()
	buffer := p.buffer
	for !l.lost() {
		m, err := l.read(buffer)
		if err != nil {
			return err
		}
		r.life.counts.received(m)
		l.heard()
		p.done(l, m)
	}
	return net.ErrClosed
}

// awaitRoom waits, if the policy is OverflowBlock, until there is room in the inbox, or
// until ctx or l ends.
func (r *receiver) awaitRoom(ctx context.Context, l *link) error {
	for r.life.o.Inbox.Overflow == OverflowBlock && r.inbox.full.Load() {
		if err := r.blocked(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// blocked waits for a sign that there may be room.
func (r *receiver) blocked(ctx context.Context, l *link) error {
	room := r.inbox.room.Wait()
	if !r.inbox.full.Load() {
		return nil
	}
	l.pause(blocked)
	defer l.resume()
	l.liveness.blocked()
	select {
	case <-room:
		return nil
	case <-l.Done():
		return l.why(net.ErrClosed)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// deliver hands on a message that OnSession has read.
func (r *receiver) deliver(ctx context.Context, l *link, m conn.Message) error {
	l.delivered = true
	msg := Message{Message: m, Session: l.session}
	switch {
	case r.life.o.OnMessage != nil:
		r.life.o.OnMessage(l, msg)
		return nil
	case r.inbox == nil:
		return nil
	}
	if err := r.awaitRoom(ctx, l); err != nil {
		return err
	}
	return r.inbox.deliver(msg)
}

// seam tells the reader that a connection was lost.
func (r *receiver) seam(s *Seam) {
	switch {
	case r.life.o.OnSeam != nil:
		r.life.calling.enter(&onSeam)
		r.life.o.OnSeam(&r.life.Context, s)
		r.life.calling.leave()
	case r.inbox != nil:
		r.inbox.putSeam(s)
	}
}

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
	in := c.receiver.inbox
	if in == nil {
		return Message{}, errNoPull
	}
	if err := in.turn.Acquire(ctx, nil); err != nil {
		return Message{}, err
	}
	defer in.turn.Release()
	return c.read(ctx, buf)
}

var errNoPull = errors.New("reconnect: Read on a Conn with OnMessage or an inbox that discards")

// read is Read for the one whose turn it is.
func (c *Conn) read(ctx context.Context, buf []byte) (Message, error) {
	for ended := false; ; {
		if c.life.closed.Load() {
			return Message{}, net.ErrClosed
		}
		m, seam, empty := c.receiver.inbox.take(buf)
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
		case <-c.life.Done(): // at once after Close; Shutdown lets us read what is left
			if c.life.closed.Load() {
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
			_, seam := errors.AsType[*Seam](err)
			if !yield(m, err) || err != nil && !seam {
				return
			}
		}
	}
}
