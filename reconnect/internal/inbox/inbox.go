package inbox

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/chunk"
	"github.com/redial-go/redial/reconnect/internal/lead"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Inbox is the bounded queue between its producer, which is the goroutine that reads the
// connection, and the goroutine that reads the Conn. Each takes the lock once for many
// messages: the producer publishes what the connection had at hand, and the reader takes all
// that is published. The producer reads messages right into chunks. A large message has a
// slice of its own, and so has every message whose size is known if the reader wants that.
type Inbox struct {
	o      Options
	counts *Counts
	full   atomic.Bool  // written under mu
	idle   atomic.Bool  // there is nothing, and a reader waits at wake, or reads the link, or is about to; written under mu
	fresh  atomic.Bool  // the reader gives no buffer, so that each message needs a slice of its own
	room   xsync.Signal // a message of a full inbox was taken

	// Owned by the producer.
	begun      bool   // a message is being read into what Buffer returned
	collecting bool   // put publishes only batches; the caller must call Publish before the link waits
	last       int32  // size of the newest message, or chunk.Largest if that is less
	pending    *slots // not published yet; nil: nothing
	size       int    // of their data
	space      space  // how much pending may have

	mu      sync.Mutex    // guards what follows; held for one copy at most
	writing bool          // the producer uses filling, which then only the producer changes
	filling *chunk.Chunk  // the chunk for the next message; nil: there is none
	queue   *slots        // published and not taken; nil: nothing
	tail    *slots        // the end of queue
	count   int           // messages that are published and not settled
	bytes   int           // of their data
	first   uint64        // number of the oldest of them since the beginning
	seams   []placedSeam  // in order, at most one mark among them
	marked  bool          // the present session has its mark
	wake    chan struct{} // has room for one wake-up; made by the first reader that waits

	Turn xsync.Slot                // held by the one goroutine that reads the Conn
	lead atomic.Pointer[lead.Turn] // whether this goroutine may read the link; nil: it may not
	read atomic.Uint64             // what that has read and not settled: bytes << countBits + messages

	// Owned by the goroutine that has the turn; with DropOldest mu guards them instead.
	taken *slots // nil: nothing
	next  int32  // index of the oldest message in taken
	free  int32  // so many of taken may be read without the lock
}

// space is room for messages.
type space struct{ messages, bytes int }

// placedSeam is a seam and its place.
type placedSeam struct {
	before uint64 // the number of the message after it
	seam   *Seam
}

const (
	batch       = 16 // so many messages are published although more are at hand
	unreadSeams = 64 // so many seams are kept apart
	countBits   = 7  // of inbox.read: enough for manySlots
)

// New returns an empty inbox. It counts in c what it receives.
func New(o Options, c *Counts) *Inbox { return &Inbox{o: o, counts: c} }

// Depth returns how many messages wait, and the size of their data.
func (in *Inbox) Depth() (messages, bytes uint64) {
	if in == nil {
		return 0, 0
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	left := in.left()
	return uint64(in.o.Messages - left.messages), uint64(in.o.Bytes - left.bytes)
}

// left returns how much room there is. The caller holds mu.
func (in *Inbox) left() space {
	messages, bytes := in.unsettled()
	return space{in.o.Messages - in.count + messages, in.o.Bytes - in.bytes + bytes}
}

func (s space) full() bool { return s.messages <= 0 || s.bytes <= 0 }

// unsettled returns what the reader has read and not settled.
func (in *Inbox) unsettled() (messages, bytes int) {
	read := in.read.Load()
	return int(read & (1<<countBits - 1)), int(read >> countBits)
}

// PutSeam puts a seam after the last message.
func (in *Inbox) PutSeam(s *Seam) {
	defer in.tell()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.publishPending()
	in.marked = false // the session has ended: what says that a refetch is safe, and is not read, is taken back
	in.seams = slices.DeleteFunc(in.seams, func(p placedSeam) bool { return p.seam.Marks() })
	for _, p := range in.seams {
		p.seam.Refetch = false
	}
	in.seams = append(in.seams, placedSeam{before: in.first + uint64(in.count), seam: s})
	in.join()
	in.wakeReader()
}

// PutMark puts the mark of the present session after the messages that are published. It may run
// beside the producer.
func (in *Inbox) PutMark(s *Seam) {
	defer in.tell()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.marked = true
	in.seams = append(in.seams, placedSeam{before: in.first + uint64(in.count), seam: s})
	in.wakeReader()
}

// join merges seams that have no message between them, while there are too many.
func (in *Inbox) join() {
	for i := len(in.seams) - 1; i > 0 && len(in.seams) > unreadSeams; i-- {
		a, b := in.seams[i-1], in.seams[i]
		if a.seam.Marks() || b.seam.Marks() {
			continue
		}
		if a.before == b.before || b.before <= in.first {
			b.seam.Lost += a.seam.Lost
			b.seam.Dropped += a.seam.Dropped
			b.seam.Planned = b.seam.Planned && a.seam.Planned
			b.seam.Overlapped = b.seam.Overlapped && a.seam.Overlapped
			b.seam.Resumed = b.seam.Resumed && a.seam.Resumed
			b.seam.Refetch = b.seam.Refetch && a.seam.Refetch
			in.seams = slices.Delete(in.seams, i-1, i)
		}
	}
}

// dropOldest removes the oldest message, and counts it in the seam for what was dropped from its session. There
// must be a message, and the caller holds mu, which guards the reader's fields too with DropOldest.
func (in *Inbox) dropOldest() {
	in.refill()
	oldest := &in.taken.list[in.next]
	session := oldest.Session
	in.advance(oldest)
	in.settle()
	i := 0 // the seam goes before those of the sessions that ended after this message
	for i < len(in.seams) && in.seams[i].before < in.first {
		i++
	}
	if i > 0 && in.seams[i-1].seam.Dropped > 0 && in.seams[i-1].seam.Session == session {
		in.seams[i-1].seam.Dropped++
		in.seams[i-1].before = in.first
		return
	}
	placed := placedSeam{before: in.first, seam: &Seam{Session: session, Cause: ErrFull, Reason: backoff.ReasonSlowReader, Dropped: 1, Refetch: in.marked}}
	in.seams = slices.Insert(in.seams, i, placed)
	in.join()
}

// wakeReader wakes a reader that waits.
func (in *Inbox) wakeReader() {
	if in.idle.Load() {
		in.idle.Store(false)
		select {
		case in.wake <- struct{}{}:
		default: // the last one is still there, because a reader's context has ended
		}
	}
}

// Take sets *m to the oldest message, copied into buf, or returns the seam before it. If there
// is neither, and the reader may read the link, Take reads the next message from the link, until ctx ends. If there is
// still no message, Take returns a channel to wait at. The caller has the turn.
func (in *Inbox) Take(ctx context.Context, m *Item, buf []byte) (s *Seam, empty <-chan struct{}) {
	if fresh := cap(buf) == 0; in.fresh.Load() != fresh {
		in.fresh.Store(fresh)
	}
	t := in.lead.Load()
	if s, empty = in.take(m, buf); empty == nil {
		t.Got()
		return s, nil
	}
	if !t.Take() {
		return nil, empty
	}
	if s, empty = in.take(m, buf); empty == nil { // it came before the turn did
		t.Leave(false)
		return s, nil
	}
	msg, ok := t.Read(ctx, buf)
	if !ok {
		return nil, empty
	}
	in.counts.Received(msg)
	m.Message, m.Session = msg, t.Session()
	return nil, nil
}

// take is Take from the inbox alone.
func (in *Inbox) take(m *Item, buf []byte) (s *Seam, empty <-chan struct{}) {
	switch {
	case in.idle.Load(): // nothing has come since it was empty
		return nil, in.wake
	case in.o.Overflow == DropOldest || in.free == 0:
		return in.takeNext(m, buf)
	}
	if in.pop(m, buf) {
		in.mu.Lock()
		in.settle()
		in.refill()
		in.mu.Unlock()
	}
	return nil, nil
}

// takeNext is take when nothing may be read without the lock.
func (in *Inbox) takeNext(m *Item, buf []byte) (s *Seam, empty <-chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.seams) > 0 && in.seams[0].before <= in.first {
		s = in.seams[0].seam
		in.seams = slices.Delete(in.seams, 0, 1)
		return s, nil
	}
	if in.refill(); in.free > 0 {
		in.pop(m, buf)
		in.settle()
		return nil, nil
	}
	if in.wake == nil {
		in.wake = make(chan struct{}, 1) // one place, so that a wake-up is kept until the reader waits
	}
	in.idle.Store(true)
	return nil, in.wake
}

// refill takes what is published, if nothing is left of what was taken before, and sets how
// much of it comes before the next seam. All that was read is settled.
func (in *Inbox) refill() {
	if in.taken == nil && in.queue != nil {
		in.taken = in.queue
		if in.queue = in.queue.next; in.queue == nil {
			in.tail = nil
		}
	}
	in.free = int32(in.taken.len()) - in.next
	if len(in.seams) > 0 {
		in.free = int32(min(uint64(in.free), in.seams[0].before-in.first))
	}
}

// pop sets *m to the oldest message of those that are taken, copied into buf, and reports
// whether it is time to settle.
func (in *Inbox) pop(m *Item, buf []byte) bool {
	u := &in.taken.list[in.next]
	*m = u.Item
	if n := len(u.Data); cap(buf) >= n {
		m.Data = append(buf[:0], u.Data...)
	} else if u.chunk != nil || cap(u.Data) > n {
		m.Data = Clone(u.Data)
	}
	in.advance(u)
	return in.free == 0 || in.taken.list[in.next].chunk != u.chunk || in.full.Load()
}

// advance goes on to the next message after u, the oldest of those that are taken.
func (in *Inbox) advance(u *unread) {
	in.read.Add(uint64(len(u.Data))<<countBits + 1)
	u.Data = nil
	in.next++
	in.free--
}

// settle frees what was needed only for the messages that were read, which lay in one chunk at
// most. An inbox that is empty afterwards keeps nothing.
func (in *Inbox) settle() {
	messages, bytes := in.unsettled()
	in.read.Store(0)
	in.count -= messages
	in.bytes -= bytes
	in.first += uint64(messages)
	if messages > 0 {
		in.release(in.taken.list[in.next-1].chunk, messages)
	}
	if in.taken != nil && int(in.next) == in.taken.len() {
		in.taken.free()
		in.taken, in.next = nil, 0
	}
	if in.full.Load() {
		in.full.Store(in.left().full())
		in.room.Broadcast()
	}
}

// release notes that so many messages in c, which may be nil, were read.
func (in *Inbox) release(c *chunk.Chunk, messages int) {
	if c == nil {
		return
	}
	switch c.Unread -= messages; {
	case c.Unread > 0:
	case c != in.filling:
		c.Free()
	case !in.writing:
		in.dropFilling()
	}
}

// This file lets the reader read the link itself while the inbox is empty. Package lead decides when.

// offer wakes a reader that waits, because the turn is free.
func (in *Inbox) offer() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.wakeReader()
}

// Yield lets the reader read, if the reader has asked for that, and waits until the producer has the turn
// again. It reports whether it has waited. Only the producer may call Yield, between two messages.
func (in *Inbox) Yield() bool {
	t := in.lead.Load()
	if !t.Asked() {
		return false
	}
	in.Publish()
	t.Lend()
	return true
}

// tell wakes a reader that reads the link, because something is in the inbox.
func (in *Inbox) tell() { in.lead.Load().Tell() }
