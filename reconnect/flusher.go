package reconnect

import (
	"errors"
	"time"

	"github.com/redial-go/redial/conn"
)

// attach has messages written by l, which is ready.
func (q *outbox) attach(l *link) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.link = l
	q.flush()
}

// detach decides what becomes of the messages that l leaves behind. L was cut,
// because of cause.
func (q *outbox) detach(l *link, cause error) {
	if q == nil {
		return
	}
	q.mu.Lock()
	ready := q.link == l
	q.link, q.last = nil, l.session
	q.mu.Unlock()
	q.flushers.Wait()
	for _, e := range q.leftBehind(ready, cause) {
		if q.life.closed.Load() {
			return // close drops them
		}
		q.askKeep(e, cause)
	}
}

// leftBehind drops what does not wait for another session, and returns what Keep
// decides on.
func (q *outbox) leftBehind(ready bool, cause error) (undecided []*entry) {
	lost := because(ErrSessionLost, cause)
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := range q.queue.All() {
		s := &e.Value
		switch {
		case s.failFast:
			q.drop(e, asLoss(cause))
		case s.Session != 0, s.done == nil && ready && q.life.o.WhenDown != WhenDownKeep:
			q.drop(e, lost)
		case s.done == nil && ready && q.life.o.Outbox.Keep != nil:
			undecided = append(undecided, e)
		}
	}
	return undecided
}

// askKeep asks Keep about e, unless e has its fate by now.
func (q *outbox) askKeep(e *entry, cause error) {
	q.mu.Lock()
	queued := e.Queued()
	q.mu.Unlock()
	if !queued {
		return
	}
	q.life.calling.enter(&keep)
	kept := q.life.o.Outbox.Keep(&q.life.Context, e.Value.Out, cause)
	q.life.calling.leave()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !kept && e.Queued() {
		q.drop(e, because(ErrSessionLost, cause))
	}
}

// flush starts the flusher, if there is work for one.
func (q *outbox) flush() {
	if !q.flushing && q.link != nil && !q.queue.Empty() {
		q.flushing = true
		l := q.link
		q.flushers.Add(1)
		go q.write(l) // joined by detach
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
		err := l.conn.Write(e.Value.Message)
		l.slot.Release()
		e.Value.receipt.Ended = time.Now()
		if err != nil && !errors.Is(err, conn.ErrBadMessage) {
			q.failed(e, l, err)
			return
		}
		q.mu.Lock()
		if err == nil {
			q.life.counts.written(e.Value.Message)
			q.settle(e, FateWritten, nil)
		} else {
			q.settle(e, FateDropped, err)
		}
		q.mu.Unlock()
	}
}

// begin waits for the right to write, and takes the first message that may still
// be sent by l out of the queue. If there is none, the flusher is one no more.
func (q *outbox) begin(l *link) *entry {
	stuck := l.slot.Acquire(&q.life.Context, nil)
	q.mu.Lock()
	defer q.mu.Unlock()
	if stuck == nil && !q.closed && q.link == l && q.ready() {
		now := time.Now()
		if e := q.queue.Next(now); e != nil {
			r := &e.Value.receipt
			r.Session, r.Began = l.session, now
			r.Tries++
			return e
		}
	}
	if stuck == nil {
		l.slot.Release()
	}
	q.flushing = false
	return nil
}

// failed decides what becomes of e, whose write has failed, so that l is dead.
func (q *outbox) failed(e *entry, l *link, err error) {
	begun := !errors.Is(err, conn.ErrNotWritten)
	l.cut(err)
	err = asLoss(l.why(err))
	s := &e.Value
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flushing = false
	if !begun {
		s.receipt.Tries--
		s.receipt.Began, s.receipt.Ended = time.Time{}, time.Time{}
	}
	switch {
	case begun && !(s.Repeatable && q.life.o.WhenDown == WhenDownKeep && !q.closed):
		q.settle(e, FateUnknown, err)
	case s.failFast, q.closed, s.done != nil && q.life.leaving.Load():
		q.settle(e, FateDropped, err)
	default: // detach, or the next session, decides
		s.maybeSent = s.maybeSent || begun
		q.queue.PutBack(e)
		q.setAlarm()
	}
}
