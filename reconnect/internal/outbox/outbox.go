package outbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Options say what an Outbox holds, and whom it tells.
type Options struct {
	queue.Limits
	Age  time.Duration // after which a message is dropped; 0 or less: never
	Down WhenDown

	// Receipt is called with the fate of each message of Send, or nil. It must not keep the pointer.
	Receipt func(*Receipt)

	// Refusal says why nothing can be sent now.
	Refusal func() error

	// Await waits for done, and reports that function is overdue if that takes long.
	Await func(done <-chan struct{}, function string)
}

// WhenDown says what happens while no session is ready. Its values are those of reconnect.WhenDown.
type WhenDown uint8

// The policies.
const (
	Fail WhenDown = iota // Write and Send fail
	Wait                 // Write waits
	Keep                 // Write waits, and messages of Send are kept
)

// Outbox is the lock, the goroutines and the timer around the queue of the messages of Send
// and Write that wait to be sent. One goroutine at a time, the flusher, writes them, and one,
// the reporter, calls OnReceipt. Each exists only while it has something to do. They are two
// so that OnReceipt may be slow, and may send.
type Outbox struct {
	o        Options
	life     *link.Life
	reporter reporter

	pending atomic.Int64 // messages without a fate; if there are some, a Write queues behind them

	mu      sync.Mutex // guards what follows
	queue   queue.Queue[sending]
	lane    *lane     // by which to write; nil: no session is ready
	old     *lane     // that of the session before, for its messages; nil: none
	last    uint64    // the last session that was lost
	came    time.Time // the clock when the flusher was started, for the messages that come before it begins; zero: there is none such
	spare   spare     // gives the next message its entry
	alarm   time.Time // when the timer calls ring; zero: it is not set
	unsent  []Receipt // of messages that could not be sent since Shutdown was called
	told    chain     // messages of Send that have got their fate since the lock was taken
	settled uint32    // messages, those of Write too, that have got their fate since then
	closed  bool
	cut     bool // there were messages in it when it was closed

	flushers int       // how many run, those of links that are no lane any more too; none starts when closed is set
	idle     sync.Cond // of mu: a flusher has ended

	timer   xsync.Timer
	drained xsync.Signal // sent when nothing is pending
	room    xsync.Signal // sent when there may be room
}

// sending is a message on its way.
type sending struct {
	Receipt
	done      chan struct{} // closed with the fate of a Write; nil for a Send
	next      *entry        // behind it in a chain
	shared    bool          // somebody else may still know the entry, so that it is not used again
	failFast  bool          // it does not wait for another session
	maybeSent bool          // an earlier session may have sent it
	asked     bool          // keeps looks at it: it is not written, and its receipt waits
	late      bool          // it has got its fate while it was asked
	left      error         // why its Write has returned, so that it is not tried again, or nil
	queued    link.Instant  // when it was queued
}

// New returns an empty outbox. l and old are the links by which messages are written, and last is the
// last session that was lost. Closed says that nothing is accepted.
func New(o Options, life *link.Life, l, old *link.Link, last uint64, closed bool) *Outbox {
	q := &Outbox{o: o, life: life, last: last, closed: closed}
	q.lane, q.old = q.newLane(l), q.newLane(old)
	q.reporter.o = &q.o
	q.idle.L = &q.mu
	q.queue.Limits = o.Limits
	q.queue.Dropped = func(e *entry, why queue.Reason) { q.settle(e, FateDropped, reasons[why]) }
	return q
}

// reasons are the errors in a receipt for the reasons of the queue.
var reasons = [...]error{queue.Displaced: ErrFull, queue.Replaced: ErrReplaced, queue.Expired: ErrExpired}

// Accept queues a message of Send, or returns why it does not.
func (q *Outbox) Accept(o *Outgoing) error {
	q.mu.Lock()
	defer q.unlock()
	now, expires := q.came, o.Deadline // a burst shares one look at the clock, unless a message may expire soon
	if now.IsZero() || !expires.IsZero() || q.o.Age > 0 && q.o.Age < exact {
		now = time.Now()
	}
	if age := now.Add(q.o.Age); q.o.Age > 0 && (o.Deadline.IsZero() || age.Before(o.Deadline)) {
		expires = age
	}
	switch {
	case q.ending():
		return q.closedBy()
	case q.o.Down != Keep && !q.ready() && !q.life.Bridging.Load():
		return q.o.Refusal()
	case o.Session != 0 && (q.hasEnded(o.Session) || o.Session > q.life.Counts.Sessions.Load()):
		return SessionLost(o.Session)
	case !expires.IsZero() && !now.Before(expires):
		return ErrExpired
	}
	if n, full := q.reporter.full(); full {
		return fmt.Errorf("%w: %d receipts wait for Outbox.OnReceipt", ErrFull, n)
	}
	e := q.spare.take()
	e.Value.Out, e.Value.queued, e.Size, e.Key, e.Expires = *o, link.At(now), len(o.Data), o.Key, expires
	if err := q.queue.Add(e, now); err != nil {
		q.spare.add(e)
		q.spare.free() // because none may be pending
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	q.added(e, now)
	return nil
}

// exact is the Age from which on it makes no difference that the goroutine of the flusher begins late.
const exact = time.Minute

// Join queues a message of Write. That needs no room, because the caller waits. With failFast it does not wait
// for another session, as with Fail. Join returns the link by which messages are written. While a session was
// closed so that another can take its place that may be lost, or nil.
func (q *Outbox) Join(m conn.Message, session uint64, failFast bool) (Waiting, *link.Link, error) {
	failFast = failFast || q.o.Down == Fail
	e := &entry{Free: true, Value: sending{
		Receipt: Receipt{Out: Outgoing{Message: m, Session: session}}, done: make(chan struct{}), failFast: failFast, queued: link.Now(),
	}}
	q.mu.Lock()
	defer q.unlock()
	switch {
	case q.ending():
		return Waiting{}, nil, q.closedBy()
	case session != 0 && q.hasEnded(session):
		return Waiting{}, nil, SessionLost(session)
	case failFast && !q.ready() && !q.life.Bridging.Load():
		return Waiting{}, nil, q.o.Refusal()
	}
	_ = q.queue.Add(e, time.Time{}) // has no error, because e takes no room
	q.added(e, time.Time{})
	return Waiting{e}, q.lane.link(), nil
}

// ending reports whether nothing more is accepted.
func (q *Outbox) ending() bool {
	return q.closed || q.life.Leaving.Load() || q.life.Closed.Load() || q.life.Ended()
}

// hasEnded reports whether a session has ended. That of a lane has ended when its link is lost: Detach comes a moment later.
func (q *Outbox) hasEnded(session uint64) bool {
	switch {
	case q.lane != nil && q.lane.Session == session:
		return q.lane.Lost()
	case q.old != nil && q.old.Session == session:
		return q.old.Lost()
	}
	return session <= q.last
}

// ready reports whether there is a session to write by.
func (q *Outbox) ready() bool { return q.lane != nil && !q.lane.Lost() }

// added lets e, which came at now, be written, and dropped when it expires.
func (q *Outbox) added(e *entry, now time.Time) {
	q.pending.Add(1)
	q.setAlarm(e.Expires)
	if q.flush() {
		q.came = now
	}
}

// setAlarm sets the timer to when a message expires, unless it rings before; zero: never.
func (q *Outbox) setAlarm(expires time.Time) {
	if expires.IsZero() || !q.alarm.IsZero() && !expires.Before(q.alarm) {
		return
	}
	q.alarm = expires
	q.timer.Set(time.Until(expires), q.ring)
}

// ring is the timer's callback. It drops the messages that have expired.
func (q *Outbox) ring() {
	q.mu.Lock()
	defer q.unlock()
	q.alarm = time.Time{}
	q.queue.Expire(time.Now())
	q.setAlarm(q.queue.Earliest())
}

// Withdraw takes the message of a Write out of the queue because of why, and reports whether it was there.
// If not, the message is being written: it is not tried again after that, and dropped with why if that
// try does not begin.
func (q *Outbox) Withdraw(w Waiting, why error) bool {
	e := w.e
	q.mu.Lock()
	defer q.unlock()
	if !e.Queued() {
		e.Value.left = why
		return false
	}
	q.queue.Remove(e)
	q.settled++
	return true
}

// closedBy returns a net.ErrClosed that says why the Conn has ended, if it has done so by itself.
func (q *Outbox) closedBy() error {
	if q.o.Refusal != nil {
		if err := q.o.Refusal(); errors.Is(err, net.ErrClosed) {
			return err
		}
	}
	return net.ErrClosed
}

// Leave drops the messages of Writes that wait, and wakes each SendWait, which is refused now.
// Shutdown calls it.
func (q *Outbox) Leave() {
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

// Busy reports whether a Write has to queue.
func (q *Outbox) Busy() bool { return q != nil && q.pending.Load() > 0 }

// Draining reports whether Shutdown needs another session for what is queued.
func (q *Outbox) Draining() bool { return q.Busy() && q.o.Down == Keep }

// Depth returns how many messages have no fate yet, the size of the data that Send has
// queued, and how long the oldest message has been queued.
func (q *Outbox) Depth() (messages, bytes uint64, age time.Duration) {
	if q == nil {
		return 0, 0, 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	_, size := q.queue.Size()
	if oldest := q.queue.First(); oldest != nil {
		age = link.Now() - oldest.Value.queued
	}
	return uint64(q.pending.Load()), uint64(size), age
}

// Close accepts nothing from now on, waits for the message that is being written, and drops
// what is queued. The link must be cut already.
func (q *Outbox) Close() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.unlock()
	if !q.closed {
		q.closed, q.cut = true, q.pending.Load() > 0
	}
	for q.flushers > 0 { // first, because what is being written comes before what waits
		q.idle.Wait()
	}
	for e := range q.queue.All() {
		q.drop(e, q.closedBy())
	}
}

// End closes the outbox, and waits until its timer and its goroutines have ended.
func (q *Outbox) End() {
	if q == nil {
		return
	}
	q.Close()
	q.timer.Stop()
	q.timer.Wait()
	q.reporter.end()
}

// Report returns the receipts of what could not be sent since Shutdown was called, and
// whether messages were dropped because the outbox was closed.
func (q *Outbox) Report() (unsent []Receipt, cut bool) {
	if q == nil {
		return nil, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.unsent, q.cut
}

// drop removes e for good.
func (q *Outbox) drop(e *entry, why error) {
	q.queue.Remove(e)
	q.settle(e, FateDropped, why)
}

// settle gives e its fate. e must not be in the queue any more.
func (q *Outbox) settle(e *entry, fate Fate, err error) {
	s := &e.Value
	if s.maybeSent && fate == FateDropped {
		fate = FateUnknown
	}
	s.Fate, s.Err = fate, err
	if fate != FateWritten { // those are counted together: see written
		fate.Count(&q.life.Counts)
	}
	q.settled++
	if s.done != nil {
		close(s.done)
		return
	}
	if fate != FateWritten && q.life.Leaving.Load() {
		q.unsent = append(q.unsent, s.Receipt)
	}
	if s.asked { // the data is not the caller's again before keeps has returned
		s.late = true
		q.reporter.held.Add(1)
		return
	}
	q.reporter.made.Add(1)
	q.told.add(chain{e, e})
}

// Tap gets the queue of an Outbox that may have changed, before the lock is released. Only a test sets Tap.
var Tap func(*queue.Queue[sending])

// unlock hands on the fates that were settled under the lock, and releases it.
func (q *Outbox) unlock() {
	defer q.mu.Unlock()
	if Tap != nil {
		Tap(&q.queue)
	}
	if q.settled > 0 || q.told.first != nil {
		if q.tell() {
			go q.reporter.run() // joined by End
		}
	}
}

// tell hands on the fates that were settled under the lock. It reports whether the caller has to run the reporter.
func (q *Outbox) tell() (report bool) {
	if q.o.Receipt != nil {
		report = q.reporter.add(q.told)
	} else {
		q.reporter.skip(q.told, &q.spare)
	}
	if q.pending.Add(-int64(q.settled)) == 0 {
		q.spare.free()
		q.drained.Broadcast()
	}
	q.room.Broadcast()
	q.settled, q.told = 0, chain{}
	return report
}

// Drained returns a channel that is closed when nothing is pending. Ask Busy after it.
func (q *Outbox) Drained() <-chan struct{} { return q.drained.Wait() }

// Progress returns channels of which one is closed when there may be room.
func (q *Outbox) Progress() (room, reported <-chan struct{}) {
	return q.room.Wait(), q.reporter.progress.Wait()
}

// AwaitReceipts waits until OnReceipt has returned for all messages that have their fate now.
func (q *Outbox) AwaitReceipts(ctx context.Context) error {
	if q == nil {
		return nil
	}
	return q.reporter.await(ctx)
}
