package reconnect

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/queue"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// outbox is the lock, the goroutines and the timer around the queue of the messages of Send
// and Write that wait to be sent. One goroutine at a time, the flusher, writes them, and one,
// the reporter, calls OnReceipt. Each exists only while it has something to do. They are two
// so that OnReceipt may be slow, and may send.
type outbox struct {
	life     *lifetime
	state    *state
	reporter reporter

	pending atomic.Int64 // messages without a fate; if there are some, a Write queues behind them

	mu      sync.Mutex // guards what follows
	queue   queue.Queue[sending]
	link    *link     // the link by which to write; nil: none is ready
	old     *link     // the link that it replaces, for messages of that session; nil: none
	last    uint64    // the last session that was lost
	alarm   time.Time // when the timer calls ring; zero: it is not set
	unsent  []Receipt // of messages that could not be sent since Shutdown was called
	spares  spares    // none while nothing is pending
	told    chain     // messages of Send that have got their fate since the lock was taken
	settled uint32    // messages, those of Write too, that have got their fate since then
	closed  bool
	cut     bool // there were messages in it when it was closed

	idle     sync.Cond // of mu: a flusher has ended
	flushers sync.WaitGroup
	timer    xsync.Timer
	drained  xsync.Signal // sent when nothing is pending
	room     xsync.Signal // sent when there may be room
}

// sending is a message on its way.
type sending struct {
	Out
	done      chan struct{} // closed with the fate of a Write; nil for a Send
	next      *entry        // behind it in a chain, or in a list of spares
	shared    bool          // somebody else may still know the entry, so that it is not used again
	failFast  bool          // it does not wait for another session
	maybeSent bool          // an earlier session may have sent it
	queued    instant       // when it was queued

	// What its receipt will say.
	session      uint64
	tries        int
	began, ended time.Time
	fate         Fate
	err          error
}

// receipt returns the receipt of a message that has its fate.
func (s *sending) receipt() Receipt {
	return Receipt{Out: s.Out, Fate: s.fate, Session: s.session, Tries: s.tries, Began: s.began, Ended: s.ended, Err: s.err}
}

func newOutbox(life *lifetime, state *state) *outbox {
	q := &outbox{life: life, state: state, reporter: reporter{life: life}}
	o := &life.o.Outbox
	q.idle.L = &q.mu
	q.queue.Limits = queue.Limits{Messages: o.Messages, Bytes: o.Bytes, Full: policies[o.Overflow]}
	q.queue.Dropped = func(e *entry, why queue.Reason) { q.settle(e, FateDropped, reasons[why]) }
	return q
}

// policies are the policies of the queue for ours.
var policies = [...]queue.Policy{OverflowBlock: queue.Refuse, OverflowDropOldest: queue.DropOldest, OverflowReplaceKey: queue.ReplaceKey}

// reasons are the errors in a receipt for the reasons of the queue.
var reasons = [...]error{queue.Displaced: ErrOutboxFull, queue.Replaced: ErrReplaced, queue.Expired: ErrExpired}

// accept queues a message of Send, or returns why it does not.
func (q *outbox) accept(o Out) error {
	now, expires := time.Now(), o.Deadline
	limit := &q.life.o.Outbox
	if age := now.Add(limit.Age); limit.Age > 0 && (o.Deadline.IsZero() || age.Before(o.Deadline)) {
		expires = age
	}
	q.mu.Lock()
	defer q.unlock()
	switch {
	case q.ending():
		return net.ErrClosed
	case q.life.o.WhenDown != WhenDownKeep && !q.ready() && !q.life.bridging.Load():
		return q.state.refusal()
	case q.lost(o.Session) || o.Session > q.life.counts.sessions.Load():
		return sessionLost(o.Session)
	case !expires.IsZero() && !now.Before(expires):
		return ErrExpired
	}
	if n, full := q.reporter.full(); full {
		return fmt.Errorf("%w: %d receipts wait for Outbox.OnReceipt", ErrOutboxFull, n)
	}
	e := q.spares.get()
	e.Value.Out, e.Value.queued, e.Size, e.Key, e.Expires = o, now.Sub(epoch), len(o.Data), o.Key, expires
	if err := q.queue.Add(e, now); err != nil {
		q.spares.put(e)
		return fmt.Errorf("%w: %w", ErrOutboxFull, err)
	}
	q.added()
	return nil
}

// join queues a message of Write. That needs no room, because the caller waits. It returns
// the link by which messages are written. While a session was closed so that another can take
// its place that may be lost, or nil.
func (q *outbox) join(m conn.Message, session uint64) (*entry, *link, error) {
	failFast := q.life.o.WhenDown == WhenDownFail
	e := &entry{Free: true, Value: sending{
		Out: Out{Message: m, Session: session}, done: make(chan struct{}), failFast: failFast, queued: now(),
	}}
	q.mu.Lock()
	defer q.unlock()
	switch {
	case q.ending():
		return nil, nil, net.ErrClosed
	case failFast && !q.ready() && !q.life.bridging.Load():
		return nil, nil, q.state.refusal()
	case q.lost(session):
		return nil, nil, sessionLost(session)
	}
	_ = q.queue.Add(e, time.Time{}) // has no error, because e takes no room
	q.added()
	return e, q.link, nil
}

// ending reports whether nothing more is accepted.
func (q *outbox) ending() bool { return q.closed || q.life.leaving.Load() || q.life.closed.Load() }

// lost reports whether a session has ended.
func (q *outbox) lost(session uint64) bool {
	switch {
	case session == 0 || session > q.last:
		return false
	case q.link != nil && q.link.session == session:
		return q.link.lost()
	case q.old != nil && q.old.session == session:
		return q.old.lost()
	}
	return true
}

// ready reports whether there is a session to write by.
func (q *outbox) ready() bool { return q.link != nil && !q.link.lost() }

// added lets a message that was just queued be written, and dropped when it expires.
func (q *outbox) added() {
	q.pending.Add(1)
	q.setAlarm()
	q.flush()
}

// setAlarm sets the timer to when the first message expires.
func (q *outbox) setAlarm() {
	earliest := q.queue.Earliest()
	if earliest.IsZero() || !q.alarm.IsZero() && !earliest.Before(q.alarm) {
		return
	}
	q.alarm = earliest
	q.timer.Set(time.Until(earliest), q.ring)
}

// ring is the timer's callback. It drops the messages that have expired.
func (q *outbox) ring() {
	q.mu.Lock()
	defer q.unlock()
	q.alarm = time.Time{}
	q.queue.Expire(time.Now())
	q.setAlarm()
}

// withdraw takes the message of a Write out of the queue, and reports whether it was there.
// If not, the message is being written; it is not tried again after that.
func (q *outbox) withdraw(e *entry) bool {
	q.mu.Lock()
	defer q.unlock()
	if !e.Queued() {
		e.Value.failFast = true
		return false
	}
	q.queue.Remove(e)
	q.settled++
	return true
}

// leave drops the messages of Writes that wait, and wakes each SendWait, which is refused now.
// Shutdown calls it.
func (q *outbox) leave() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.unlock()
	q.room.Broadcast()
	for e := range q.queue.All() {
		if e.Value.done != nil {
			q.drop(e, net.ErrClosed)
		}
	}
}

// busy reports whether a Write has to queue.
func (q *outbox) busy() bool { return q != nil && q.pending.Load() > 0 }

// draining reports whether Shutdown needs another session for what is queued.
func (q *outbox) draining() bool { return q.busy() && q.life.o.WhenDown == WhenDownKeep }

// depth returns how many messages have no fate yet, the size of the data that Send has
// queued, and how long the oldest message has been queued.
func (q *outbox) depth() (messages, bytes uint64, age time.Duration) {
	if q == nil {
		return 0, 0, 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	_, size := q.queue.Size()
	if oldest := q.queue.First(); oldest != nil {
		age = now() - oldest.Value.queued
	}
	return uint64(q.pending.Load()), uint64(size), age
}

// close accepts nothing from now on, waits for the message that is being written, and drops
// what is queued. The link must be cut already.
func (q *outbox) close() {
	if q == nil {
		return
	}
	q.mu.Lock()
	if !q.closed {
		q.closed, q.cut = true, q.pending.Load() > 0
	}
	q.mu.Unlock()
	q.flushers.Wait() // first, because what is being written comes before what waits
	q.mu.Lock()
	defer q.unlock()
	for e := range q.queue.All() {
		q.drop(e, net.ErrClosed)
	}
}

// end closes the outbox, and waits until its timer and its goroutines have ended.
func (q *outbox) end() {
	if q == nil {
		return
	}
	q.close()
	q.timer.Stop()
	q.timer.Wait()
	q.reporter.end()
}

// report returns the receipts of what could not be sent since Shutdown was called, and
// whether messages were dropped because the outbox was closed.
func (q *outbox) report() (unsent []Receipt, cut bool) {
	if q == nil {
		return nil, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.unsent, q.cut
}

// drop removes e for good.
func (q *outbox) drop(e *entry, why error) {
	q.queue.Remove(e)
	q.settle(e, FateDropped, why)
}

// settle gives e its fate. e must not be in the queue any more.
func (q *outbox) settle(e *entry, fate Fate, err error) {
	s := &e.Value
	if s.maybeSent && fate == FateDropped {
		fate = FateUnknown
	}
	s.fate, s.err = fate, err
	q.life.counts.settled(fate)
	q.settled++
	if s.done != nil {
		close(s.done)
		return
	}
	if fate != FateWritten && q.life.leaving.Load() {
		q.unsent = append(q.unsent, s.receipt())
	}
	q.told.add(chain{e, e})
}

// unlock hands on the fates that were settled under the lock, and releases it.
func (q *outbox) unlock() {
	defer q.mu.Unlock()
	if q.settled > 0 {
		q.reporter.add(q.told)
		if q.pending.Add(-int64(q.settled)) == 0 {
			q.drained.Broadcast()
		}
		q.room.Broadcast()
		q.settled, q.told = 0, chain{}
	}
	if q.pending.Load() == 0 {
		q.spares.free()
	}
}
