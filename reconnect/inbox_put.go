package reconnect

import "github.com/redial-go/redial/conn"

// The producer's half of an inbox.

// buffer returns memory for a message of that size. Size 0 means that the size is not
// known, so that the message is expected to be as large as the one before; -1 asks for
// little room. It returns nil for a message that is to have a slice of its own, because the
// connection makes that.
func (in *inbox) buffer(size int) []byte {
	in.begun = true
	if size > largestChunk || size > 0 && in.fresh.Load() {
		return nil
	}
	if size == 0 {
		size = int(in.last)
	}
	if in.writing && in.fits(size) {
		return in.filling.room()
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.writing = true
	if in.fits(size) {
		return in.filling.room()
	}
	in.publishPending()
	in.dropFilling()
	if size > 0 { // if much waits already, much may follow
		size = max(size, min(in.bytes, largestChunk))
	}
	in.filling = newChunk(size)
	return in.filling.room()
}

// fits reports whether there is a chunk with room for a message of that size.
func (in *inbox) fits(size int) bool {
	return in.filling != nil && cap(in.filling.room()) >= max(size, 1)
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
	in.begun = false
	if in.limit.Overflow == OverflowDisconnect && in.full.Load() {
		if !in.counted {
			in.counts.received(m.Message)
		}
		in.publish()
		return ErrInboxFull
	}
	u := unread{Message: m}
	if in.writing && in.filling != nil && in.filling.holds(m.Data) {
		u.chunk = in.filling
		u.chunk.take(m.Data)
	}
	in.pending = in.pending.add(u)
	in.size += len(m.Data)
	in.last = int32(min(len(m.Data), largestChunk))
	if !in.collecting || in.pending.len() >= min(batch, in.space.messages) || in.size >= in.space.bytes {
		in.publish()
	}
	return nil
}

// deliver appends a copy of m, which has been counted.
func (in *inbox) deliver(m Message) error {
	if buf := in.buffer(max(len(m.Data), 1)); cap(buf) >= len(m.Data) {
		m.Data = append(buf, m.Data...)
	} else {
		m.Data = clone(m.Data)
	}
	in.counted = true
	defer func() { in.counted = false }()
	return in.put(m)
}

// abandon gives up a message that did not come in whole, and publishes those before it.
func (in *inbox) abandon() {
	in.begun = false
	in.publish()
}

// collectFrom makes put collect the messages that l has at hand, because to wake the reader
// for each costs more than all the rest. It also makes the wait for more end a pause of l.
func (in *inbox) collectFrom(l *link) {
	w, ok := l.conn.(conn.BlockNotifier)
	in.collecting = ok && w.BeforeBlock(func() {
		in.publish()
		l.unpause()
	})
}

// publish lets the reader have what was put, and wakes it.
func (in *inbox) publish() {
	if in.pending == nil && (in.begun || !in.writing) {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.publishPending()
	if in.writing = in.begun && in.writing; !in.writing && in.filling != nil && in.filling.unread == 0 {
		in.dropFilling()
	}
}

// publishPending is publish for a caller that holds mu, and keeps the chunk.
func (in *inbox) publishPending() {
	if in.pending != nil {
		if !in.counted {
			in.counts.in.Add(uint64(in.pending.len()))
			in.counts.inBytes.Add(uint64(in.size))
		}
		for _, u := range in.pending.list {
			if u.chunk != nil {
				u.chunk.unread++
			}
		}
		in.append(in.pending, in.size)
		in.pending, in.size = nil, 0
	}
	in.drop()
	in.space = in.measure()
}

// measure returns how much room there is, and sets full if there is none.
func (in *inbox) measure() space {
	left := in.left()
	if left.full() {
		in.full.Store(true) // first, because the reader looks at it after it has read
		left = in.left()
		in.full.Store(left.full())
	}
	return left
}

// append appends messages, and wakes the reader.
func (in *inbox) append(s *slots, size int) {
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
func (in *inbox) drop() {
	for in.limit.Overflow == OverflowDropOldest && (in.count > in.limit.Messages || in.bytes > in.limit.Bytes && in.count > 1) {
		in.dropOldest()
	}
}

// add appends a message that does not lie in what buffer returned, and that has been counted.
// It may run beside the producer. If there is no room it does what the policy says, as put
// does.
func (in *inbox) add(m Message) error {
	if in.limit.Overflow == OverflowDisconnect && in.full.Load() {
		return ErrInboxFull
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.append((*slots)(nil).add(unread{Message: m}), len(m.Data))
	in.drop()
	in.measure()
	return nil
}

// overfull reports whether there is more than fits, by as much as may be held of one session.
func (in *inbox) overfull() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	left := in.left()
	return left.messages <= -in.limit.held() || left.bytes <= -in.limit.Bytes
}

// skip gives up a message that has come in whole, because a layer has taken it.
func (in *inbox) skip(m conn.Message) {
	in.counts.received(m)
	in.begun = false
	if !in.collecting {
		in.publish()
	}
}
