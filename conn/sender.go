package conn

import (
	"crypto/rand"
	"io"
	"net"
	"sync"
	"time"
)

// sender stands between those who write frames and the network, where a writer may have to
// wait. It collects frames in a buffer, and the goroutine that writes a message flushes the
// buffer. Control frames never wait: if no call flushes them, they start a goroutine that does.
type sender struct {
	to *source // has the body

	mu  sync.Mutex // guards what follows; never held across I/O
	out *outgoing  // nil while nothing is sent
	err error      // why nothing is sent any more
}

const (
	// fragment is how large a message is that travels as one frame, and how much of a
	// batch is handed to the kernel together. Between two fragments control frames
	// find their turn. The limits on time hold for each of them.
	fragment = 32 << 10

	// maxWaiting is how many answers to pings may wait, and how many pings, and maxWaitingSize is how many
	// bytes of payload either have. Of the others only the last is kept, so that a peer that does not read
	// fills no memory of ours, and does not stop Read. The peer needs no other answer (RFC 6455, section
	// 5.5.3), and we need no other answer to our pings. What waits is written together, within one
	// WriteTimeout, so that more of it would cut a peer that reads slowly.
	maxWaiting     = 256
	maxWaitingSize = 3 << 10
)

// enter returns s.out, which it makes if there is none; the caller calls leave in the end.
// The lock is held.
func (s *sender) enter() *outgoing {
	if s.out == nil {
		o := outgoings.Get().(*outgoing)
		*o = outgoing{
			buf:    o.buf[:0],
			spare:  o.spare[:0],
			start:  -1,
			origin: -1,
			pings:  backlog{late: o.pings.late},
			pongs:  backlog{late: o.pongs.late},
		}
		o.moved.L, o.turn.L = &s.mu, &s.mu
		s.out = o
	}
	s.out.users++
	return s.out
}

func (s *sender) leave() {
	o := s.out
	if o.users--; o.users > 0 {
		return
	}
	s.out = nil
	if cap(o.buf) > maxFrame {
		o.buf = nil
	}
	if cap(o.spare) > maxFrame {
		o.spare = nil
	}
	o.moved.L, o.turn.L = nil, nil // the pool keeps no connection
	outgoings.Put(o)
}

// control adds a control frame to the buffer, and never waits. The error says why nothing is
// sent any more: net.ErrClosed behind a close frame.
func (s *sender) control(op byte, payload []byte) error {
	var key [keySize]byte
	_, _ = rand.Read(key[:]) // never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(); err != nil {
		return err
	}
	if o := s.out; o == nil || o.tickets == o.serving || o.compressing { // else the owner of the turn flushes it
		s.ensureFlush()
	}
	o := s.out
	switch {
	case op == opClose: // nothing follows it (RFC 6455, section 5.5.1)
		s.to.wire.closeSent.Store(true)
	case op == opPing && !o.pings.admit(payload), op == opPong && !o.pongs.admit(payload):
		return nil // push sends it
	}
	o.append(bitFIN|op, key[:], payload)
	return nil
}

// ensureFlush starts flushControl if it does not run. The lock is held.
func (s *sender) ensureFlush() {
	if s.out == nil || !s.out.control {
		s.enter().control = true
		go s.flushControl() // rest waits for it
	}
}

// setCompressing sets whether the caller, which has the turn, compresses a message. If so, another goroutine
// flushes the control frames, including those that wait already.
func (s *sender) setCompressing(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.compressing = on
	if on && len(s.out.buf) > 0 {
		s.ensureFlush()
	}
}

// busy reports whether a goroutine is writing messages.
func (s *sender) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out != nil && s.out.tickets != s.out.serving
}

// flushControl sends control frames until none is left. WriteTimeout holds for those that wait
// when it looks, not for those that come meanwhile: a peer that pings without a pause makes room.
func (s *sender) flushControl() {
	for done := false; !done; {
		unwatch := s.to.wire.writing.once(s.to.wire)
		s.mu.Lock()
		s.push()
		s.mu.Unlock()
		unwatch()

		s.mu.Lock()
		if o := s.out; !o.pushing && len(o.buf) == 0 { // else more has come
			o.control = false
			o.moved.Broadcast()
			s.leave()
			done = true
		}
		s.mu.Unlock()
	}
}

// begin waits for the turn to write messages. It returns why nothing can be written, or nil.
func (s *sender) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.enter()
	ticket := o.tickets
	o.tickets++
	for ticket != o.serving && s.err == nil {
		o.turn.Wait()
	}
	if s.err != nil {
		s.leave()
	}
	return s.err
}

// flush waits until the kernel has taken all frames that were added so far. It returns up to
// where the kernel has taken frames, and why it took no more. The caller has the turn.
func (s *sender) flush() (sent int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push()
	return s.out.sent, s.err
}

// end gives the turn to the next goroutine that waits for it.
func (s *sender) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.out.buf) > 0 { // control frames that came after the messages, for which no writer waits
		s.ensureFlush()
	}
	s.out.origin = -1
	s.out.serving++
	s.out.turn.Signal()
	s.leave()
}

// awaitMessage waits for the message that is being written, but not longer than closeLimit.
func (s *sender) awaitMessage() error {
	late := time.AfterFunc(closeLimit, func() { s.stop(errSlowMessage) })
	defer late.Stop()
	err := s.begin()
	if err == nil {
		s.end()
	}
	return err
}

// push writes what was added so far, or waits for the goroutine that does. It does not wait for
// what comes meanwhile, because a peer may ping for ever. The lock is held, but not while push
// writes or waits.
func (s *sender) push() {
	o := s.out
	for all := o.added; o.sent < all && (o.pushing || s.err == nil); {
		if o.pushing {
			o.moved.Wait()
			continue
		}
		buf, at, origin := o.buf, o.sent, o.origin
		o.buf, o.pushing = o.spare[:0], true
		if !s.to.wire.closeSent.Load() { // otherwise no frame may follow (RFC 6455, section 5.5.1)
			o.appendLate(opPing, &o.pings)
			o.appendLate(opPong, &o.pongs)
		}
		s.mu.Unlock()
		sent, err := s.write(buf, at, origin)
		s.mu.Lock()
		o.sent, o.spare, o.pushing = at+sent, buf, false
		if err != nil {
			s.fail(err)
		}
		o.moved.Broadcast()
	}
}

// write writes buf to the body. If a part of a message or batch has to wait behind an
// earlier part and is then taken, that is a sign of life, because the peer has made room. There is no need to cut buf:
// it holds one such part at most, and the control frames that waited with it.
func (s *sender) write(buf []byte, at, origin int64) (sent int64, err error) {
	further := origin >= 0 && at > origin
	var since time.Duration
	if further {
		since = clock()
	}
	n, err := s.to.body.Write(buf)
	if n < len(buf) && err == nil {
		err = io.ErrShortWrite
	}
	if further && err == nil && clock()-since >= time.Millisecond {
		s.to.wire.noteLife()
	}
	return int64(n), err
}

// settle waits until the kernel has taken all frames that were added so far, but not longer than limit.
// It does not wait if the connection was cut.
func (s *sender) settle(limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out == nil || s.err != nil {
		return
	}
	o := s.enter()
	defer s.leave()
	late := time.AfterFunc(limit, func() { s.stop(errControl) })
	defer late.Stop()
	for all := o.added; s.err == nil && o.sent < all; {
		o.moved.Wait()
	}
}

// stop makes the sender send nothing more, because of err. A write under way ends with the
// connection.
func (s *sender) stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(err)
}

// fail keeps the first error. The lock is held.
func (s *sender) fail(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	if o := s.out; o != nil {
		o.buf = o.buf[:0]
		o.moved.Broadcast()
		o.turn.Broadcast()
	}
}

// failure returns why nothing is sent any more, or nil.
func (s *sender) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// rest makes the sender send nothing more, and waits for the goroutines that send control
// frames. The connection is closed already.
func (s *sender) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(net.ErrClosed)
	if s.out == nil {
		return
	}
	o := s.enter()
	defer s.leave()
	for o.control {
		o.moved.Wait()
	}
}
