package conn

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
)

const (
	bufioSize = 4 << 10  // what coder/websocket's bufio.Reader asks for at a time
	frameSize = 512      // what that of a Framed does
	aheadSize = 64 << 10 // what we ask for while there is a burst
	maxNeed   = 64       // see stream.need
)

// stream is what coder/websocket reads and writes, or a Framed reads: the body of
// the 101 response, which is the TLS connection, or the raw one without TLS.
type stream struct {
	body   io.ReadWriteCloser // nil: coder/websocket has the body itself
	out    *sender            // of a WebSocket; nil if body is
	framed bool               // it is a Framed's: a message begins with its first byte, and may be small

	compressed bool // the peers have agreed on permessage-deflate

	// Owned by who holds coder/websocket's read lock: the reader, or Close.
	ahead    *[aheadSize]byte // nil, or holding ahead[from:to] that is not yet asked for
	from, to int
	pending  error // came with the last bytes: to be told when they have been
	full     uint8 // how many reads in a row filled bufio's buffer
	need     uint8 // how many of them make a burst, 0 meaning 1: doubled by each false alarm

	onWait func() // called before each Read of the body; nil: nobody cares

	phase   atomic.Uint32         // of the message being read
	message *watchdog             // begun when a message has to wait for the network
	told    atomic.Pointer[error] // the read error that coder/websocket was told
}

// The phases of reading.
const (
	between uint32 = iota // no message has begun
	inside                // one has
	timed                 // and it waited for the network, so that its time runs
)

// aheads holds the buffers for reading ahead. A connection has one only from a
// read that is probably part of a burst until the bytes are asked for.
var aheads = sync.Pool{New: func() any { return new([aheadSize]byte) }}

// Read reads ahead once the last read has filled bufio's buffer: more is probably
// waiting. An error that comes with bytes is told after them, so that
// coder/websocket is told of an error only when it lacks bytes.
func (s *stream) Read(p []byte) (int, error) {
	if s.ahead != nil {
		return s.serve(p), nil
	}
	if s.pending != nil {
		return 0, s.tell(s.pending)
	}
	if s.phase.Load() == inside && s.phase.CompareAndSwap(inside, timed) {
		s.message.begin()
	}
	if s.burst() && len(p) < aheadSize/2 {
		return s.readAhead(p)
	}
	s.wait()
	n, err := s.body.Read(p)
	if n == len(p) && n <= s.size() { // a larger p is the rest of a message: filling it says nothing
		s.full = min(s.full+1, maxNeed)
	} else {
		s.full = 0
	}
	return s.split(n, err)
}

// burst reports whether it is time to read ahead. Inside a frame no false alarm
// can leave an idle connection with the buffer in hand.
func (s *stream) burst() bool {
	return s.full > 0 && (s.full >= s.need || s.framed && s.phase.Load() != between)
}

// size is how much the bufio.Reader above asks for, unless for more.
func (s *stream) size() int {
	if s.framed {
		return frameSize
	}
	return bufioSize
}

func (s *stream) readAhead(p []byte) (int, error) {
	buf := aheads.Get().(*[aheadSize]byte)
	s.wait()
	n, err := s.body.Read(buf[:])
	switch {
	case n > len(p):
		s.need = 1
	case !s.framed || s.phase.Load() == between: // perhaps we were idle with the buffer in hand
		s.need = min(2*max(s.need, 1), maxNeed)
	}
	if n < len(buf) {
		s.full = 0
	}
	if n == 0 {
		aheads.Put(buf)
		return s.split(0, err)
	}
	s.ahead, s.from, s.to, s.pending = buf, 0, n, err
	s.came()
	return s.serve(p), nil
}

func (s *stream) wait() {
	if s.onWait != nil {
		s.onWait()
	}
}

// serve gives out what was read ahead, and the buffer back when it is empty.
func (s *stream) serve(p []byte) int {
	n := copy(p, s.ahead[s.from:s.to])
	if s.from += n; s.from == s.to {
		aheads.Put(s.ahead)
		s.ahead = nil
	}
	return n
}

func (s *stream) split(n int, err error) (int, error) {
	if err != nil && n == 0 {
		return 0, s.tell(err)
	}
	s.pending = err
	if n > 0 {
		s.came()
	}
	return n, nil
}

// came says that there are bytes: a frame begins, if none has.
func (s *stream) came() {
	if s.framed && s.phase.Load() == between {
		s.phase.Store(inside)
	}
}

func (s *stream) tell(err error) error {
	if s.told.Load() == nil {
		s.told.Store(&err)
	}
	s.pending = err
	return err
}

// drain throws away all that comes until the stream ends, and returns how that was.
// It does not call onWait, which belongs to the goroutine that read.
func (s *stream) drain() error {
	err := s.pending
	for buf := make([]byte, bufioSize); err == nil; {
		_, err = s.body.Read(buf)
	}
	return err
}

func (s *stream) Write(p []byte) (int, error) { return s.out.Write(p) }

// Close is called by coder/websocket, perhaps with a close frame of its own under
// way.
func (s *stream) Close() error {
	s.out.settle()
	return s.body.Close()
}

// stopSending lets nothing be sent any more.
func (s *stream) stopSending() {
	if s.out != nil {
		s.out.stop(net.ErrClosed)
	}
}

// awaitSenders waits for the goroutines that send control frames. The connection
// is closed.
func (s *stream) awaitSenders() {
	if s.out != nil {
		s.out.control.Wait()
	}
}

// unsent returns why nothing is sent any more, nil if it is.
func (s *stream) unsent() error {
	if s.out == nil {
		return nil
	}
	return s.out.failure()
}

// enter says that a message has begun. Its time runs from the first read that it
// waits for, which follows its header at once; from here without a stream.
func (s *stream) enter() {
	switch {
	case s.message.limit <= 0:
	case s.body == nil:
		s.message.begin()
	default:
		s.phase.Store(inside)
	}
}

// enterFrame says that a frame is being read, of which some may be here already.
// Most frames of a burst are, and then nothing is stored.
func (s *stream) enterFrame(begun bool) {
	phase := between
	if begun {
		phase = inside
	}
	if s.phase.Load() != phase {
		s.phase.Store(phase)
	}
}

// leaveFrame says that the frame is over, and reports whether there was any of it.
func (s *stream) leaveFrame() (begun bool) {
	phase := s.phase.Load()
	if phase == timed {
		s.phase.Store(between)
		s.message.end()
	}
	return phase != between
}

// leave says that the message is over, whole or not.
func (s *stream) leave() {
	switch {
	case s.message.limit <= 0:
	case s.body == nil || s.phase.Swap(between) == timed:
		s.message.end()
	}
}
