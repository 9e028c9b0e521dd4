package reconnect

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
)

// attach lets messages be written by l, which is ready.
func (q *outbox) attach(l *link) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.link = l
	q.flush()
}

// detach decides what becomes of the messages that l leaves behind. l was cut because of
// cause.
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

// leftBehind drops the messages that do not wait for another session, and returns those on
// which Keep decides.
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

// askKeep calls Keep for e, unless e has its fate by now.
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

// flush starts the flusher, if there is work for it and it does not run.
func (q *outbox) flush() {
	if !q.flushing && q.link != nil && !q.queue.Empty() {
		q.flushing = true
		l := q.link
		q.flushers.Add(1)
		go q.write(l) // joined by detach
	}
}

// The flusher hands over so many messages together at most, and no further one behind so
// many bytes, so that one system call takes them and one write timeout holds for them.
const (
	batchMessages = 64
	batchBytes    = 32 << 10
)

// sendBatch is what the flusher writes at once.
type sendBatch struct {
	entries  []*entry
	messages []conn.Message // of the entries
}

var sendBatches = sync.Pool{New: func() any {
	return &sendBatch{make([]*entry, 0, batchMessages), make([]conn.Message, 0, batchMessages)}
}}

// free gives the batch back.
func (b *sendBatch) free() {
	clear(b.entries)
	clear(b.messages)
	b.entries, b.messages = b.entries[:0], b.messages[:0]
	sendBatches.Put(b)
}

// write is the flusher: it writes messages by l until there is none, or l is lost.
func (q *outbox) write(l *link) {
	defer q.flushers.Done()
	for {
		b := q.begin(l)
		if b == nil {
			return
		}
		n, err := l.write(b.messages)
		l.slot.Release()
		ended := q.written(b, n, err, l)
		b.free()
		if ended {
			return
		}
	}
}

// write writes messages and returns how many were handed over whole; err is about the next
// one.
func (l *link) write(ms []conn.Message) (n int, err error) {
	if w, ok := l.conn.(conn.BatchWriter); ok && len(ms) > 1 {
		return w.WriteBatch(ms)
	}
	for n < len(ms) && err == nil {
		if err = l.conn.Write(ms[n]); err == nil {
			n++
		}
	}
	return n, err
}

// begin waits for the slot of l, and takes the first messages that may still be sent by l out
// of the queue. It returns nil if there is none, and then the flusher must end.
func (q *outbox) begin(l *link) *sendBatch {
	stuck := l.slot.Acquire(&q.life.Context, nil)
	q.mu.Lock()
	defer q.mu.Unlock()
	if stuck == nil && !q.closed && q.link == l && q.ready() {
		if b := q.take(l); b != nil {
			return b
		}
	}
	if stuck == nil {
		l.slot.Release()
	}
	q.flushing = false
	return nil
}

// take takes the messages of a batch out of the queue, nil if there are none. A connection
// that cannot write several at once gets one.
func (q *outbox) take(l *link) *sendBatch {
	now := time.Now()
	most := 1
	if _, ok := l.conn.(conn.BatchWriter); ok {
		most = batchMessages
	}
	b := sendBatches.Get().(*sendBatch)
	for size := 0; len(b.entries) < most && size < batchBytes; {
		e := q.queue.Next(now)
		if e == nil {
			break
		}
		m := &e.Value
		m.session, m.began = l.session, now
		m.tries++
		size += len(m.Data)
		b.entries, b.messages = append(b.entries, e), append(b.messages, m.Message)
	}
	if len(b.entries) == 0 {
		b.free()
		return nil
	}
	return b
}

// written decides what becomes of a batch, of which n messages were written, and err is why
// the next one was not. It reports whether l is dead, so that the flusher must end.
func (q *outbox) written(b *sendBatch, n int, err error, l *link) (dead bool) {
	now := time.Now()
	dead = err != nil && !errors.Is(err, conn.ErrBadMessage)
	lost := err
	if dead {
		l.cut(err)
		lost = asLoss(l.why(err))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range b.entries[:n] {
		e.Value.ended = now
		q.life.counts.written(e.Value.Message)
		q.settle(e, FateWritten, nil)
	}
	rest := b.entries[n:]
	if err != nil && !dead {
		rest[0].Value.ended = now
		q.settle(rest[0], FateDropped, err)
		rest = rest[1:]
	}
	for i, e := range rest {
		begun := dead && i == 0 && !errors.Is(err, conn.ErrNotWritten)
		if begun {
			e.Value.ended = now
		}
		if fate, settled := q.unwritten(e, begun, dead); settled {
			q.settle(e, fate, lost)
			rest[i] = nil
		}
	}
	for _, e := range slices.Backward(rest) {
		if e != nil { // detach, or the next session, decides
			q.queue.PutBack(e)
		}
	}
	q.setAlarm()
	if dead {
		q.flushing = false
	}
	return dead
}

// unwritten returns the fate of e, which was not written whole, unless it is to wait for
// another turn. Begun says that a part of it may have been written, dead that the link is.
func (q *outbox) unwritten(e *entry, begun, dead bool) (fate Fate, settled bool) {
	s := &e.Value
	if !begun {
		s.tries--
		s.began, s.ended = time.Time{}, time.Time{}
	}
	switch {
	case begun && !(s.Repeatable && q.life.o.WhenDown == WhenDownKeep && !q.closed):
		return FateUnknown, true
	case dead && (s.failFast || q.closed || s.done != nil && q.life.leaving.Load()):
		return FateDropped, true
	}
	s.maybeSent = s.maybeSent || begun
	return 0, false
}
