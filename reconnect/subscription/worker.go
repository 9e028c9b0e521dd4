package subscription

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// kick wakes the worker, or starts one if there is something to do. The caller holds mu.
func (b *book[K]) kick() {
	switch {
	case b.working:
		select {
		case b.wake <- struct{}{}:
		default:
		}
	case b.ready && !b.ended && b.busy():
		b.working = true
		b.set.workers.Add(1)
		go b.work() // end waits for it
	}
}

// busy reports whether there may be something to do.
func (b *book[K]) busy() bool {
	return b.failure != nil || b.caughtUp() || b.todo.Len()+len(b.flow.list)+len(b.rejections) > 0 ||
		!b.retiring && !b.set.rest.due().IsZero()
}

// work is the goroutine that writes the requests of a session, gives up requests without an answer,
// and calls the functions of the user. It ends when there is nothing to do and nothing to
// wait for, or with the session.
func (b *book[K]) work() {
	defer b.set.workers.Done()
	xsync.Guard(b.run, func() {
		b.set.conn.Redial(b.number, fmt.Errorf("subscription: a callback of the Options: %w", xsync.ErrNotReturned))
	})
}

func (b *book[K]) run() {
	for {
		if err := b.judge(); err != nil {
			b.set.conn.Redial(b.number, err)
		}
		b.letMark()
		r, wait, done := b.step(time.Now())
		switch {
		case done:
			return
		case r != nil:
			b.send(r, func(ctx context.Context, m conn.Message) error { return b.set.conn.WriteTo(ctx, b.number, m) })
		default:
			b.await(wait)
		}
	}
}

// step returns the next request, or until when to wait for one (the zero time: until something
// happens), or that there is nothing to do any more.
func (b *book[K]) step(now time.Time) (r *request[K], until time.Time, done bool) {
	b.set.mu.Lock()
	defer b.set.mu.Unlock()
	if b.ended {
		return nil, until, true
	}
	if !now.Before(b.hold) {
		if r := b.next(true); r != nil {
			return r, until, false
		}
		b.hold = time.Time{}
	}
	until = earlier(b.hold, b.flow.next())
	if !b.retiring {
		until = earlier(until, b.set.rest.due())
	}
	if until.IsZero() && !b.busy() {
		b.working = false
		return nil, until, true
	}
	return nil, until, false
}

// earlier returns the earlier of two times; the zero time is later than all others.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// await waits until then, or until something happens.
func (b *book[K]) await(until time.Time) {
	var tick <-chan time.Time
	if !until.IsZero() {
		tick = time.After(time.Until(until))
	}
	select {
	case <-tick:
	case <-b.wake:
	case <-b.life.Done():
	}
}

// send makes the message of r and writes it. It returns an error if the session is lost.
func (b *book[K]) send(r *request[K], write func(context.Context, conn.Message) error) error {
	defer r.cancel()
	own := r.ID
	m, err := b.set.o.Encode(&r.Request)
	if !b.register(r, own, err) {
		return nil
	}
	return b.wrote(r, write(r.ctx, m))
}

// register prepares r for its answer. err is the error of Encode. False means that r is not to be
// written.
func (b *book[K]) register(r *request[K], own string, err error) bool {
	s := b.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && r.ID != own && (r.ID == "" || s.gave(r.ID) || b.waits(r.ID)) {
		err = fmt.Errorf("subscription: Encode has set Request.ID to %q, an id that is empty or was used: set a new id, or none", r.ID)
	}
	switch {
	case b.ended:
	case err != nil:
		b.refuseAll(r.Op, b.unanswered(r), err)
		b.flow.forget(r)
	case r.ctx.Err() != nil:
		b.spared++
		b.release(r)
	default:
		r.state = phaseUnsent
		return true
	}
	return false
}

// wrote notes how the write of r has ended. It returns err if the session is lost.
func (b *book[K]) wrote(r *request[K], err error) error {
	s := b.set
	s.mu.Lock()
	defer s.mu.Unlock()
	unsent, _ := errors.AsType[*reconnect.WriteError](err)
	switch {
	case b.ended:
		return err
	case r.state == phaseSettled: // the answer was faster
		b.spared = 0
	case err == nil && s.o.NoAnswers:
		b.spared = 0
		b.accept(r.Op, b.unanswered(r), "")
		b.flow.forget(r)
	case err == nil:
		b.spared = 0
		b.flow.wrote(r, time.Now())
	case errors.Is(err, conn.ErrBadMessage):
		b.refuseAll(r.Op, b.unanswered(r), err)
		b.flow.forget(r)
	case unsent == nil || unsent.Fate == reconnect.FateUnknown || errors.Is(err, reconnect.ErrSessionLost) || errors.Is(err, net.ErrClosed):
		b.ended = true // Lost follows
		return err
	case r.ctx.Err() != nil:
		b.spared++
		b.release(r)
	default: // the Conn has not taken it
		b.release(r)
		b.pause(writeAgain)
	}
	return nil
}

// writeAgain is when a message is written again that the Conn has not taken.
const writeAgain = time.Second
