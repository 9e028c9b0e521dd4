package inbox

import (
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/chunk"
	"github.com/redial-go/redial/reconnect/internal/lead"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// The producer's half of an inbox.

// Put appends a message that the producer has read, perhaps into what Buffer returned, and owns its data from
// then on. If the inbox is full, Put applies Options.Overflow; with Block it appends the message.
func (in *Inbox) Put(m Item) error {
	in.begun = false
	if in.refuses() {
		in.counts.Received(m.Message)
		in.Publish()
		return ErrFull
	}
	u := unread{Item: m}
	if in.writing && in.filling != nil && in.filling.Holds(m.Data) {
		u.chunk = in.filling
		u.chunk.Take(m.Data)
	}
	in.pending = in.pending.add(u)
	in.size += len(m.Data)
	in.last = int32(min(len(m.Data), chunk.Largest))
	if !in.collecting || in.pending.len() >= min(batch, in.space.messages) || in.size >= in.space.bytes {
		in.Publish()
	}
	return nil
}

// PutBeside is Put for a message that has been counted. The caller may run concurrently with the producer.
func (in *Inbox) PutBeside(m Item) error {
	if in.refuses() {
		return ErrFull
	}
	defer in.tell()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.append((*slots)(nil).add(unread{Item: m}), len(m.Data))
	in.drop()
	in.measure()
	return nil
}

// refuses reports whether there is no room, and the policy is Disconnect.
func (in *Inbox) refuses() bool { return in.o.Overflow == Disconnect && in.full.Load() }

// Skip gives up a message that has come in whole from the link.
func (in *Inbox) Skip(m conn.Message) {
	in.counts.Received(m)
	in.begun = false
	if !in.collecting {
		in.Publish()
	}
}

// Begin begins the reading of a link. collect says whether Put may collect the buffered messages, because waking the
// reader for each costs more than all the rest. Then the caller must call Publish before the link waits for more.
// The reader and the producer read lend in turns until End, unless lend is nil or its connection does not allow that.
// Only the producer may call Begin.
func (in *Inbox) Begin(lend *link.Link, collect bool) {
	in.collecting = collect
	in.space = space{} // not known: the next Put publishes, and measures it
	if lend != nil {
		in.lead.Store(lead.New(lend, in.offer, in.o.Overflow == Block))
	}
}

// End ends the reading of a link: it takes the turn to read back for good, gives up a message that did not come in
// whole, and publishes those before it. Only the producer may call End, and only while it has the turn.
func (in *Inbox) End() {
	in.lead.Swap(nil).End()
	in.begun = false
	in.Publish()
}

// Publish lets the reader have what was put, and wakes it. Only the producer may call it.
func (in *Inbox) Publish() {
	if in.pending == nil && (in.begun || !in.writing) {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.publishPending()
	if in.writing = in.begun && in.writing; !in.writing && in.filling != nil && in.filling.Unread == 0 {
		in.dropFilling()
	}
}

// publishPending is publish for a caller that holds mu, and keeps the chunk.
func (in *Inbox) publishPending() {
	if in.pending != nil {
		in.counts.Messages.Add(uint64(in.pending.len()))
		in.counts.Bytes.Add(uint64(in.size))
		for _, u := range in.pending.list {
			if u.chunk != nil {
				u.chunk.Unread++
			}
		}
		in.append(in.pending, in.size)
		in.pending, in.size = nil, 0
	}
	in.drop()
	in.space = in.measure()
}

// measure returns how much room there is, and sets full if there is none.
func (in *Inbox) measure() space {
	left := in.left()
	if left.full() {
		in.full.Store(true) // first, because the reader looks at it after it has read
		left = in.left()
		in.full.Store(left.full())
	}
	return left
}

// append appends messages, and wakes the reader.
func (in *Inbox) append(s *slots, size int) {
	in.count += s.len()
	in.bytes += size
	switch {
	case in.tail.join(s):
	case in.tail == nil:
		in.queue, in.tail = s, s
	default:
		in.tail.next = s
		in.tail = s
	}
	in.wakeReader()
}

// drop drops the oldest messages while there are too many, if that is the policy.
func (in *Inbox) drop() {
	for in.o.Overflow == DropOldest && (in.count > in.o.Messages || in.bytes > in.o.Bytes && in.count > 1) {
		in.dropOldest()
	}
}

// Full reports whether there is no room. Room says when to ask again.
func (in *Inbox) Full() bool { return in.full.Load() }

// Room returns a channel that is closed when a message of a full inbox is taken, also if there is no room
// after that, because the messages are larger than Bytes together. Ask Full after it.
func (in *Inbox) Room() <-chan struct{} { return in.room.Wait() }

// Overfull reports whether there is more than fits, by as much as may be held of one session.
func (in *Inbox) Overfull() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	left := in.left()
	return left.messages <= -in.o.held() || left.bytes <= -in.o.Bytes
}

// Buffer returns memory for a message of that size. Size 0 means that the size is not
// known, so that the message is expected to be as large as the one before; -1 asks for
// little room. Buffer returns nil for a message that is to have a slice of its own, because the
// connection makes that. Only the producer may call it.
func (in *Inbox) Buffer(size int) []byte {
	in.begun = true
	if size > chunk.Largest || size > 0 && in.fresh.Load() {
		return nil
	}
	if size == 0 {
		size = int(in.last)
	}
	if in.writing && in.fits(size) {
		return in.filling.Room()
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.writing = true
	if in.fits(size) {
		return in.filling.Room()
	}
	in.publishPending()
	in.dropFilling()
	if size > 0 { // if much waits already, much may follow
		size = max(size, min(in.bytes, chunk.Largest))
	}
	in.filling = chunk.New(size)
	return in.filling.Room()
}

// fits reports whether there is a chunk with room for a message of that size.
func (in *Inbox) fits(size int) bool {
	return in.filling != nil && cap(in.filling.Room()) >= max(size, 1)
}

// dropFilling lets the next message be written to another chunk.
func (in *Inbox) dropFilling() {
	if c := in.filling; c != nil && c.Unread == 0 {
		c.Free()
	}
	in.filling = nil
}

// Clone returns a copy of p that has room for nothing else. The compiler knows the two lines,
// and does not clear the memory first.
func Clone(p []byte) []byte {
	same := make([]byte, len(p))
	copy(same, p)
	return same
}
