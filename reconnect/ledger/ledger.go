package ledger

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Ledger is the queue of the unacknowledged messages of one Conn. It is safe for concurrent use.
//
// Outbox and WhenDown of the Conn do not apply to its messages, but Pace does. One goroutine writes them, while
// there are any, to the newest ready session. While one session replaces another, both write the messages that
// the old one writes after Resume of the next.
type Ledger struct {
	o    Options
	work sync.WaitGroup // the goroutines write and commit, and expire while it is due or runs; none starts when closed is set

	mu        sync.Mutex      // guards what follows
	conn      *reconnect.Conn // nil before Start
	closed    bool            // the Conn has ended, and nothing begins any more
	timer     *time.Timer     // calls expire when the first message is too old, or earlier; nil: it was never needed
	due       bool            // the timer runs, or expire is about to begin
	room      xsync.Signal    // there may be room
	empty     xsync.Signal    // nothing is unacknowledged
	state     StoreState
	queue     queue
	sentSeq   uint64 // the last Seq of which a write has begun
	written   bool   // a write has succeeded
	sessions  []*session
	epoch     uint64 // the session with which the present numbers began; older ones do not count
	owed      bool   // the peer has forgotten us, and that has had no consequence yet
	writing   bool   // the goroutine write runs
	current   writing
	told      []Settled // for OnDone, when mu is free
	failed    []error   // for OnStoreError, once mu is free
	waits     map[uint64]*wait
	bad       []Settled // the last that were not OutcomeAcknowledged, without their data; when it is full, a ring
	oldestBad int       // where in bad the next one goes when it is full
	unknownTo uint64    // up to this ID the outcomes of the messages that are not in the queue are not known
	stats     Stats

	// The rest is for a Store only.
	damaged    []Settled // for Start
	staged     []*staged // messages of Add that wait for the next change
	adding     int       // messages of Add that are not stored yet: those, and the ones in the present change
	addingSize int       // bytes of their data
	deletes    []uint64  // IDs of messages that are settled, to delete
	stuck      bool      // the last change has failed, so deletes wait for another one
	reset      *session
	committing bool // the goroutine commit runs
}

// New returns a Ledger with the messages of its Store, if any. o may be nil. The error names the wrong option,
// or wraps the error of Store.Load.
func New(o *Options) (*Ledger, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Ledger{o: options}
	if l.o.Store == nil {
		return l, nil
	}
	if err := l.load(); err != nil {
		return nil, fmt.Errorf("ledger: load the store: %w", err)
	}
	return l, nil
}

// Layer returns the layer for Options.Layers of one Conn. If that Conn is done, or reconnect.New has failed,
// make a new Ledger, with the same Store to keep the messages.
func (l *Ledger) Layer() *reconnect.Layer {
	layer := &reconnect.Layer{Start: l.start, Ready: l.ready, Lost: l.lost, End: l.end}
	if l.o.Ack != nil {
		layer.Receive = l.receive
	}
	return layer
}

// receive takes the acknowledgements.
func (l *Ledger) receive(m reconnect.Message) bool {
	seq, ok := l.o.Ack(m)
	if !ok {
		return false
	}
	if err := l.AckedTo(m.Session, seq); err != nil {
		l.conn.Redial(m.Session, err)
	}
	return true
}

// Add accepts a message and returns its ID, without waiting for the network. When it returns, the message is in
// the Store, if there is one. The Ledger owns data, which must not be changed any more.
//
// After an error the message is not sent. The errors are:
//
//   - [ErrFull], [ErrTooLarge].
//   - The error of the Store. If the Store does not know whether it made the change, the message may be sent
//     after a restart.
//   - [net.ErrClosed] once the Conn is done.
func (l *Ledger) Add(data []byte) (id uint64, err error) {
	l.mu.Lock()
	return l.addAndUnlock(data)
}

// AddWait is like Add, but waits for space. If ctx is done first, it returns the cause of ctx. In a
// callback of the Conn it returns [ErrInCallback].
func (l *Ledger) AddWait(ctx context.Context, data []byte) (id uint64, err error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		if l.inCallback(ctx) {
			return 0, ErrInCallback
		}
		l.mu.Lock()
		if l.closed || l.hasRoom(len(data)) || len(data) > l.o.Bytes {
			return l.addAndUnlock(data)
		}
		room := l.room.Wait()
		l.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
		}
	}
}

// hasRoom reports whether a message of this size may be added.
func (l *Ledger) hasRoom(size int) bool {
	return l.o.DropOldest ||
		l.queue.live+l.adding < l.o.Messages && l.queue.bytes+l.addingSize+size <= l.o.Bytes
}

func (l *Ledger) addAndUnlock(data []byte) (id uint64, err error) {
	switch {
	case l.closed:
		err = net.ErrClosed
	case len(data) > l.o.Bytes:
		err = ErrTooLarge
	case !l.hasRoom(len(data)):
		err = ErrFull
	case l.o.Store != nil:
		return l.stageAndUnlock(data)
	default:
		l.state.LastID++
		l.state.LastSeq++
		id = l.state.LastID
		l.append(queued{id: id, seq: l.state.LastSeq, data: data, added: time.Now().UnixNano()})
	}
	l.unlock()
	return id, err
}

// append adds a message that is stored. If that is too much, it drops the oldest.
func (l *Ledger) append(e queued) {
	l.stats.Added++
	l.queue.push(e)
	for l.queue.live > l.o.Messages || l.queue.bytes > l.o.Bytes {
		l.settle(l.queue.first(), OutcomeDropped, ErrFull)
	}
	l.setTimer()
}

// settle gives a message its outcome, and removes it. e is invalid after that.
func (l *Ledger) settle(e *queued, outcome Outcome, err error) {
	s := Settled{e.entry(), outcome, err}
	l.note(s)
	if w := l.waits[e.id]; w != nil {
		w.settled = s
		w.settled.Data = nil
		close(w.done)
		delete(l.waits, e.id)
	}
	if l.o.Store != nil && outcome != OutcomeLeft {
		l.deletes = append(l.deletes, e.id)
		l.stuck = false
	}
	if l.current.id == e.id {
		l.interrupt()
	}
	l.queue.remove(e)
	l.room.Broadcast()
	l.noteEmpty()
}

// note counts an outcome, remembers it if it is bad, and has OnDone called with it.
func (l *Ledger) note(s Settled) {
	l.stats.Outcomes[s.Outcome]++
	if s.Outcome != OutcomeAcknowledged && s.ID > 0 {
		l.remember(s)
	}
	if l.o.OnDone != nil {
		l.told = append(l.told, s)
	}
}

// noteEmpty wakes WaitAll if nothing is unacknowledged.
func (l *Ledger) noteEmpty() {
	if l.queue.live == 0 && l.adding == 0 {
		l.empty.Broadcast()
	}
}

// unlock starts the goroutines that have something to do, releases the mutex, and calls OnDone and
// OnStoreError.
func (l *Ledger) unlock() {
	l.startWriting()
	l.startCommitting()
	told, failed := l.told, l.failed
	l.told, l.failed = nil, nil
	l.mu.Unlock()
	l.tell(told, failed)
}

// tell calls OnDone and OnStoreError. If one of these calls ends the goroutine, the others follow
// all the same.
func (l *Ledger) tell(told []Settled, failed []error) {
	if len(told) == 0 && len(failed) == 0 {
		return
	}
	defer func() { l.tell(told, failed) }() // nothing is left, unless a call did not return
	for len(told) > 0 {
		r := told[0]
		told = told[1:]
		l.o.OnDone(r)
	}
	for len(failed) > 0 {
		err := failed[0]
		failed = failed[1:]
		l.o.OnStoreError(err)
	}
}

// setTimer lets the timer ring when the first message is too old. It may ring earlier, because it
// is not set anew whenever another message becomes the first.
func (l *Ledger) setTimer() {
	e := l.queue.first()
	if l.o.Age == 0 || e == nil || l.conn == nil || l.closed || l.due {
		return
	}
	l.due = true
	l.work.Add(1)
	wait := max(0, time.Until(time.Unix(0, e.added).Add(l.o.Age)))
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.expire) // joined by end
	} else {
		l.timer.Reset(wait)
	}
}

// expire is the timer's function. It drops the messages that are too old.
func (l *Ledger) expire() {
	defer l.work.Done()
	l.mu.Lock()
	l.due = false
	l.dropOld()
	l.setTimer()
	l.unlock()
}

// dropOld drops the messages that are too old, and reports whether there were any.
func (l *Ledger) dropOld() (dropped bool) {
	if l.o.Age == 0 || l.closed {
		return false
	}
	now := time.Now()
	for e := l.queue.first(); e != nil && now.Sub(time.Unix(0, e.added)) >= l.o.Age; e = l.queue.first() {
		l.settle(e, OutcomeExpired, ErrExpired)
		dropped = true
	}
	return dropped
}

// The rest are the functions of the layer.

// start begins to serve c.
func (l *Ledger) start(c *reconnect.Conn) error {
	l.mu.Lock()
	if l.conn != nil || l.closed {
		l.mu.Unlock()
		return errUsed
	}
	l.conn = c
	l.setTimer()
	for _, s := range l.damaged {
		l.note(s)
	}
	l.damaged = nil
	l.unlock()
	return nil
}

// end waits until every goroutine has ended, and hands back what is left.
func (l *Ledger) end(err error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	l.interrupt()
	l.room.Broadcast()
	if l.due && l.timer.Stop() {
		l.due = false
		l.work.Done()
	}
	l.mu.Unlock()
	l.work.Wait()
	l.mu.Lock()
	for e := l.queue.first(); e != nil; e = l.queue.first() {
		l.settle(e, OutcomeLeft, left(err))
	}
	l.sessions, l.reset = nil, nil
	deletes, state := l.deletes, l.state
	l.deletes = nil
	l.mu.Unlock()
	defer func() { // even if the Store ends the goroutine
		l.mu.Lock()
		l.unlock()
	}()
	if len(deletes) > 0 {
		l.apply(Change{StoreState: state, Delete: deletes}, func(error) {}) // no other call runs any more
	}
}
