package conn

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// source is where the bytes of a connection come from. It belongs to the goroutine
// that has the turn to read.
type source struct {
	wire        *Wire              // its watchdog runs while a message waits for the network
	body        io.ReadWriteCloser // which a sender writes
	beforeBlock func()             // called by the goroutine that reads, before it may wait; may be nil

	ahead *[aheadSize]byte // nil, or the buffer in which win lies
	win   []byte           // what has come and is not consumed
	full  bool             // the last read filled its buffer: more has probably come
	begun bool             // something of the message under way has come
	timed bool             // and the watchdog runs for it
	part  int              // bytes of it that have come since its time began
	spent time.Duration    // which calls of ReadWhole have waited for the part
	by    caller           // which method reads
	mute  error            // why a ping could not be answered, or nil

	told atomic.Bool // err was returned: the stream has ended. Then others may read it
	err  error       // came with the last bytes, and is returned after them
}

// lastWords is how long a read waits once a ping could not be answered: what the peer has sent may still be on its
// way.
const lastWords = time.Second

// caller is the method that reads from a source.
type caller uint8

const (
	byRead      caller = iota
	byReadWhole        // Wake ends its wait also inside a message
	byClose            // does not call beforeBlock
)

const (
	// idleSize is how much is asked for at once between messages, so that an idle
	// connection holds little memory. It is a prime, because then a burst of equal
	// messages does not end where the buffer does, and is known for a burst.
	idleSize = 509

	// aheadSize is how much is asked for at once inside a burst.
	aheadSize = 64 << 10
)

// aheads holds the buffers for bursts. A connection takes one after a read inside a message
// has filled its buffer, and gives it back when all that came is consumed.
var aheads = sync.Pool{New: func() any { return new([aheadSize]byte) }}

// ask reads from the network. An error that comes with bytes is returned by the
// next call, so that the stream ends only for a reader that lacks bytes.
func (s *source) ask(p []byte) (int, error) {
	if s.begun && !s.timed {
		s.timed = true
		s.wire.message.resume(s.wire, s.spent)
	}
	if err := s.mute; err != nil {
		defer after(lastWords, func() { s.wire.end(err); s.wire.Cut() })()
	}
	for tries := 0; s.err == nil; tries++ {
		s.announce()
		n, woken := 0, s.wire.called()
		if !woken {
			n, s.err = s.body.Read(p)
			s.full = n == len(p)
			woken = s.wire.wokeUp(s.err)
		}
		if woken {
			s.err, tries = nil, 0 // the error is ours
		}
		switch {
		case n > 0:
			s.begun = true
			if s.part += n; s.part >= fragment {
				s.part, s.spent = 0, 0
				if s.timed {
					s.wire.message.progress()
				}
			}
			return n, nil
		case woken && (s.by == byReadWhole || !s.begun && s.by != byClose):
			return 0, ErrWoken
		}
		if tries == 100 && s.err == nil {
			s.err = io.ErrNoProgress
		}
	}
	s.told.Store(true)
	return 0, s.err
}

// announce is called before Read may wait. A Close that reads does not look at beforeBlock, which
// another goroutine may set meanwhile.
func (s *source) announce() {
	if s.by != byClose && s.beforeBlock != nil {
		s.beforeBlock()
	}
}

// finish ends the message under way, which is complete or no longer needed. more is set if
// bytes of the next message have come. The next Read may come late or never, so an empty buffer is
// released here.
func (s *source) finish(more bool) {
	if s.timed {
		s.timed = false
		s.wire.message.end()
	}
	s.begun, s.part, s.spent = more, 0, 0
	if len(s.win) == 0 {
		s.release()
	}
}

// pause stops the watchdog of the message under way, because no Read waits for the message now. The next wait starts
// it again, with the time so far.
func (s *source) pause() {
	if s.timed {
		s.timed = false
		s.spent = s.wire.message.pause()
	}
}

// useAhead returns the buffer for bursts, which it takes if there is none. The caller puts win into it.
func (s *source) useAhead() []byte {
	if s.ahead == nil {
		s.ahead = aheads.Get().(*[aheadSize]byte)
	}
	return s.ahead[:]
}

// release gives the buffer for bursts back, which is empty.
func (s *source) release() {
	if s.ahead != nil {
		aheads.Put(s.ahead)
		s.ahead, s.win = nil, nil
	}
}

// ended returns the error that ended the stream, nil if it goes on.
func (s *source) ended() error {
	if s.told.Load() {
		return s.err
	}
	return nil
}

// cause returns why nothing can be read any more: net.ErrClosed if we have cut the connection, otherwise the
// error that ended the stream. It returns err if neither has happened.
func (s *source) cause(err error) error {
	end := s.ended() // before cut: what ends without a cut was not ended by us
	switch {
	case s.wire.cut.Load():
		return net.ErrClosed
	case end != nil:
		return end
	}
	return err
}

// Read is for the bufio.Reader of a Framed. Between messages it asks for little.
func (s *source) Read(p []byte) (int, error) {
	if len(s.win) == 0 {
		s.release()
		switch {
		case !s.begun:
			return s.ask(p[:min(len(p), idleSize)])
		case !s.full || len(p) >= aheadSize/2:
			return s.ask(p)
		}
		n, err := s.ask(s.useAhead())
		if err != nil {
			s.release()
			return 0, err
		}
		s.win = s.ahead[:n]
	}
	n := copy(p, s.win)
	s.win = s.win[n:]
	return n, nil
}

// drain throws away all that comes until the stream ends, and returns how it
// ended.
func (s *source) drain() (err error) {
	s.release()
	s.by = byClose
	for buf := make([]byte, 4<<10); err == nil; {
		_, err = s.ask(buf)
	}
	return err
}
