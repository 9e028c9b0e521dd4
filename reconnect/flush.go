package reconnect

import (
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
)

// up is told by the supervisor that l is ready.
func (q *outbox) up(l *link) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.link = l
	q.flush()
}

// down is told by the supervisor that l is lost, which is cut already, and decides
// what becomes of the messages that it leaves behind.
func (q *outbox) down(l *link, cause error) {
	if q == nil {
		return
	}
	q.mu.Lock()
	ready := q.link == l
	q.link, q.last = nil, l.n
	q.mu.Unlock()
	q.flushers.Wait()
	lost := fmt.Errorf("%w: %v", ErrSessionLost, cause) // not %w: the end of a session must not pass for that of all
	var undecided []*entry
	q.mu.Lock()
	for e, next := q.waiting.first, (*entry)(nil); e != nil; e = next {
		next = e.next
		switch {
		case e.hasty:
			q.drop(e, cause)
		case e.written != nil:
		case e.Session != 0, ready && q.c.o.Down != KeepSends:
			q.drop(e, lost)
		case ready && q.limit.Keep != nil:
			undecided = append(undecided, e)
		}
	}
	q.mu.Unlock()
	for _, e := range undecided {
		if q.c.closed.Load() {
			return // end drops them
		}
		if q.waits(e) && !q.limit.Keep(e.Out, cause) {
			q.giveUp(e, lost)
		}
	}
}

// waits reports whether e has no fate yet.
func (q *outbox) waits(e *entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return e.listed
}

// giveUp drops e, unless it got its fate while Keep thought about it.
func (q *outbox) giveUp(e *entry, why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.listed {
		q.drop(e, why)
	}
}

// flush starts the flusher, if there is work for one.
func (q *outbox) flush() {
	if !q.flushing && q.link != nil && q.waiting.first != nil {
		q.flushing = true
		l := q.link
		q.flushers.Add(1)
		go q.write(l) // joined by down
	}
}

// write is the flusher.
func (q *outbox) write(l *link) {
	defer q.flushers.Done()
	for {
		e := q.begin(l)
		if e == nil {
			return
		}
		err := l.conn.Write(e.Message)
		q.c.slot.leave()
		if err != nil && !errors.Is(err, conn.ErrBadMessage) {
			q.failed(e, l, err)
			return
		}
		q.mu.Lock()
		if err == nil {
			q.c.counts.written(e.Message)
			q.settle(e, Written, nil)
		} else {
			q.settle(e, Dropped, err)
		}
		q.mu.Unlock()
	}
}

// begin waits for the right to write, and takes the first message that may still
// be sent by l out of the queue. If there is none, the flusher is one no more.
func (q *outbox) begin(l *link) *entry {
	stuck := q.c.slot.enter(&q.c.life, nil)
	q.mu.Lock()
	defer q.mu.Unlock()
	if stuck == nil && q.link == l && q.ready() {
		now := time.Now()
		for e := q.waiting.first; e != nil; e = q.waiting.first {
			if !e.late(now) {
				q.take(e)
				e.receipt.Session = l.n
				e.receipt.Tries++
				return e
			}
			q.drop(e, ErrExpired)
		}
	}
	if stuck == nil {
		q.c.slot.leave()
	}
	q.flushing = false
	return nil
}

// failed is what happens to e, and to the flusher, when l is dead.
func (q *outbox) failed(e *entry, l *link, err error) {
	begun := !errors.Is(err, conn.ErrNotWritten)
	err = l.why(err)
	q.c.sever(l, err)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flushing = false
	switch {
	case begun && !(e.Repeatable && q.c.o.Down == KeepSends):
		q.settle(e, Unknown, err)
	case e.hasty, e.written != nil && q.c.leaving.Load():
		q.settle(e, Dropped, err)
	default: // down, or the next session, decides
		e.doubt = e.doubt || begun
		if !begun {
			e.receipt.Tries--
		}
		q.putBack(e)
	}
}

// putBack puts e, which was taken out to be written, back at the head.
func (q *outbox) putBack(e *entry) {
	if q.keys[e.Key] != nil { // by one that came meanwhile
		q.settle(e, Dropped, ErrReplaced)
		return
	}
	q.waiting.unshift(e)
	q.index(e)
	q.setAlarm(e) // it may have rung meanwhile
}
