package reconnect

import (
	"context"
	"errors"
	"iter"
	"net"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// receiver is the reading half of a [Conn]: it passes the messages of a link to OnMessage,
// or puts them into the inbox, from which the user reads.
type receiver struct {
	life  *lifetime
	inbox *inbox      // nil: OnMessage gets the messages, or they are discarded
	late  *Seam       // waits until the next session is ready, or delivers something; belongs to the supervisor, and to OnSession while that runs
	turn  *xsync.Slot // held by the goroutine that is in OnMessage or OnSeam; nil: there is one such goroutine
}

func (r *receiver) start(life *lifetime) {
	r.life = life
	switch {
	case life.o.OnMessage != nil:
		if life.o.more.Rotate.Overlap == OverlapMix || life.o.more.MarkRefetch {
			r.turn = new(xsync.Slot)
		}
	case life.o.Inbox.Overflow != OverflowDiscard:
		r.inbox = newInbox(life.o.Inbox, &life.counts)
	}
}

// open prepares for the messages that OnSession delivers from a new link.
func (r *receiver) open() {
	if r.inbox != nil {
		r.inbox.collecting = false
	}
}

// ready prepares for the messages of a link that is ready.
func (r *receiver) ready(l *link) {
	if r.inbox != nil {
		r.inbox.collectFrom(l)
	}
}

// receive reads l until it is lost, and returns why. It runs in the supervisor's
// goroutine.
func (r *receiver) receive(ctx context.Context, l *link) error {
	switch {
	case r.life.o.OnMessage != nil:
		err := r.push(l)
		l.resume() // not if OnMessage ended this goroutine: see Conn.serving
		return l.endedBy(err)
	case r.inbox == nil:
		return l.endedBy(r.discard(l))
	default:
		return l.endedBy(r.fill(ctx, l))
	}
}

// push hands each message to OnMessage.
func (r *receiver) push(l *link) error {
	p := newPage(l)
	defer p.free()
	for !l.Ended() && !r.life.closed.Load() {
		m, err := p.read()
		if err != nil {
			return err
		}
		r.life.counts.received(m)
		l.heard()
		l.pause(handling)
		if msg := (Message{Message: m, Session: l.session}); !r.life.layers().take(msg, noLayer) {
			r.call(l, msg)
		}
		p.done(m)
	}
	return net.ErrClosed
}

// call calls OnMessage.
func (r *receiver) call(ctx context.Context, m Message) {
	if r.turn != nil {
		r.turn.Acquire(context.Background(), nil) // has no error
		defer r.turn.Release()
	}
	r.life.o.OnMessage(ctx, m)
}

// pass gives the reader a message that belongs to the receiver and that l has brought. The
// caller, which reads l, may not be the only goroutine that gives messages.
func (r *receiver) pass(ctx context.Context, l *link, m Message) error {
	switch {
	case r.life.o.OnMessage != nil:
		l.pause(handling)
		r.call(l, m)
		l.resume()
		return nil
	case r.inbox == nil:
		return nil
	}
	err := r.awaitRoom(ctx, l)
	if l.unpause(); err != nil {
		return err
	}
	return r.inbox.add(m)
}

// give is pass for a message of l, which another goroutine reads. It waits for room while l lives.
// After that it does without, because a redial does not wait for a slow reader, and what has come
// can be read after Shutdown. But if the inbox is overfull already, it is an error.
func (r *receiver) give(l *link, m Message) error {
	switch {
	case r.life.o.OnMessage != nil:
		r.call(l, m)
		return nil
	case r.inbox == nil:
		return nil
	}
	for r.life.o.Inbox.Overflow == OverflowBlock {
		room := r.inbox.room.Wait()
		if !r.inbox.full.Load() {
			break
		}
		select {
		case <-room:
			continue
		case <-l.Done():
		case <-r.life.Done():
		}
		if r.inbox.overfull() {
			return ErrInboxFull
		}
		break
	}
	return r.inbox.add(m)
}

// fill puts each message into the inbox.
func (r *receiver) fill(ctx context.Context, l *link) error {
	defer r.inbox.abandon()
	buffer := r.inbox.buffer
	for !l.Ended() {
		if err := r.awaitRoom(ctx, l); err != nil {
			return err
		}
		if !r.inbox.collecting {
			l.unpause() // else before it waits: until then it reads what has come during the pause
		}
		m, err := l.read(buffer)
		if err != nil {
			return err
		}
		l.heard()
		msg := Message{Message: m, Session: l.session}
		if r.life.layers().take(msg, noLayer) {
			r.inbox.skip(m)
		} else if err := r.inbox.put(msg); err != nil {
			return err
		}
	}
	return net.ErrClosed
}

// discard reads and keeps nothing. It reads because pings are answered only meanwhile.
func (r *receiver) discard(l *link) error {
	p := newPage(l)
	defer p.free()
	for !l.Ended() {
		m, err := p.read()
		if err != nil {
			return err
		}
		r.life.counts.received(m)
		l.heard()
		r.life.layers().take(Message{Message: m, Session: l.session}, noLayer)
		p.done(m)
	}
	return net.ErrClosed
}

// awaitRoom waits until there is room in the inbox, or until ctx or l ends. It waits only if
// the policy is OverflowBlock. If it has waited, l is paused: the caller ends the pause.
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

// deliver passes on a message that OnSession has read, or the layer with the number but.
func (r *receiver) deliver(ctx context.Context, l *link, m conn.Message, but int) error {
	msg := Message{Message: m, Session: l.session}
	if r.life.layers().take(msg, but) {
		return nil
	}
	r.settle(l)
	l.delivered = true
	switch {
	case r.life.o.OnMessage != nil:
		r.call(l, msg)
		return nil
	case r.inbox == nil:
		return nil
	}
	err := r.awaitRoom(ctx, l)
	if l.unpause(); err != nil {
		return err
	}
	return r.inbox.deliver(msg)
}

// lose keeps the seam after the session of l until the next session is ready.
func (r *receiver) lose(l *link, s *Seam) {
	r.settle(l) // what an attempt that was never ready has delivered stands between the two
	r.late = s
}

// settle gives the reader the seam that waits, because the session of l is ready or delivers
// something, or because everything ends.
func (r *receiver) settle(l *link) {
	if s := r.late; s != nil {
		r.late = nil
		s.Resumed = l.resumed
		r.seam(l, s)
	}
}

// seam calls OnSeam, or puts s into the inbox.
func (r *receiver) seam(l *link, s *Seam) {
	switch {
	case r.life.o.OnSeam != nil:
		if r.turn != nil {
			r.turn.Acquire(context.Background(), nil) // has no error
			defer r.turn.Release()
		}
		l.calling.enter(&onSeam)
		r.life.o.OnSeam(r.life, s)
		l.calling.leave()
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
func (c *Conn) Read(ctx context.Context, buf []byte) (m Message, err error) {
	in := c.receiver.inbox
	if in == nil {
		return m, errNoPull
	}
	if err := in.turn.Acquire(ctx, nil); err != nil {
		return m, err
	}
	defer in.turn.Release()
	err = c.read(ctx, &m, buf)
	return m, err
}

var errNoPull = errors.New("reconnect: Read on a Conn with OnMessage or an inbox that discards")

// read is Read without the turns: only one goroutine may call it at a time.
func (c *Conn) read(ctx context.Context, m *Message, buf []byte) error {
	for ended := false; ; {
		if c.life.closed.Load() {
			return net.ErrClosed
		}
		seam, empty := c.receiver.inbox.take(m, buf)
		switch {
		case seam != nil:
			return seam
		case empty == nil:
			return nil
		case ended:
			return c.Err()
		}
		select {
		case <-empty:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.life.Done(): // after Close nothing is read any more; after Shutdown what is left
			if c.life.closed.Load() {
				return net.ErrClosed
			}
			select {
			case <-c.done.Up():
				ended = true
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		case <-c.done.Up():
			ended = true // but there may be something left
		}
	}
}

// Messages returns the stream of messages. The data of each is in a slice of its own and of
// the exact size, which belongs to the caller. Where a connection was lost the error is a
// *[Seam]; the stream goes on. Any other error is the last pair: see [Conn.Read].
func (c *Conn) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			m, err := c.Read(ctx, nil)
			if !yield(m, err) {
				return
			}
			if _, seam := err.(*Seam); err != nil && !seam {
				return
			}
		}
	}
}
