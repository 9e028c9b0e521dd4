package reconnect

import (
	"context"
	"errors"
	"iter"
	"net"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/inbox"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/watch"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// receiver is the reading half of a [Conn]: it passes the messages of a link to OnMessage,
// or puts them into the inbox, from which the user reads.
type receiver struct {
	life  *lifetime
	take  func(m Message, but int) bool // reports whether a layer has taken a message; nil: there are no layers
	inbox *inbox.Inbox                  // nil: OnMessage gets the messages, or they are discarded
	late  *Seam                         // waits until the next session is ready, or delivers something; belongs to the supervisor, and to OnSession while that runs
	turn  *xsync.Slot                   // held by the goroutine that is in OnMessage or OnSeam; nil: there is one such goroutine
}

func (r *receiver) start(life *lifetime, take func(m Message, but int) bool) {
	r.life, r.take = life, take
	switch {
	case life.o.OnMessage != nil:
		if life.o.Rotate.Overlap == OverlapMix || life.o.MarkRefetch {
			r.turn = new(xsync.Slot)
		}
	case life.o.Inbox.Overflow != InboxDiscard:
		r.inbox = inbox.New(life.o.Inbox.limits(), &life.counts.in)
	}
}

// taken reports whether a layer has taken m, which came by l. It calls no layer after Close, and
// never layer number but, which passes m on. If it has called one, l is paused: the caller ends the
// pause when it reads again.
func (r *receiver) taken(l *served, m Message, but int) bool {
	if r.take == nil || r.life.Closed.Load() {
		return false
	}
	l.Pause(link.Receiving)
	l.calls.Arm()
	return r.take(m, but)
}

// receive reads l until it is lost, and returns why. It runs in the supervisor's goroutine.
func (r *receiver) receive(ctx context.Context, l *served) error {
	var err error
	if r.inbox != nil {
		err = r.fill(ctx, l)
	} else {
		err = r.push(l)
	}
	err = l.EndedBy(err)
	l.Unpause() // not if a callback has ended this goroutine: see keeper.abandon
	return err
}

// push hands each message to OnMessage. Without OnMessage it reads all the same, because pings are answered only meanwhile.
func (r *receiver) push(l *served) error {
	p := link.NewPage(&l.Link)
	defer p.Free()
	for !l.Ended() && !r.life.Closed.Load() {
		m, err := p.Read()
		if err != nil {
			return err
		}
		r.life.counts.in.Received(m)
		l.Heard()
		if msg := (Message{Message: m, Session: l.Session}); !r.taken(l, msg, noLayer) && r.life.o.OnMessage != nil {
			l.Pause(link.Handling)
			l.calls.Arm()
			r.call(context.Background(), l, l.calls, msg) // an error: Close was called
		}
		p.Done(m)
	}
	return net.ErrClosed
}

// call calls OnMessage, unless Close was called, or ctx ends while another session is in OnMessage or OnSeam. calls are
// those of this goroutine.
func (r *receiver) call(ctx context.Context, l *served, calls *watch.Calls, m Message) error {
	if r.turn != nil {
		outer := calls.Enter(&watch.Elsewhere) // the other session is in OnMessage or OnSeam
		defer calls.Leave(outer)
		if err := r.turn.Acquire(ctx, nil); err != nil {
			return err
		}
		defer r.turn.Release()
		calls.Enter(&onMessage)
	}
	if r.life.Closed.Load() {
		return net.ErrClosed
	}
	r.life.o.OnMessage(l, m)
	return nil
}

// put gives the reader a message of l, whose data belongs to the receiver. The caller, which reads l,
// may not be the only goroutine that gives messages.
func (r *receiver) put(ctx context.Context, l *served, m Message) error {
	switch {
	case r.life.o.OnMessage != nil:
		l.Pause(link.Handling)
		l.calls.Arm()
		err := r.call(ctx, l, l.calls, m)
		l.Resume()
		return err
	case r.inbox == nil:
		return nil
	}
	err := r.awaitRoom(ctx, l)
	if l.Unpause(); err != nil {
		return err
	}
	return r.inbox.PutBeside(inbox.Item(m))
}

// putAnyway is put for a message of l, which another goroutine reads; calls are those of this goroutine. It
// waits for room until l ends; then it adds m to the full inbox, so that a redial never waits for a slow reader.
// If the inbox is overfull already, that is an error.
func (r *receiver) putAnyway(l *served, calls *watch.Calls, m Message) error {
	switch {
	case r.life.o.OnMessage != nil:
		outer := calls.Enter(&onMessage)
		err := r.call(context.Background(), l, calls, m)
		calls.Leave(outer)
		return err
	case r.inbox == nil:
		return nil
	}
	for r.life.o.Inbox.Overflow == InboxBlock {
		room := r.inbox.Room()
		if !r.inbox.Full() {
			break
		}
		select {
		case <-room:
			continue
		case <-l.Done():
		case <-r.life.Done():
		}
		if r.inbox.Overfull() {
			return ErrInboxFull
		}
		break
	}
	return r.inbox.PutBeside(inbox.Item(m))
}

// fill puts each message into the inbox. If l announces its waits, the inbox collects what is buffered until then.
func (r *receiver) fill(ctx context.Context, l *served) error {
	defer r.inbox.End()
	announces := l.Transport != nil && l.Transport.BeforeBlock(func() {
		r.inbox.Publish()
		l.Unpause()
	})
	lend := &l.Link
	if r.take != nil { // a layer gets each message in this goroutine
		lend = nil
	}
	r.inbox.Begin(lend, announces)
	buffer := r.inbox.Buffer
	for !l.Ended() && !r.life.Closed.Load() {
		if r.inbox.Yield() {
			continue
		}
		if err := r.awaitRoom(ctx, l); err != nil {
			return err
		}
		if !announces {
			l.Unpause() // else before it waits: until then it reads what has come during the pause
		}
		m, err := l.Read(buffer)
		switch err {
		case nil:
		case conn.ErrWoken: // the reader wants to read
			continue
		default:
			return err
		}
		l.Heard()
		msg := Message{Message: m, Session: l.Session}
		if r.taken(l, msg, noLayer) {
			r.inbox.Skip(m)
		} else if err := r.inbox.Put(inbox.Item(msg)); err != nil {
			return err
		}
	}
	return net.ErrClosed
}

// awaitRoom waits until there is room in the inbox, or until ctx or l ends. It waits only if
// the policy is InboxBlock. If it has waited, l is paused: the caller ends the pause.
func (r *receiver) awaitRoom(ctx context.Context, l *served) error {
	for r.life.o.Inbox.Overflow == InboxBlock && r.inbox.Full() {
		if room := r.inbox.Room(); r.inbox.Full() { // perhaps there was room before the call of Room
			if err := l.block(ctx, room); err != nil {
				return err
			}
		}
	}
	return nil
}

// putDelivered passes on a message that OnSession has read, or the layer with the number but.
func (r *receiver) putDelivered(ctx context.Context, l *served, m conn.Message, but int) error {
	msg := Message{Message: m, Session: l.Session}
	taken := r.taken(l, msg, but)
	if l.Unpause(); taken {
		return nil
	}
	r.settle(l)
	l.delivered = true
	if r.inbox != nil {
		msg.Data = inbox.Clone(msg.Data)
	}
	return r.put(ctx, l, msg)
}

// holdSeam keeps the seam after the session of l until the next session is ready.
func (r *receiver) holdSeam(l *served, s *Seam) {
	r.settle(l) // what an attempt that was never ready has delivered stands between the two
	r.late = s
}

// settle gives the reader the seam that waits: the session of l is ready or delivers something, or the Conn ends.
func (r *receiver) settle(l *served) {
	if s := r.late; s != nil {
		r.late = nil
		s.Resumed = l.resumed
		r.putSeam(l, s)
	}
}

// putSeam calls OnSeam, or puts s into the inbox.
func (r *receiver) putSeam(l *served, s *Seam) {
	switch {
	case r.life.o.OnSeam != nil:
		if r.turn != nil {
			r.turn.Acquire(context.Background(), nil) // has no error
			defer r.turn.Release()
		}
		outer := l.calls.Enter(&onSeam)
		r.life.o.OnSeam(r.life, s)
		l.calls.Leave(outer)
	case r.inbox != nil:
		r.inbox.PutSeam((*inbox.Seam)(s))
	}
}

// Read returns the next message. Its data is in buf if that is large enough, and else in a new slice of
// the exact size; it belongs to the caller. buf may be nil. Read may use all of buf as scratch space,
// even if it returns an error. Where a connection was lost the error is a *[Seam]: keep reading. Any
// other error is
//
//   - the cause of ctx, which ends only this call;
//   - [net.ErrClosed], immediately after Close;
//   - the error of [Conn.Err], when everything has been read, after Shutdown or if the Conn has ended by
//     itself.
//
// Concurrent reads take turns. Read is an error on a Conn with OnMessage or [InboxDiscard].
func (c *Conn) Read(ctx context.Context, buf []byte) (m Message, err error) {
	in := c.receiver.inbox
	if in == nil {
		return m, errNoPull
	}
	if err := in.Turn.Acquire(ctx, nil); err != nil {
		return m, err
	}
	defer in.Turn.Release()
	err = c.read(ctx, &m, buf)
	return m, err
}

var errNoPull = errors.New("reconnect: Read on a Conn with OnMessage or an inbox that discards")

// read is Read without the turns: only one goroutine may call it at a time.
func (c *Conn) read(ctx context.Context, m *Message, buf []byte) error {
	for ended := false; ; {
		if c.life.Closed.Load() {
			return net.ErrClosed
		}
		if ctx.Err() != nil { // also while messages wait, or a slow reader would never stop
			return context.Cause(ctx)
		}
		seam, empty := c.receiver.inbox.Take(ctx, (*inbox.Item)(m), buf)
		switch {
		case seam != nil:
			return (*Seam)(seam)
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
			closed := c.life.Changed.Wait()
			if c.life.Closed.Load() {
				return net.ErrClosed
			}
			select {
			case <-empty:
			case <-closed:
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

// Messages returns the stream of messages: each pair is the result of a [Conn.Read] without a buffer. A
// *[Seam] does not end the stream; any other error is the last pair.
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

// limits returns the options of the inbox. With InboxDiscard there is none.
func (i *Inbox) limits() inbox.Options {
	return inbox.Options{Messages: i.Messages, Bytes: i.Bytes, Overflow: inbox.Overflow(i.Overflow)}
}
