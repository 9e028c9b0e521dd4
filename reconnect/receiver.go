package reconnect

import (
	"context"
	"errors"
	"iter"
	"net"

	"github.com/redial-go/redial/conn"
)

// receiver is the reading half of a [Conn]: it passes the messages of a link to OnMessage,
// or puts them into the inbox, from which the user reads.
type receiver struct {
	life  *lifetime
	inbox *inbox // nil: OnMessage gets the messages, or they are discarded
}

func newReceiver(life *lifetime) receiver {
	r := receiver{life: life}
	if life.o.OnMessage == nil && life.o.Inbox.Overflow != OverflowDiscard {
		r.inbox = newInbox(life.o.Inbox)
	}
	return r
}

// open prepares for the messages that OnSession delivers from a new link.
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

// page is memory for one message at a time.
type page struct {
	chunk *chunk
	last  int // size of the message before
}

// buffer returns memory for a message of that size. Size 0 means that the size is not
// known, so that the message is expected to be as large as the one before; -1 asks for
// little room.
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

// done frees what it can of the memory of m, which l has read and nobody needs any more.
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

// discard reads and keeps nothing. It reads because pings are answered only meanwhile.
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

// awaitRoom waits until there is room in the inbox, or until ctx or l ends. It waits only if
// the policy is OverflowBlock.
func (r *receiver) awaitRoom(ctx context.Context, l *link) error {
	for r.life.o.Inbox.Overflow == OverflowBlock && r.inbox.full.Load() {
		if err := r.blocked(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// blocked waits until there may be room.
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

// deliver passes on a message that OnSession has read.
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

// seam calls OnSeam, or puts s into the inbox.
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

// Read returns the next message. Its data is in buf if that is large enough, and else in a
// new slice of the exact size; it belongs to the caller. buf may be nil. Where a connection
// was lost the error is a *[Seam]: read on. Any other error is the cause of ctx, or the end
// of the Conn: [net.ErrClosed] at once after Close; or the error that [Conn.Err] returns,
// when everything has been read, after Shutdown or if the Conn has ended by itself.
//
// The end of ctx ends this call and nothing else. Goroutines that read at the same time
// take turns, those that range over Messages too. Read is an error on a Conn with OnMessage
// or [OverflowDiscard].
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

// read is Read without the turns: only one goroutine may call it at a time.
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
		case <-c.life.Done(): // after Close nothing is read any more; after Shutdown what is left
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
			ended = true // but there may be something left
		}
	}
}

// Messages returns the stream of messages. The data of each is in a slice of its own, which
// belongs to the caller. Where a connection was lost the error is a *[Seam]; the stream goes
// on. Any other error is the last pair: see [Conn.Read].
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
