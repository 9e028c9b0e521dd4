package reconnect

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
)

// outbox is the queue of what waits to be sent, messages of Send and of Write. One
// goroutine at a time writes them, the flusher, and one tells Done, the teller;
// each is there only while it has something to do, so that a handler of Done may
// be slow, and may send. A third is that of the timer.
type outbox struct {
	c     *Conn
	limit Outbox

	pending atomic.Int64 // entries without a fate: a Write that finds some queues behind them

	mu      sync.Mutex // guards what follows
	waiting list
	keys    map[string]*entry // of those waiting, for ReplaceKey
	link    *link             // by which to write; nil: none is ready
	last    uint64            // the last session that was lost
	timer   *time.Timer
	alarm   time.Time // when the timer rings; zero: it is not set
	told    []Receipt // waiting for Done
	heard   uint64    // of how many Done has been told
	fates   uint64    // of how many it has been told, or will be
	toldLen int       // bytes of their data
	unsent  []Receipt // since Shutdown
	closed  bool
	cut     bool // closed with messages in it

	flushing, telling          bool
	flushers, tellers, ringing sync.WaitGroup
	drained                    signal
	hearing                    signal // Done has been told of one more
}

func newOutbox(c *Conn) *outbox {
	return &outbox{c: c, limit: c.o.Outbox}
}

// accept takes a message of Send in, or says why not.
func (q *outbox) accept(o Out) error {
	now := time.Now()
	e := &entry{Out: o, expires: o.Deadline}
	if age := now.Add(q.limit.Age); q.limit.Age > 0 && (o.Deadline.IsZero() || age.Before(o.Deadline)) {
		e.expires = age
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.admit(e, now); err != nil {
		return err
	}
	q.append(e)
	q.setAlarm(e)
	return nil
}

// admit says why there is no place for e, or makes room for it.
func (q *outbox) admit(e *entry, now time.Time) error {
	size := len(e.Data)
	switch {
	case q.closed || q.c.leaving.Load() || q.c.closed.Load():
		return net.ErrClosed
	case q.c.o.Down != KeepSends && !q.ready():
		return q.c.refusal()
	case e.Session != 0 && (e.Session <= q.last || e.Session > q.c.counts.sessions.Load()):
		return fmt.Errorf("session %d: %w", e.Session, ErrSessionLost)
	case e.late(now):
		return ErrExpired
	case size > q.limit.Bytes:
		return fmt.Errorf("%w: a message of %d bytes, and Outbox.Bytes is %d", ErrOutboxFull, size, q.limit.Bytes)
	case len(q.told) >= q.limit.Messages || q.toldLen >= q.limit.Bytes:
		return fmt.Errorf("%w: Outbox.Done has yet to be told of %d messages", ErrOutboxFull, len(q.told))
	}
	old := q.keys[e.Key] // nil unless the policy is ReplaceKey
	if !q.room(size, old) {
		if q.limit.Full != DisplaceOldest {
			return fmt.Errorf("%w: %d messages of %d bytes wait", ErrOutboxFull, q.waiting.count, q.waiting.bytes)
		}
		for !q.room(size, nil) {
			q.drop(q.waiting.oldest(), ErrOutboxFull)
		}
	}
	if old != nil {
		q.drop(old, ErrReplaced)
	}
	return nil
}

// room reports whether size more bytes would fit if old were gone.
func (q *outbox) room(size int, old *entry) bool {
	count, bytes := q.waiting.count, q.waiting.bytes
	if old != nil {
		count, bytes = count-1, bytes-len(old.Data)
	}
	return count < q.limit.Messages && bytes+size <= q.limit.Bytes
}

// join takes a message of Write in, whose caller waits, so that it needs no room.
// The link is the one that is ready, if one is.
func (q *outbox) join(m conn.Message, inside bool) (*entry, *link, error) {
	hasty := inside || q.c.o.Down == FailWrites
	e := &entry{Out: Out{Message: m}, written: make(chan struct{}), hasty: hasty}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed || q.c.leaving.Load() || q.c.closed.Load():
		return nil, nil, net.ErrClosed
	case hasty && !q.ready():
		return nil, nil, q.c.refusal()
	}
	q.append(e)
	return e, q.link, nil
}

// ready reports whether there is a session to write by.
func (q *outbox) ready() bool { return q.link != nil && q.link == q.c.live.Load() }

// append puts e at the end, and sees to it that somebody writes it.
func (q *outbox) append(e *entry) {
	q.pending.Add(1)
	q.waiting.push(e)
	q.index(e)
	q.flush()
}

// index lets e be found by its key.
func (q *outbox) index(e *entry) {
	if e.Key == "" || q.limit.Full != ReplaceKey {
		return
	}
	if q.keys == nil {
		q.keys = make(map[string]*entry)
	}
	q.keys[e.Key] = e
}

// withdraw takes a Write out of the queue, unless it is being written: then it has
// this chance and no other.
func (q *outbox) withdraw(e *entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !e.listed {
		e.hasty = true
		return false
	}
	q.take(e)
	q.pending.Add(-1)
	q.tellDrained()
	return true
}

// leave is told by Shutdown: no Write waits any more.
func (q *outbox) leave() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for e, next := q.waiting.first, (*entry)(nil); e != nil; e = next {
		next = e.next
		if e.written != nil {
			q.drop(e, net.ErrClosed)
		}
	}
}

// busy reports whether a Write has to queue.
func (q *outbox) busy() bool { return q != nil && q.pending.Load() > 0 }

// draining reports whether Shutdown still needs a session for what is queued.
func (q *outbox) draining() bool {
	return q.busy() && q.c.o.Down == KeepSends
}

// end is told by the supervisor that there will be no further session. When it
// returns nothing of the outbox is left to run.
func (q *outbox) end() {
	if q == nil {
		return
	}
	q.mu.Lock()
	q.closed, q.cut = true, q.waiting.first != nil
	if !q.alarm.IsZero() && q.timer.Stop() {
		q.ringing.Done()
	}
	for q.waiting.first != nil {
		q.drop(q.waiting.first, net.ErrClosed)
	}
	telling := q.telling
	q.mu.Unlock()
	q.ringing.Wait()
	if telling {
		q.c.trace().waitForAll(&q.tellers, "Done", q.c)
	}
	q.tellers.Wait()
}

// take removes e from the list.
func (q *outbox) take(e *entry) {
	q.waiting.remove(e)
	if q.keys[e.Key] == e {
		delete(q.keys, e.Key)
	}
}

// drop removes e for good.
func (q *outbox) drop(e *entry, why error) {
	q.take(e)
	q.settle(e, Dropped, why)
}

// settle gives e, which is in no list any more, its fate.
func (q *outbox) settle(e *entry, fate Fate, err error) {
	if e.doubt && fate == Dropped {
		fate = Unknown
	}
	r := &e.receipt
	r.Fate, r.Err = fate, err
	q.c.counts.settled(fate)
	q.pending.Add(-1)
	q.tellDrained()
	if e.written != nil {
		close(e.written)
		return
	}
	r.Out = e.Out
	if fate != Written && q.c.leaving.Load() {
		q.unsent = append(q.unsent, *r)
	}
	q.told = append(q.told, *r)
	q.fates++
	q.toldLen += len(r.Out.Data)
	if !q.telling {
		q.telling = true
		q.tellers.Add(1)
		go q.tell() // joined by end
	}
}

func (q *outbox) tellDrained() {
	if q.pending.Load() == 0 {
		q.drained.broadcast()
	}
}

// tell is the teller.
func (q *outbox) tell() {
	defer q.tellers.Done()
	q.c.callers.enter()
	defer q.c.callers.leave()
	for {
		r, ok := q.nextTold()
		if !ok {
			return
		}
		q.limit.Done(r)
		q.noteHeard()
	}
}

func (q *outbox) noteHeard() {
	q.mu.Lock()
	q.heard++
	q.mu.Unlock()
	q.hearing.broadcast()
}

// awaitTold waits until Done has been told of all fates there are now.
func (q *outbox) awaitTold(ctx context.Context) error {
	q.mu.Lock()
	fates := q.fates
	q.mu.Unlock()
	for {
		hearing := q.hearing.wait()
		q.mu.Lock()
		heard := q.heard
		q.mu.Unlock()
		if heard >= fates {
			return nil
		}
		select {
		case <-hearing:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (q *outbox) nextTold() (Receipt, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.told) == 0 {
		q.told, q.telling = nil, false
		return Receipt{}, false
	}
	r := q.told[0]
	q.told[0] = Receipt{}
	q.told = q.told[1:]
	q.toldLen -= len(r.Out.Data)
	return r, true
}
