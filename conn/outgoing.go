package conn

import (
	"crypto/rand"
	"net"
	"sync"
)

// outgoing is what a sender needs while something is sent; the sender's lock guards it.
// Offsets count from when it began.
type outgoing struct {
	users int // goroutines in one of the sender's methods, and the owner of the turn

	buf     []byte    // frames that wait
	spare   []byte    // will be buf while that is written
	moved   sync.Cond // something was written, the sender has failed, or a goroutine has ended
	pushing bool      // one goroutine writes to the body
	control bool      // a goroutine that a control frame started will flush

	turn        sync.Cond // the turn to write messages was handed over, or the sender has failed
	tickets     int       // how many goroutines have asked for it
	serving     int       // whose turn it is: the number of the ticket
	compressing bool      // the owner of the turn compresses a message, and flushes nothing meanwhile

	added  int64 // bytes of all frames so far
	sent   int64 // of them, bytes that the kernel has taken
	start  int64 // where in added the message under way begins; -1: nowhere yet
	origin int64 // where in added the messages of this turn begin; -1: nowhere yet

	pings, pongs backlog
}

// backlog bounds the control frames of one kind that wait: maxWaiting frames in the buffer, with payloads of
// maxWaitingSize together, and of those after them the payload of the last.
type backlog struct {
	count  int    // frames in the buffer
	size   int    // bytes of their payloads
	late   []byte // the payload if isLate, otherwise memory for the next
	isLate bool
}

// admit reports whether a frame may be added to the buffer. Otherwise it keeps the payload.
func (b *backlog) admit(payload []byte) bool {
	if b.isLate || b.count == maxWaiting || b.size+len(payload) > maxWaitingSize {
		b.late, b.isLate = append(b.late[:0], payload...), true
		return false
	}
	b.count++
	b.size += len(payload)
	return true
}

var outgoings = sync.Pool{New: func() any { return new(outgoing) }}

// add adds a data frame of the message in progress, and returns where the message lies so far. Behind
// its last frame the next message begins.
func (o *outgoing) add(first byte, key, payload []byte) span {
	if o.start < 0 {
		o.start = o.added
	}
	if o.origin < 0 {
		o.origin = o.start
	}
	o.append(first, key, payload)
	m := span{o.start, o.added}
	if first&bitFIN != 0 {
		o.start = -1
	}
	return m
}

// append adds any frame.
func (o *outgoing) append(first byte, key, payload []byte) {
	before := len(o.buf)
	o.buf = appendFrame(o.buf, first, key, payload)
	o.added += int64(len(o.buf) - before)
}

// appendLate begins a new buffer with the frame that b has kept, if it has one.
func (o *outgoing) appendLate(op byte, b *backlog) {
	b.count, b.size = 0, 0
	if !b.isLate {
		return
	}
	var key [keySize]byte
	_, _ = rand.Read(key[:]) // never fails
	o.append(bitFIN|op, key[:], b.late)
	b.count, b.size, b.isLate = 1, len(b.late), false
}

// span is where the bytes of a message lie among all that are sent.
type span struct {
	start int64 // -1: no byte of it was added
	end   int64
}

// addMessages adds as many of ms as go to the kernel together, each in one frame, and notes
// where they lie. The error says why it did not add the next one. The caller has the turn,
// and the first message is no larger than a fragment.
func (s *sender) addMessages(ms []Message, spans *[batch]span) (n int, err error) {
	var buf [batch * keySize]byte
	keys := buf[:min(len(ms), batch)*keySize]
	_, _ = rand.Read(keys) // never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		return 0, err
	}
	for n < min(len(ms), batch) && goesAlong(spans[:n], ms[n]) {
		if err := checkType(ms[n]); err != nil {
			return n, err
		}
		spans[n] = s.out.add(bitFIN|byte(ms[n].Type), keys[n*keySize:][:keySize], ms[n].Data)
		n++
	}
	return n, nil
}

// goesAlong reports whether m goes to the kernel together with the messages at spans. Their frames
// have the size of a fragment at most, because a control frame waits until the kernel has taken all of them.
func goesAlong(spans []span, m Message) bool {
	const header = 8 // of a frame that is no larger than a fragment
	return len(spans) == 0 || spans[len(spans)-1].end-spans[0].start+header+int64(len(m.Data)) <= fragment
}

// addFragment adds a frame of the message in progress, and returns where the message lies so far. The
// caller has the turn.
func (s *sender) addFragment(first byte, payload []byte) (span, error) {
	var key [keySize]byte
	_, _ = rand.Read(key[:]) // never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		return span{s.out.start, s.out.added}, err
	}
	return s.out.add(first, key[:], payload), nil
}

// refusal returns why no frame can be added, or nil. The lock is held.
func (s *sender) refusal() error {
	if s.err == nil && s.to.wire.closeSent.Load() {
		return net.ErrClosed
	}
	return s.err
}
