package reconnect

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
)

// attach lets messages be written by l, which is ready. The caller holds the lock.
func (q *outbox) attach(l *link) {
	if q == nil {
		return
	}
	if q.link != nil {
		q.old = q.link
	}
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
	for l.flushing {
		q.idle.Wait()
	}
	ready := q.link == l
	switch l {
	case q.link:
		q.link = nil
	case q.old:
		q.old = nil
		q.flush() // what waited for it
	}
	q.last = max(q.last, l.session)
	q.mu.Unlock()
	q.leaveBehind(l, ready && !q.life.bridging.Load(), cause)
}

// strand drops the messages that do not wait for another session, when a bridge is down and no
// session has come. l is the link that was closed. With ask Keep decides about the others.
func (q *outbox) strand(l *link, ask bool, cause error) {
	if q == nil {
		return
	}
	if ask {
		q.leaveBehind(l, true, cause)
	} else {
		q.leftBehind(l, true, cause)
	}
}

// leaveBehind drops the messages for the session of l, and, if no session is ready, those that
// do not wait for another one. ready says that l was the one by which messages were sent.
func (q *outbox) leaveBehind(l *link, ready bool, cause error) {
	for _, e := range q.leftBehind(l, ready, cause) {
		if q.life.closed.Load() {
			return // close drops them
		}
		q.askKeep(l, e, cause)
	}
}

// leftBehind does what leaveBehind says, and returns the messages on which Keep decides.
func (q *outbox) leftBehind(l *link, ready bool, cause error) (undecided []*entry) {
	lost := because(ErrSessionLost, cause)
	q.mu.Lock()
	defer q.unlock()
	another := q.ready() || q.life.bridging.Load() // for which they wait
	for e := range q.queue.All() {
		s := &e.Value
		switch {
		case s.Session == l.session && !s.failFast:
			q.drop(e, lost)
		case another && s.Session != l.session:
		case s.failFast:
			q.drop(e, asLoss(cause))
		case s.done == nil && ready && q.life.o.WhenDown != WhenDownKeep:
			q.drop(e, lost)
		case s.done == nil && ready && q.life.o.Outbox.Keep != nil:
			s.shared = true
			undecided = append(undecided, e)
		}
	}
	return undecided
}

// askKeep calls Keep for e, unless e has its fate by now.
func (q *outbox) askKeep(l *link, e *entry, cause error) {
	q.mu.Lock()
	queued := e.Queued()
	q.mu.Unlock()
	if !queued {
		return
	}
	l.calling.enter(&keep)
	kept := q.life.o.Outbox.Keep(&q.life.Context, e.Value.Out, cause)
	l.calling.leave()
	q.mu.Lock()
	defer q.unlock()
	if !kept && e.Queued() {
		q.drop(e, because(ErrSessionLost, cause))
	}
}

// flush starts the flusher of each link that is ready, if there is work for it and it does not
// run.
func (q *outbox) flush() {
	for _, l := range [...]*link{q.link, q.old} {
		if l != nil && !l.flushing && !l.lost() && q.hasFor(l) {
			l.flushing = true
			q.flushers.Add(1)
			go q.write(l) // joined by detach
		}
	}
}

// hasFor reports whether there is a message that l may send now.
func (q *outbox) hasFor(l *link) bool {
	for e := range q.queue.All() {
		if q.sendsBy(l, e) {
			return true
		}
	}
	return false
}

// sendsBy reports whether l may send e now. Where one session replaces another, what is for
// any goes by the next one, after what the old one has begun.
func (q *outbox) sendsBy(l *link, e *entry) bool {
	session := e.Value.Session
	if l != q.link {
		return session == l.session
	}
	return (session == 0 || session == l.session) && (q.old == nil || !q.old.sending)
}

// The flusher hands over so many messages together at most, and so many bytes with their
// frames, unless one message alone is larger. A [conn.BatchWriter] should hand that to the kernel
// at once. Then one write timeout holds for them, and none begins after its deadline.
const (
	batchMessages = 64
	batchBytes    = 32 << 10
	frameBytes    = 14 // what the header of a frame takes, at most
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
		l.wrote(min(n+1, len(b.messages))) // the one that failed may have been begun
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
	most := 0
	if stuck == nil {
		if most, stuck = q.awaitPace(l); stuck != nil {
			l.slot.Release()
		}
	}
	q.mu.Lock()
	for stuck == nil && most == 0 && q.hasFor(l) { // it came just now
		q.mu.Unlock()
		if most, stuck = q.awaitPace(l); stuck != nil {
			l.slot.Release()
		}
		q.mu.Lock()
	}
	defer q.unlock()
	if stuck == nil && !q.closed && (q.link == l || q.old == l) && !l.lost() {
		if b := q.take(l, most); b != nil {
			return b
		}
	}
	if stuck == nil {
		l.slot.Release()
	}
	q.ended(l)
	return nil
}

// awaitPace waits until messages may be written by l, and returns how many; 0 if there are none.
func (q *outbox) awaitPace(l *link) (most int, err error) {
	return l.mayWrite(l, q.life, batchMessages, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return !q.hasFor(l)
	})
}

// ended notes that the flusher of l ends.
func (q *outbox) ended(l *link) {
	l.flushing = false
	q.idle.Broadcast()
	if l != q.link && q.link != nil {
		q.flush() // what l has left
	}
}

// take takes the messages of a batch out of the queue, nil if there are none. There is one
// message in it if the connection cannot write several at once, or is not to.
func (q *outbox) take(l *link, most int) *sendBatch {
	now := time.Now()
	if _, ok := l.conn.(conn.BatchWriter); !ok || q.life.o.Outbox.OneByOne {
		most = min(most, 1)
	}
	b := sendBatches.Get().(*sendBatch)
	for size := 0; len(b.entries) < most; {
		e := q.queue.Next(now, func(e *entry) bool { return q.sendsBy(l, e) })
		if e == nil {
			break
		}
		m := &e.Value
		if size += len(m.Data) + frameBytes; size > batchBytes && len(b.entries) > 0 {
			break
		}
		q.queue.Remove(e)
		l.sending = l.sending || m.Session == 0
		m.session, m.began = l.session, now
		m.tries++
		b.entries, b.messages = append(b.entries, e), append(b.messages, m.Message)
	}
	if len(b.entries) == 0 {
		b.free()
		return nil
	}
	q.room.Broadcast() // because what is being written takes no room, and a write may last
	return b
}

// written decides what becomes of a batch, of which n messages were written, and err is why
// the next one was not. It reports whether l is dead, so that the flusher must end.
func (q *outbox) written(b *sendBatch, n int, err error, l *link) (dead bool) {
	now := time.Now()
	dead = err != nil && !errors.Is(err, conn.ErrBadMessage)
	lost := err
	if dead {
		l.fail(err)
		lost = asLoss(l.why(err))
	}
	q.mu.Lock()
	defer q.unlock()
	bytes := 0
	for _, m := range b.messages[:n] {
		bytes += len(m.Data)
	}
	q.life.counts.out.Add(uint64(n)) // before a Write returns
	q.life.counts.outBytes.Add(uint64(bytes))
	for _, e := range b.entries[:n] {
		e.Value.ended = now
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
	l.sending = false
	switch {
	case dead:
		q.ended(l)
	case l == q.old:
		q.flush() // what waited for it
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
	case dead && (s.failFast && !q.ready() && !q.life.bridging.Load() || q.closed || s.done != nil && q.life.leaving.Load()):
		return FateDropped, true
	}
	s.maybeSent = s.maybeSent || begun
	return 0, false
}
