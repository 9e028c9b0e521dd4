package outbox

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

// lane is a link by which messages of the outbox are written. mu guards it.
type lane struct {
	*link.Link
	flushing bool // there is a flusher
	sending  bool // it writes messages that any session could send

	mine   func(*entry) bool     // reports whether a message may go by it, as for all lanes
	cursor queue.Cursor[sending] // no message up to it is mine
}

// newLane returns a lane of a link, or nil for a nil link.
func (q *Outbox) newLane(to *link.Link) *lane {
	if to == nil {
		return nil
	}
	l := &lane{Link: to}
	l.mine = func(e *entry) bool { return q.sendsBy(l, e) }
	q.queue.Follow(&l.cursor)
	return l
}

// end ends a lane, which may be nil.
func (q *Outbox) end(l *lane) {
	if l != nil {
		q.queue.Leave(&l.cursor)
	}
}

// link returns the link, nil for a nil lane.
func (l *lane) link() *link.Link {
	if l == nil {
		return nil
	}
	return l.Link
}

// Attach lets messages be written by l, which is ready. It calls change under the lock, so that no
// message is accepted between the two. A nil Outbox calls change alone.
func (q *Outbox) Attach(l *link.Link, change func()) {
	if q == nil {
		change()
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	change()
	if q.lane != nil {
		q.end(q.old)
		q.old = q.lane
	}
	q.lane = q.newLane(l)
	q.flush()
}

// Keeps decides whether a message waits for another session, because its own was lost.
type Keeps func(o Outgoing) bool

// Detach decides what becomes of the messages that l leaves behind. l was cut because of cause.
// keeps is asked about each that could wait for another session; nil: they wait.
func (q *Outbox) Detach(l *link.Link, cause error, keeps Keeps) {
	if q == nil {
		return
	}
	q.mu.Lock()
	for lane := q.laneOf(l); lane != nil && lane.flushing; {
		q.idle.Wait()
	}
	ready := q.lane.link() == l
	switch l {
	case q.lane.link():
		q.end(q.lane)
		q.lane = nil
	case q.old.link():
		q.end(q.old)
		q.old = nil
		q.flush() // what waited for it
	}
	q.last = max(q.last, l.Session)
	q.mu.Unlock()
	q.leaveBehind(l, ready && !q.life.Bridging.Load(), cause, keeps)
}

// laneOf returns the lane of l, nil if it has none.
func (q *Outbox) laneOf(l *link.Link) *lane {
	for _, lane := range [...]*lane{q.lane, q.old} {
		if lane.link() == l {
			return lane
		}
	}
	return nil
}

// Strand drops the messages that do not wait for another session, when a bridge is down and no session has
// come. l is the link that was closed. keeps decides about the others; nil: they wait.
func (q *Outbox) Strand(l *link.Link, cause error, keeps Keeps) {
	if q != nil {
		q.leaveBehind(l, true, cause, keeps)
	}
}

// leaveBehind drops the messages for the session of l and, if there is no other session to send them by,
// those that do not wait for another one. ready says that l was the one by which messages were sent.
func (q *Outbox) leaveBehind(l *link.Link, ready bool, cause error, keeps Keeps) {
	for _, e := range q.dropStranded(l, ready, cause, keeps) {
		if q.life.Closed.Load() {
			return // Close drops them
		}
		q.ask(e, cause, keeps)
	}
}

// dropStranded drops messages that cannot wait for another session, and returns those on which
// keeps must decide.
func (q *Outbox) dropStranded(l *link.Link, ready bool, cause error, keeps Keeps) (undecided []*entry) {
	lost := Because(ErrSessionLost, cause)
	q.mu.Lock()
	defer q.unlock()
	another := q.lane != nil || q.life.Bridging.Load() // for which they wait, or whose Detach decides
	for e := range q.queue.All() {
		s := &e.Value
		switch {
		case s.Out.Session == l.Session:
			q.drop(e, lost)
		case another && s.Out.Session != l.Session:
		case s.failFast:
			q.drop(e, AsLoss(0, cause))
		case s.done == nil && ready && q.o.Down != Keep:
			q.drop(e, lost)
		case s.done == nil && ready && keeps != nil:
			s.shared = true
			undecided = append(undecided, e)
		}
	}
	return undecided
}

// ask asks keeps about e, unless e has its fate by now. Meanwhile neither e nor what is behind it is written by another
// session. If e is dropped meanwhile, its receipt follows when keeps has returned, because that gives the data back.
func (q *Outbox) ask(e *entry, cause error, keeps Keeps) {
	q.mu.Lock()
	e.Value.asked = e.Queued()
	q.mu.Unlock()
	if !e.Value.asked {
		return
	}
	kept := true
	defer func() { // also if keeps ends the goroutine
		q.mu.Lock()
		defer q.unlock()
		e.Value.asked = false
		switch {
		case e.Value.late:
			q.told.add(chain{e, e})
			q.reporter.made.Add(1) // first: await, which has no lock, reads held and then made
			q.reporter.held.Add(-1)
		case !kept:
			q.drop(e, Because(ErrSessionLost, cause))
		}
		q.flush()
	}()
	kept = keeps(e.Value.Out)
}

// flush starts the flusher of each link that is ready, if there is work for it and it does not
// run. It reports whether it has started one.
func (q *Outbox) flush() (started bool) {
	if q.closed { // Close drops what is queued
		return false
	}
	for _, l := range [...]*lane{q.lane, q.old} {
		if l != nil && !l.flushing && !l.Lost() && q.hasFor(l) {
			l.flushing, started = true, true
			q.flushers++
			go q.work(l) // joined by Detach and Close, and by End while it reports
		}
	}
	return started
}

// hasFor reports whether there is a message that l may send now. Each Send asks, so that this must
// not look at what is for the other session each time.
func (q *Outbox) hasFor(l *lane) bool {
	if q.waits(l) {
		return false
	}
	e := q.queue.Peek(&l.cursor, l.mine)
	return e != nil && !e.Value.asked
}

// sendsBy reports whether e may go by l. Where one session replaces another, what is for any goes by
// the next one. A lane may become the old one, and then fewer messages may go by it: the cursor stays.
func (q *Outbox) sendsBy(l *lane, e *entry) bool {
	session := e.Value.Out.Session
	return session == l.Session || session == 0 && l == q.lane
}

// waits reports whether l is the next session, and must not write before the old one has written what it
// has begun.
func (q *Outbox) waits(l *lane) bool { return l == q.lane && q.old != nil && q.old.sending }

// The flusher hands over so many messages together at most, and so many bytes with their
// frames, unless one message alone is larger. A [conn.Transport] should hand that to the kernel
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
	began    time.Time      // when the write begins
}

var sendBatches = sync.Pool{New: func() any {
	return &sendBatch{entries: make([]*entry, 0, batchMessages), messages: make([]conn.Message, 0, batchMessages)}
}}

// free gives the batch back.
func (b *sendBatch) free() {
	clear(b.entries)
	clear(b.messages)
	b.entries, b.messages = b.entries[:0], b.messages[:0]
	sendBatches.Put(b)
}

// work is the goroutine of the flusher. After its last batch it goes on as the reporter, if there is none, because the
// start of another goroutine costs more. Close and Detach do not wait for that.
func (q *Outbox) work(l *lane) {
	if q.write(l) {
		q.reporter.run()
	}
}

// write is the flusher: it writes messages by l until there is none, or l is lost. It reports whether the
// caller has to run the reporter.
func (q *Outbox) write(l *lane) (report bool) {
	q.mu.Lock()
	q.came = time.Time{}
	q.mu.Unlock()
	for {
		b := q.begin(l)
		if b == nil {
			return false
		}
		n, err := l.Write(b.messages)
		l.Release()
		ended, report := q.written(b, n, err, l)
		b.free()
		if ended {
			return report
		}
	}
}

// begin waits for the slot of l, and takes the first messages that may still be sent by l out
// of the queue. It returns nil if there is none, and then the flusher must end.
func (q *Outbox) begin(l *lane) (b *sendBatch) {
	most, err := batchMessages, l.Acquire(&q.life.Context)
	if err == nil {
		if l.Paced() {
			most, err = q.awaitPace(l)
		}
		defer func() {
			if b == nil {
				l.Release()
			}
		}()
	}
	q.mu.Lock()
	for err == nil && most == 0 && q.hasFor(l) { // it came just now
		q.mu.Unlock()
		most, err = q.awaitPace(l)
		q.mu.Lock()
	}
	defer q.unlock()
	if err == nil && !q.closed && (q.lane == l || q.old == l) && !l.Lost() {
		b = q.take(l, most)
	}
	if b == nil {
		q.ended(l)
	}
	return b
}

// awaitPace waits until messages may be written by l, and returns how many; 0 if there are none.
func (q *Outbox) awaitPace(l *lane) (most int, err error) {
	return l.MayWrite(l, batchMessages, func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return !q.hasFor(l)
	})
}

// ended notes that the flusher of l ends.
func (q *Outbox) ended(l *lane) {
	l.flushing = false
	q.flushers--
	q.idle.Broadcast()
	if l != q.lane && q.lane != nil {
		q.flush() // what l has left
	}
}

// take takes the messages of a batch out of the queue, nil if there are none. There is one
// message in it if the connection cannot write several at once.
func (q *Outbox) take(l *lane, most int) *sendBatch {
	now := time.Now()
	switch {
	case q.waits(l):
		return nil
	case l.Transport == nil: // Write would hand them over one by one
		most = min(most, 1)
	}
	b := sendBatches.Get().(*sendBatch)
	b.began = now
	for size := 0; len(b.entries) < most; {
		e := q.queue.Next(now, &l.cursor, l.mine)
		if e == nil || e.Value.asked {
			break
		}
		m := &e.Value
		if size += len(m.Out.Data) + frameBytes; size > batchBytes && len(b.entries) > 0 {
			break
		}
		q.queue.Remove(e)
		l.sending = l.sending || m.Out.Session == 0
		m.Session = l.Session
		m.Tries++
		b.entries, b.messages = append(b.entries, e), append(b.messages, m.Out.Message)
	}
	if len(b.entries) == 0 {
		b.free()
		return nil
	}
	q.room.Broadcast() // because what is being written takes no room, and a write may last
	return b
}

// written decides what becomes of a batch, of which n messages were written, and err is why
// the next one was not. It reports whether the flusher must end, because l is dead or has nothing to write, and
// whether it must report then.
func (q *Outbox) written(b *sendBatch, n int, err error, l *lane) (ended, report bool) {
	now := time.Now()
	dead := err != nil && !errors.Is(err, conn.ErrBadMessage)
	lost := err
	if dead {
		l.Fail(err)
		lost = AsLoss(0, l.Cause(err))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if Tap != nil {
		defer Tap(&q.queue)
	}
	bytes := 0
	for _, m := range b.messages[:n] {
		bytes += len(m.Data)
	}
	q.life.Counts.Written.Add(uint64(n)) // before a Write returns
	q.life.Counts.WrittenBytes.Add(uint64(bytes))
	for _, e := range b.entries[:n] {
		e.Value.Began, e.Value.Ended = b.began, now
		q.settle(e, FateWritten, nil)
	}
	rest := b.entries[n:]
	if err != nil && !dead {
		rest[0].Value.Began, rest[0].Value.Ended = b.began, now
		q.settle(rest[0], FateDropped, err)
		rest = rest[1:]
	}
	for i, e := range rest {
		begun := dead && i == 0 && !errors.Is(err, conn.ErrNotWritten)
		if begun {
			e.Value.Began, e.Value.Ended = b.began, now
		}
		if fate, settled := q.unwritten(e, begun, dead); settled {
			why := lost
			if fate == FateDropped && e.Value.left != nil {
				why = e.Value.left
			}
			q.settle(e, fate, why)
			rest[i] = nil
		}
	}
	for _, e := range slices.Backward(rest) {
		if e != nil { // Detach, or the next session, decides
			q.queue.PutBack(e)
			q.setAlarm(e.Expires) // the timer may have rung while e was being written
		}
	}
	l.sending = false
	ended = dead || !q.hasFor(l)
	switch {
	case ended:
		q.ended(l)
	case l == q.old:
		q.flush() // what waited for it
	}
	report = q.tell()
	if report && !ended {
		go q.reporter.run() // joined by End
	}
	return ended, report
}

// unwritten returns the fate of e, which was not written whole, unless it is to wait for
// another turn. Begun says that a part of it may have been written, dead that the link is.
func (q *Outbox) unwritten(e *entry, begun, dead bool) (fate Fate, settled bool) {
	s := &e.Value
	if !begun {
		s.Tries--
	}
	switch {
	case begun && !(s.Out.Repeatable && q.o.Down == Keep && !q.closed):
		return FateUnknown, true
	case s.left != nil:
		return FateDropped, true
	case dead && (s.failFast && !q.ready() && !q.life.Bridging.Load() || q.closed || s.done != nil && q.life.Leaving.Load()):
		return FateDropped, true
	}
	s.maybeSent = s.maybeSent || begun
	return 0, false
}
