package reconnect

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// inbox is the bounded queue between its producer, which is the goroutine that reads the
// connection, and the goroutine that reads the Conn. The producer reads messages right into
// chunks. A large message has a slice of its own.
type inbox struct {
	limit Inbox
	turn  xsync.Slot   // held by the one goroutine that reads the Conn
	room  xsync.Signal // a full inbox has room again
	full  atomic.Bool  // written under mu

	mu    sync.Mutex // guards what follows; held for one copy at most
	ring  []unread
	head  int // index of the oldest message
	count int
	bytes int
	last  int    // size of the newest message
	first uint64 // number of the oldest message since the beginning

	filling *chunk // the chunk for the next message; nil: there is none yet
	writing bool   // the producer writes to filling

	seams    []placedSeam  // in order
	batching bool          // put wakes the reader only when a batch or the inbox is full; flush wakes it for the rest
	idle     bool          // a reader waits at wake, or is about to
	wake     chan struct{} // has room for one wake-up; made by the first reader that waits
}

// unread is a message in the ring, and the chunk that its data lies in, if it does.
type unread struct {
	Message
	chunk *chunk
}

// placedSeam is a seam and its place.
type placedSeam struct {
	before uint64 // the number of the message after it
	seam   *Seam
}

const (
	batch       = 16 // so many messages wake a reader although more are at hand
	unreadSeams = 64 // so many seams are kept apart
	keptSlots   = 32 // so many slots the ring of an empty inbox keeps at most
	sharedSlots = 64 // so many slots a ring has that is used again: see rings
)

// rings holds rings of sharedSlots that no inbox needs. All connections share them, so
// that an inbox which is full and empty by turns does not allocate.
var rings sync.Pool

func newInbox(limit Inbox) *inbox {
	return &inbox{limit: limit}
}

// depth returns how many messages wait, and the size of their data.
func (in *inbox) depth() (messages, bytes uint64) {
	if in == nil {
		return 0, 0
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return uint64(in.count), uint64(in.bytes)
}

// buffer returns memory for a message of that size. Size 0 means that the size is not
// known, so that the message is expected to be as large as the one before; -1 asks for
// little room. It returns nil for a message that is too large for a chunk, because the
// connection makes room for that as it comes in.
func (in *inbox) buffer(size int) []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.writing = true
	if size == 0 {
		size = min(in.last, largestChunk)
	}
	if c := in.filling; c != nil && cap(c.room()) >= max(size, 1) {
		return c.room()
	}
	in.dropFilling()
	if size > largestChunk {
		return nil
	}
	if size > 0 { // if much waits already, much may follow
		size = max(size, min(in.bytes, largestChunk))
	}
	in.filling = newChunk(size)
	return in.filling.room()
}

// written notes that the producer no longer writes to what buffer returned.
func (in *inbox) written() {
	in.writing = false
	if c := in.filling; c != nil && c.unread == 0 {
		in.dropFilling()
	}
}

// abandon gives up a message that did not come in whole.
func (in *inbox) abandon() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.written()
}

// dropFilling lets the next message be written to another chunk.
func (in *inbox) dropFilling() {
	if c := in.filling; c != nil && c.unread == 0 {
		c.free()
	}
	in.filling = nil
}

// put appends a message. Its data lies in what buffer returned, or belongs to the inbox from
// now on, which never writes to it. If there is no room, put does what the policy says; with
// OverflowBlock the caller has waited for room.
func (in *inbox) put(m Message) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.limit.Overflow == OverflowDisconnect && in.isFull() {
		in.written()
		return ErrInboxFull
	}
	if in.count == len(in.ring) {
		in.grow()
	}
	slot := &in.ring[(in.head+in.count)%len(in.ring)]
	slot.Message = m
	if c := in.filling; c != nil && c.holds(m.Data) {
		c.take(m.Data)
		c.unread++
		slot.chunk = c
	}
	in.written()
	in.count++
	in.bytes += len(m.Data)
	in.last = len(m.Data)
	for in.limit.Overflow == OverflowDropOldest && (in.count > in.limit.Messages || in.bytes > in.limit.Bytes && in.count > 1) {
		in.dropOldest()
	}
	in.full.Store(in.isFull())
	if !in.batching || in.count >= batch || in.full.Load() {
		in.wakeReader()
	}
	return nil
}

// deliver appends a copy of m.
func (in *inbox) deliver(m Message) error {
	m.Data = append(in.buffer(max(len(m.Data), 1)), m.Data...)
	return in.put(m)
}

// batchFor makes put wake a waiting reader once for all messages that c has at hand, because
// to wake it for each costs more than all the rest.
func (in *inbox) batchFor(c conn.Conn) {
	w, ok := c.(conn.BlockNotifier)
	in.setBatching(ok && w.BeforeBlock(in.flush))
}

// setBatching wakes the reader for what is queued, and turns batching on or off.
func (in *inbox) setBatching(on bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.batching = on
	if in.count > 0 {
		in.wakeReader()
	}
}

// flush wakes the reader for what is queued.
func (in *inbox) flush() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.count > 0 {
		in.wakeReader()
	}
}

// grow makes room in the ring for at least one more message.
func (in *inbox) grow() {
	ring := newRing(max(2*len(in.ring), 8))
	n := copy(ring, in.ring[in.head:])
	copy(ring[n:], in.ring[:in.head])
	in.ring, in.head = ring, 0
}

// newRing returns an empty ring of at least that many slots.
func newRing(slots int) []unread {
	if slots <= sharedSlots {
		if r, ok := rings.Get().(*[sharedSlots]unread); ok {
			return r[:]
		}
	}
	return make([]unread, slots)
}

// freeRing gives an empty ring back, if it has the size of those that are shared.
func freeRing(ring []unread) {
	if len(ring) == sharedSlots {
		rings.Put((*[sharedSlots]unread)(ring))
	}
}

func (in *inbox) isFull() bool {
	return in.count >= in.limit.Messages || in.bytes >= in.limit.Bytes
}

// putSeam puts a seam after the last message.
func (in *inbox) putSeam(s *Seam) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.seams = append(in.seams, placedSeam{before: in.first + uint64(in.count), seam: s})
	in.join()
	in.wakeReader()
}

// join merges seams that have no message between them, while there are too many.
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

// dropOldest removes the oldest message, and counts it in the seam for what was dropped from
// its session.
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

// pop frees the oldest slot, and the memory that only its message needed. An inbox that is
// empty afterwards keeps little.
func (in *inbox) pop() {
	slot := &in.ring[in.head]
	if c := slot.chunk; c != nil {
		switch c.unread--; {
		case c.unread > 0:
		case c != in.filling:
			c.free()
		case !in.writing:
			in.dropFilling()
		}
	}
	in.bytes -= len(slot.Data)
	*slot = unread{}
	in.head = (in.head + 1) % len(in.ring)
	in.count--
	in.first++
	if in.count == 0 && len(in.ring) > keptSlots {
		freeRing(in.ring)
		in.ring, in.head = nil, 0
	}
}

// wakeReader wakes a reader that waits.
func (in *inbox) wakeReader() {
	if in.idle {
		in.idle = false
		select {
		case in.wake <- struct{}{}:
		default: // the last one is still there, because a reader's context has ended
		}
	}
}

// take returns the oldest message, copied into buf, or the seam before it. If there is
// neither, it returns a channel to wait at. Only one goroutine may call it at a time.
func (in *inbox) take(buf []byte) (m Message, s *Seam, empty <-chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.seams) > 0 && in.seams[0].before <= in.first {
		s = in.seams[0].seam
		in.seams = slices.Delete(in.seams, 0, 1)
		return m, s, nil
	}
	if in.count == 0 {
		if in.wake == nil {
			in.wake = make(chan struct{}, 1) // one place, so that a wake-up is kept until the reader waits
		}
		in.idle = true
		return m, nil, in.wake
	}
	slot := &in.ring[in.head]
	m = slot.Message
	if cap(buf) >= len(m.Data) || slot.chunk != nil || cap(m.Data) > len(m.Data) {
		m.Data = append(sized(buf, len(m.Data)), m.Data...)
	}
	in.pop()
	if in.full.Load() && !in.isFull() {
		in.full.Store(false)
		in.room.Broadcast()
	}
	return m, nil, nil
}

// sized returns buf[:0] if it has room for n bytes, and else a new slice that has room for
// exactly n.
func sized(buf []byte, n int) []byte {
	if cap(buf) < n {
		return make([]byte, 0, n)
	}
	return buf[:0]
}
