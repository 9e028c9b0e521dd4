package reconnect

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redial-go/redial/conn"
)

// inbox is the bounded queue between the goroutine that reads the connection and
// the one that reads the Conn: a ring with one producer, which fills its buffers
// in place.
type inbox struct {
	limit Inbox
	turn  turnstile // of the readers
	room  signal    // something was taken out

	brim atomic.Bool // it is full; set by the producer, cleared by the reader, under mu

	ring []Message // the producer may replace it, under mu
	tail int       // index of the slot that the producer fills; its own

	mu    sync.Mutex // guards what follows; held for one copy at most
	head  int        // index of the oldest message
	count int
	bytes int
	first uint64        // number of the oldest message since the beginning
	seams []placedSeam  // in order
	lazy  bool          // what is put in is told when the connection waits, or when there is a batch
	idle  bool          // a reader waits at wake, or is about to
	wake  chan struct{} // tells it that something was put in; made by the first that waits
}

// placedSeam is a seam before the message with a number.
type placedSeam struct {
	before uint64
	seam   *Seam
}

// batch is how many messages are collected at most before the reader is woken.
const batch = 16

// unreadSeams is how many seams are kept apart for a reader that is away.
const unreadSeams = 64

func newInbox(limit Inbox) *inbox {
	return &inbox{limit: limit}
}

// free returns the buffer that the next message should be read into.
func (in *inbox) free() []byte {
	if len(in.ring) == 0 {
		return nil
	}
	return in.ring[in.tail].Data[:0]
}

// put appends a message, which may live in the buffer that free returned. If
// there is no room it does what the policy says; for Block, awaitRoom was the
// time to wait.
func (in *inbox) put(m Message) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.limit.Full == Disconnect && in.full() {
		return ErrInboxFull
	}
	if len(in.ring) == 0 {
		in.ring = make([]Message, min(8, in.limit.Messages+1))
	}
	in.ring[in.tail] = m
	in.count++
	in.bytes += len(m.Data)
	for in.limit.Full == DropOldest && (in.count > in.limit.Messages || in.bytes > in.limit.Bytes && in.count > 1) {
		in.dropOldest()
	}
	if in.count == len(in.ring) {
		in.grow()
	} else {
		in.tail = (in.tail + 1) % len(in.ring)
	}
	in.brim.Store(in.full())
	if !in.lazy || in.count >= batch || in.brim.Load() {
		in.awake()
	}
	return nil
}

// collect lets messages that c has at hand together be told to a waiting reader
// together: to wake it for each costs more than all the rest.
func (in *inbox) collect(c conn.Conn) {
	w, ok := c.(conn.Waiter)
	in.hasten(ok && w.OnWait(in.tell))
}

// hasten tells what was collected, and collects further if lazy says so.
func (in *inbox) hasten(lazy bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.lazy = lazy
	if in.count > 0 {
		in.awake()
	}
}

// tell wakes a reader for what was collected.
func (in *inbox) tell() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.count > 0 {
		in.awake()
	}
}

// grow doubles the ring, so that it has a free slot again. Only its first 2*len-1
// slots are ever needed at once.
func (in *inbox) grow() {
	n := len(in.ring)
	ring := make([]Message, 2*n)
	copy(ring, in.ring[in.head:])
	copy(ring[n-in.head:], in.ring[:in.head])
	in.ring, in.head, in.tail = ring, 0, n
}

func (in *inbox) full() bool {
	return in.count >= in.limit.Messages || in.bytes >= in.limit.Bytes
}

// awaitRoom waits, if the policy is Block, until there is room, or until ctx or l
// ends.
func (in *inbox) awaitRoom(ctx context.Context, l *link) error {
	for in.limit.Full == Block && in.brim.Load() {
		if err := in.blocked(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// blocked waits for a sign that there may be room.
func (in *inbox) blocked(ctx context.Context, l *link) error {
	room, severed := in.room.wait(), l.severed.wait()
	if !in.brim.Load() {
		return nil
	}
	if cause := l.cause.Load(); cause != nil {
		return *cause
	}
	l.watch.blocked.Store(true)
	defer l.watch.blocked.Store(false)
	select {
	case <-room:
		return nil
	case <-severed:
		return l.why(ErrInboxFull)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lose puts a seam after the last message.
func (in *inbox) lose(s *Seam) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.seams = append(in.seams, placedSeam{before: in.first + uint64(in.count), seam: s})
	in.join()
	in.awake()
}

// join makes one of two seams with no message between them, if there are too many.
func (in *inbox) join() {
	for i := len(in.seams) - 1; i > 0 && len(in.seams) > unreadSeams; i-- {
		a, b := in.seams[i-1], in.seams[i]
		if a.before == b.before || b.before <= in.first {
			b.seam.Lost += a.seam.Lost
			b.seam.Dropped += a.seam.Dropped
			in.seams = slices.Delete(in.seams, i-1, i)
		}
	}
}

// dropOldest takes the oldest message away and counts it in the seam that stands
// for those dropped from its session.
func (in *inbox) dropOldest() {
	session := in.ring[in.head].Session
	in.pop()
	i := 0 // the seam goes before those of the sessions that ended after this message
	for i < len(in.seams) && in.seams[i].before < in.first {
		i++
	}
	if i > 0 && in.seams[i-1].seam.Dropped > 0 && in.seams[i-1].seam.Session == session {
		in.seams[i-1].seam.Dropped++
		in.seams[i-1].before = in.first
		return
	}
	placed := placedSeam{before: in.first, seam: &Seam{Session: session, Cause: ErrInboxFull, Dropped: 1}}
	in.seams = slices.Insert(in.seams, i, placed)
	in.join()
}

// pop frees the oldest slot, and keeps its buffer for the producer if it is
// small.
func (in *inbox) pop() {
	m := &in.ring[in.head]
	in.bytes -= len(m.Data)
	m.Data = kept(m.Data)
	in.head = (in.head + 1) % len(in.ring)
	in.count--
	in.first++
}

func (in *inbox) awake() {
	if in.idle {
		in.idle = false
		select {
		case in.wake <- struct{}{}:
		default: // the news of before was not even heard: its reader's context ended
		}
	}
}

// take returns the oldest thing, a message copied into buf or a seam, or, if
// there is nothing, a channel to wait at. Only one goroutine may be at it.
func (in *inbox) take(buf []byte) (m Message, s *Seam, empty <-chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.seams) > 0 && in.seams[0].before <= in.first {
		s = in.seams[0].seam
		in.seams = in.seams[1:]
		return m, s, nil
	}
	if in.count == 0 {
		if in.wake == nil {
			in.wake = make(chan struct{}, 1) // its one place is the news that something came
		}
		in.idle = true
		return m, nil, in.wake
	}
	m = in.ring[in.head]
	if cap(buf) < len(m.Data) {
		buf = make([]byte, len(m.Data))
	}
	buf = buf[:len(m.Data)]
	copy(buf, m.Data)
	m.Data = buf
	in.pop()
	if in.brim.Load() && !in.full() {
		in.brim.Store(false)
		in.room.broadcast()
	}
	return m, nil, nil
}

// next is take for the supervisor when a stand-in fills the inbox: it waits, and
// says false when done is closed and all has been taken.
func (in *inbox) next(done <-chan struct{}, buf []byte) (Message, bool) {
	for ended := false; ; {
		m, _, empty := in.take(buf)
		if empty == nil || ended {
			return m, empty == nil
		}
		select {
		case <-empty:
		case <-done:
			ended = true
		}
	}
}
