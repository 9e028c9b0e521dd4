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

// outbox is the lock, the goroutines and the timer around the queue of what waits
// to be sent, messages of Send and of Write. One goroutine at a time writes them, the
// flusher, and one calls OnReceipt, the reporter; each is there only while it has
// something to do, so that OnReceipt may be slow, and may send.
type outbox struct {
	life     *lifetime
	state    *state
	reporter reporter

	pending atomic.Int64 // messages without a fate: a Write that finds some queues behind them

	mu       sync.Mutex // guards what follows
	queue    queue.Queue[sending]
	link     *link     // by which to write; nil: none is ready
	last     uint64    // the last session that was lost
	alarm    time.Time // when the timer rings; zero: it is not set
	flushing bool
	closed   bool
	cut      bool      // closed with messages in it
	unsent   []Receipt // since Shutdown

	flushers sync.WaitGroup
	timer    xsync.Timer
	drained  xsync.Signal // nothing is pending
	room     xsync.Signal // there may be room
}

// entry is one message in the queue.
type entry = queue.Item[sending]

// sending is a message on its way.
type sending struct {
	Out
	done      chan struct{} // closed with the fate of a Write; nil for a Send
	failFast  bool          // a Write that does not wait for another session
	maybeSent bool          // the fate of an earlier try is unknown

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
	q.queue.Limits = queue.Limits{Messages: o.Messages, Bytes: o.Bytes, Full: policies[o.Overflow]}
	q.queue.Dropped = func(e *entry, why queue.Reason) { q.settle(e, FateDropped, reasons[why]) }
	return q
}

// policies are the queue's names of the policies.
var policies = [...]queue.Policy{OverflowBlock: queue.Refuse, OverflowDropOldest: queue.DropOldest, OverflowReplaceKey: queue.ReplaceKey}

// reasons are what a receipt says where the queue gave a reason.
var reasons = [...]error{queue.Displaced: ErrOutboxFull, queue.Replaced: ErrReplaced, queue.Expired: ErrExpired}

// accept takes a message of Send in, or says why not.
func (q *outbox) accept(o Out) error {
	now := time.Now()
	e := &entry{Value: sending{Out: o}, Size: len(o.Data), Key: o.Key, Expires: o.Deadline}
	limit := &q.life.o.Outbox
	if age := now.Add(limit.Age); limit.Age > 0 && (o.Deadline.IsZero() || age.Before(o.Deadline)) {
		e.Expires = age
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ending():
		return net.ErrClosed
	case q.life.o.WhenDown != WhenDownKeep && !q.ready():
		return q.state.refusal()
	case o.Session != 0 && (o.Session <= q.last || o.Session > q.life.counts.sessions.Load()):
		return sessionLost(o.Session)
	case !e.Expires.IsZero() && !now.Before(e.Expires):
		return ErrExpired
	}
	if n, full := q.reporter.full(); full {
		return fmt.Errorf("%w: %d receipts wait for Outbox.OnReceipt", ErrOutboxFull, n)
	}
	if err := q.queue.Add(e, now); err != nil {
		return fmt.Errorf("%w: %w", ErrOutboxFull, err)
	}
	q.added()
	return nil
}

// join takes a message of Write in, whose caller waits, so that it needs no room.
// The link is the one that is ready, if one is.
func (q *outbox) join(m conn.Message, session uint64) (*entry, *link, error) {
	failFast := q.life.o.WhenDown == WhenDownFail
	e := &entry{Free: true, Value: sending{
		Out: Out{Message: m, Session: session}, done: make(chan struct{}), failFast: failFast,
	}}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ending():
		return nil, nil, net.ErrClosed
	case failFast && !q.ready():
		return nil, nil, q.state.refusal()
	case session != 0 && session <= q.last:
		return nil, nil, sessionLost(session)
	}
	_ = q.queue.Add(e, time.Time{}) // it takes no room, and so there is some
	q.added()
	return e, q.link, nil
}

// ending reports whether nothing more is accepted.
func (q *outbox) ending() bool { return q.closed || q.life.leaving.Load() || q.life.closed.Load() }

// ready reports whether there is a session to write by.
func (q *outbox) ready() bool { return q.link != nil && !q.link.lost() }

// added has what was put into the queue written, and dropped in time.
func (q *outbox) added() {
	q.pending.Add(1)
	q.setAlarm()
	q.flush()
}

// setAlarm has the timer ring when the first message expires.
func (q *outbox) setAlarm() {
	earliest := q.queue.Earliest()
	if earliest.IsZero() || !q.alarm.IsZero() && !earliest.Before(q.alarm) {
		return
	}
	q.alarm = earliest
	q.timer.Set(time.Until(earliest), q.ring)
}

// ring is the timer's callback: it drops what has expired.
func (q *outbox) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.alarm = time.Time{}
	q.queue.Expire(time.Now())
	q.setAlarm()
}

// withdraw takes a Write out of the queue, unless it is being written: then it has
// this chance and no other.
func (q *outbox) withdraw(e *entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !e.Queued() {
		e.Value.failFast = true
		return false
	}
	q.queue.Remove(e)
	q.settled()
	return true
}

// leave is called by Shutdown: no Write waits any more.
func (q *outbox) leave() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := range q.queue.All() {
		if e.Value.done != nil {
			q.drop(e, net.ErrClosed)
		}
	}
}

// busy reports whether a Write has to queue.
func (q *outbox) busy() bool { return q != nil && q.pending.Load() > 0 }

// draining reports whether Shutdown still needs a session for what is queued.
func (q *outbox) draining() bool { return q.busy() && q.life.o.WhenDown == WhenDownKeep }

// depth returns how many messages have no fate yet, and the size of the data of
// those that Send has queued.
func (q *outbox) depth() (messages, bytes uint64) {
	if q == nil {
		return 0, 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	_, size := q.queue.Size()
	return uint64(q.pending.Load()), uint64(size)
}

// close waits for the message that is being written, whose link must be cut, and
// drops what is queued. Nothing is accepted from then on.
func (q *outbox) close() {
	if q == nil {
		return
	}
	q.mu.Lock()
	if !q.closed {
		q.closed, q.cut = true, q.pending.Load() > 0
	}
	q.mu.Unlock()
	q.flushers.Wait() // first: what is being written comes before what waits
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := range q.queue.All() {
		q.drop(e, net.ErrClosed)
	}
}

// end is close, and waits until nothing of the outbox is left to run.
func (q *outbox) end() {
	if q == nil {
		return
	}
	q.close()
	q.timer.Stop()
	q.timer.Wait()
	q.reporter.end()
}

// report returns what could not be sent since Shutdown, and whether some of it was
// dropped because the outbox was closed.
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

// settle gives e, which is not queued any more, its fate.
func (q *outbox) settle(e *entry, fate Fate, err error) {
	s := &e.Value
	if s.maybeSent && fate == FateDropped {
		fate = FateUnknown
	}
	s.fate, s.err = fate, err
	q.life.counts.settled(fate)
	if s.done != nil {
		close(s.done)
	} else {
		if fate != FateWritten && q.life.leaving.Load() {
			q.unsent = append(q.unsent, s.receipt())
		}
		q.reporter.add(s.receipt())
	}
	q.settled()
}

// settled says that one more message has its fate.
func (q *outbox) settled() {
	if q.pending.Add(-1) == 0 {
		q.drained.Broadcast()
	}
	q.room.Broadcast()
}
