package subscription

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// kick wakes the worker, or starts one if there is something to do. The caller holds mu.
func (b *book[K]) kick() {
	b.set.changes()
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
	return b.failure != nil || b.caughtUp() || b.adds.Len()+len(b.drops)+len(b.jobs)+len(b.inflight)+len(b.rejections) > 0 ||
		!b.retiring && len(b.set.resting) > 0
}

// work is the goroutine that writes the requests of a session, gives up requests without an answer,
// and calls the functions of the user. It ends when there is nothing to do and nothing to
// wait for, or with the session.
func (b *book[K]) work() {
	defer b.set.workers.Done()
	returned := false
	defer func() {
		if !returned { // a function of the user has ended this goroutine
			b.set.conn.Redial(b.number, errNotReturned)
		}
	}()
	for {
		if err := b.judge(); err != nil {
			b.set.conn.Redial(b.number, err)
		}
		b.letMark()
		r, wait, done := b.step(time.Now())
		switch {
		case done:
			returned = true
			return
		case r != nil:
			b.send(r, b.writeTo)
		default:
			b.await(wait)
		}
	}
}

var errNotReturned = errors.New("subscription: a function of the Options called runtime.Goexit")

// step returns the next request, or until when to wait for one (the zero time: until something
// happens), or that there is nothing to do any more.
func (b *book[K]) step(now time.Time) (r *request[K], until time.Time, done bool) {
	b.set.mu.Lock()
	defer b.set.mu.Unlock()
	if b.ended {
		b.working = false
		return nil, until, true
	}
	b.expire(now)
	b.set.rouse(now)
	if len(b.rejections) > 0 || b.failure != nil {
		return nil, now, false
	}
	if !b.set.reporting { // so that few events are added while Events runs
		if !now.Before(b.hold) {
			if r := b.next(true); r != nil {
				return r, until, false
			}
			b.hold = time.Time{}
		}
		until = b.hold
	}
	until = earlier(until, b.deadline())
	if !b.retiring {
		until = earlier(until, b.set.due())
	}
	if until.IsZero() && !b.busy() {
		b.working = false
		return nil, until, true
	}
	return nil, until, false
}

// deadline returns until when the next answer must come, the zero time if there is no limit.
func (b *book[K]) deadline() (first time.Time) {
	for _, r := range b.inflight {
		first = earlier(first, r.deadline)
	}
	return first
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
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		tick = timer.C
	}
	select {
	case <-tick:
	case <-b.wake:
	case <-b.ctx.Done():
	}
}

// writeTo writes a message by the session of b. The Conn's Pace may make it wait.
func (b *book[K]) writeTo(ctx context.Context, m conn.Message) error {
	return b.set.conn.WriteTo(ctx, b.number, m)
}

// send makes the message of r and writes it. It returns the error of write if the session is lost.
func (b *book[K]) send(r *request[K], write func(context.Context, conn.Message) error) error {
	own := r.ID
	m, err := b.set.o.Encode(&r.Request)
	ctx, ok := b.register(r, own, err)
	if !ok {
		return nil
	}
	err = write(ctx, m)
	return b.wrote(r, err)
}

// register lets the answer to r come, whose message was made unless there is an error. It returns
// the context of the write, or false if r is not to be written.
func (b *book[K]) register(r *request[K], own string, err error) (context.Context, bool) {
	s := b.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && r.ID != own && (r.ID == "" || s.gave(r.ID) || b.waits(r.ID)) {
		err = fmt.Errorf("subscription: Encode has set an id that is empty or was used: %q", r.ID)
	}
	switch {
	case b.ended:
		return nil, false
	case err != nil:
		list := b.unanswered(r)
		b.forget(r)
		b.refuseAll(r.Op, list, err)
		return nil, false
	case r.stale:
		b.takeBack(r)
		return nil, false
	}
	r.state = phaseUnsent
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(b.ctx)
	return ctx, true
}

// wrote notes how the write of r has ended. It returns err if the session is lost.
func (b *book[K]) wrote(r *request[K], err error) error {
	s := b.set
	s.mu.Lock()
	defer s.mu.Unlock()
	r.cancel()
	r.cancel = nil
	switch unsent, _ := errors.AsType[*reconnect.WriteError](err); {
	case b.ended:
		return err
	case err == nil:
		b.written(r)
	case r.state == phaseSettled: // the venue has answered all the same
	case errors.Is(err, conn.ErrBadMessage):
		list := b.unanswered(r)
		b.forget(r)
		b.refuseAll(r.Op, list, err)
	case r.stale && unsent != nil && unsent.Fate == reconnect.FateDropped && errors.Is(err, context.Canceled):
		b.takeBack(r)
	case unsent == nil || unsent.Fate == reconnect.FateUnknown || errors.Is(err, reconnect.ErrSessionLost) || errors.Is(err, net.ErrClosed):
		b.ended = true // Lost follows
		return err
	default: // such as for want of room
		b.release(r)
		b.hold = time.Now().Add(writeAgain)
	}
	return nil
}

// writeAgain is when a message is written again that the Conn has not taken.
const writeAgain = time.Second

// written notes that r was written.
func (b *book[K]) written(r *request[K]) {
	b.spared = 0
	switch {
	case r.state == phaseSettled: // the answer was faster
	case b.set.o.NoAnswers:
		list := b.unanswered(r)
		b.forget(r)
		b.accept(r.Op, list, "")
		b.set.changes()
	default:
		r.state = phaseWritten
		if limit := b.set.o.Timeout; limit > 0 {
			r.deadline = time.Now().Add(limit)
		}
	}
}
