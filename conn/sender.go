package conn

import (
	"net"
	"sync"
	"time"
)

// sender stands between those who write frames and the network, where a writer may have to
// wait. It makes the frames of messages itself, except those of compressed messages, which
// come from coder/websocket as control frames do. It collects frames in a buffer, and the
// goroutine that writes a message flushes the buffer. So coder/websocket, which writes under
// its frame lock, never waits there: it can answer a ping at any time, and its limit of 5 s
// for that never ends a connection whose window is full.
type sender struct {
	to *source // has the body

	mu  sync.Mutex // guards what follows; never held across I/O
	out *outgoing  // nil while nothing is sent
	err error      // why nothing is sent any more
}

const (
	// fragment is how large a message is that travels as one frame, and how much of a
	// batch is handed to the kernel together. Between two fragments control frames
	// find their turn.
	fragment = 32 << 10

	// maxAnswers is how many pings are answered together. Twice as many answers may wait: those
	// that are made while nothing is sent are not counted.
	maxAnswers = 256
)

// enter returns s.out, which it makes if there is none; the caller calls leave in the end.
// The lock is held.
func (s *sender) enter() *outgoing {
	if s.out == nil {
		o := outgoings.Get().(*outgoing)
		*o = outgoing{buf: o.buf[:0], spare: o.spare[:0], start: -1, origin: -1}
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
	outgoings.Put(o)
}

// Write adds a control frame to the buffer, or a part of a frame of a compressed message. It
// is called under coder/websocket's frame lock, and never waits.
func (s *sender) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	if s.out == nil || !s.out.control && s.out.tickets == s.out.serving { // a control frame that nobody would flush
		s.enter().control = true
		go s.flushControl() // rest waits for it
	}
	o := s.out
	switch op := p[0] & 0xf; { // coder/websocket writes each control frame at once
	case op < opClose && o.start < 0: // a data frame, because between messages there are only control frames
		o.begin()
	case op == opClose: // or bytes of a compressed message, behind which no frame of ours is added
		s.to.wire.closeSent.Store(true)
	}
	o.buf = append(o.buf, p...)
	o.added += int64(len(p))
	return len(p), nil
}

// flushControl sends control frames.
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

// next returns where the message lies that was added last, and announces the next
// one of the turn.
func (s *sender) next() span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.next()
}

// flush waits until the kernel has taken all frames. It returns up to where the kernel has
// taken them, and why it took no more. The caller has the turn.
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
	s.push() // control frames that came after the messages
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

// push writes until the buffer is empty, or waits for the goroutine that does. The
// lock is held, but not while it writes or waits.
func (s *sender) push() {
	o := s.out
	for o.pushing || len(o.buf) > 0 && s.err == nil {
		if o.pushing {
			o.moved.Wait()
			continue
		}
		buf, at, origin := o.buf, o.sent, o.origin
		o.buf, o.pushing, o.answers = o.spare[:0], true, 0
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
// earlier part and is then taken, that is a sign of life, because the peer has made room.
func (s *sender) write(buf []byte, at, origin int64) (sent int64, err error) {
	for len(buf) > 0 && err == nil {
		further := origin >= 0 && at+sent > origin
		var since time.Duration
		if further {
			since = clock()
		}
		var n int
		n, err = s.to.body.Write(buf[:min(len(buf), 2*fragment)])
		if further && err == nil && clock()-since >= time.Millisecond {
			s.to.wire.noteLife()
		}
		sent += int64(n)
		buf = buf[n:]
	}
	return sent, err
}

// awaitAnswers makes room for the answers to n more pings. It waits while there are
// many that the kernel does not take, so that a peer that pings and does not read
// fills no memory of ours.
func (s *sender) awaitAnswers(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out == nil {
		return
	}
	o := s.enter()
	defer s.leave()
	for o.answers+n > maxAnswers && len(o.buf) > 0 && s.err == nil {
		o.moved.Wait()
	}
	o.answers += n
}

// settle waits until the kernel has taken all frames, but not longer than closeLimit. It
// does not wait if the connection was cut.
func (s *sender) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out == nil || s.err != nil {
		return
	}
	o := s.enter()
	defer s.leave()
	late := time.AfterFunc(closeLimit, func() { s.stop(errControl) })
	defer late.Stop()
	for s.err == nil && (o.pushing || len(o.buf) > 0) {
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
