package conn

import (
	"io"
	"sync"
	"time"
)

// sender stands between coder/websocket, which writes under its frame lock, and
// the network, which may make a writer wait. It collects frames in a buffer, and
// the goroutine that wants them sent flushes it without that lock. So
// coder/websocket can answer a ping at any time, and its limit of 5 s for that
// never ends a connection whose window is full.
type sender struct {
	wire *Wire
	body io.Writer

	mu       sync.Mutex // guards what follows; never held across I/O
	moved    sync.Cond  // a flush has ended, or the sender has failed
	buf      *[]byte    // frames that wait, in a buffer of the pool; nil: none
	pushing  bool       // one goroutine writes to the body
	flushers int        // goroutines that will flush; without one, a frame starts one
	added    int64      // bytes of all frames so far
	sent     int64      // of them, bytes that the kernel has taken
	start    int64      // where in added the message under way begins; -1: nowhere yet
	origin   int64      // where the messages of this turn do; -1: nowhere yet
	answers  int        // to pings, since the buffer was last taken
	err      error      // why nothing is sent any more

	control sync.WaitGroup // flushes of control frames alone
}

// fragment is how much is handed to the kernel at once, and how large a message is
// that travels as one frame. Between two fragments control frames find their turn.
const fragment = 32 << 10

// maxAnswers is how many answers to pings may wait.
const maxAnswers = 512

func newSender(w *Wire, body io.Writer) *sender {
	s := &sender{wire: w, body: body, start: -1, origin: -1}
	s.moved.L = &s.mu
	return s
}

// Write adds a part of a frame to the buffer. It is called under coder/websocket's
// frame lock, and never waits.
func (s *sender) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	if s.start < 0 && p[0]&0xf < opClose { // a data frame: before a message there are only control frames, each whole
		s.start = s.added
		if s.origin < 0 {
			s.origin = s.start
		}
	}
	if s.buf == nil {
		s.buf = frames.Get().(*[]byte)
	}
	*s.buf = append(*s.buf, p...)
	s.added += int64(len(p))
	if s.flushers == 0 {
		s.flushers++
		s.control.Add(1)
		go s.flushControl() // stop waits for it
	}
	return len(p), nil
}

// begin announces messages of the goroutine that has the turn, which adds them and
// then flushes. It says why that is of no use. With first, the turn begins.
func (s *sender) begin(first bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.flushers++
	s.start = -1
	if !first {
		s.origin = 0 // before all that follows
	}
	return nil
}

// span is where the bytes of a message lie among all that were sent. A control
// frame right behind it may count as a part of it.
type span struct {
	start int64 // -1: no byte of it was added
	end   int64
}

// next returns where the message under way lies, and announces the next.
func (s *sender) next() span {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := span{s.start, s.added}
	s.start = -1
	return m
}

// flush returns when the kernel has taken all frames, or says why it will not, and
// how many bytes it has taken since the beginning. With done it ends what begin
// began.
func (s *sender) flush(done bool) (sent int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.pushing || s.buf != nil && s.err == nil {
		if s.pushing {
			s.moved.Wait()
		} else {
			s.push()
		}
	}
	if done {
		s.flushers--
		s.origin = -1
	}
	return s.sent, s.err
}

// push writes what is in the buffer. The lock is held when it is called and when
// it returns, but not while it writes.
func (s *sender) push() {
	buf, at, origin := s.buf, s.sent, s.origin
	s.buf, s.pushing, s.answers = nil, true, 0
	s.mu.Unlock()

	var err error
	for p := *buf; len(p) > 0 && err == nil; {
		further := origin >= 0 && at > origin // than the first part of what is written in this turn
		var since time.Duration
		if further {
			since = clock()
		}
		var n int
		n, err = s.body.Write(p[:min(len(p), 2*fragment)])
		if further && err == nil && clock()-since >= time.Millisecond {
			s.wire.note() // it had to wait, and the peer has made room
		}
		at += int64(n)
		p = p[n:]
	}
	recycle(buf)

	s.mu.Lock()
	s.sent, s.pushing = at, false
	if err != nil {
		s.fail(err)
	}
	s.moved.Broadcast()
}

// flushControl sends a control frame that nobody else will.
func (s *sender) flushControl() {
	defer s.control.Done()
	s.wire.writing.begin()
	_, _ = s.flush(true)
	s.wire.writing.end()
}

// awaitAnswers makes room for a further answer to a ping. It waits while there are
// many that the kernel does not take, so that a peer that pings and does not read
// fills no memory of ours.
func (s *sender) awaitAnswers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.answers >= maxAnswers && s.err == nil {
		if !s.pushing && s.buf == nil {
			s.answers = 0
			break
		}
		s.moved.Wait()
	}
	s.answers++
}

// settle waits until the kernel has taken all frames, but not longer than
// closeLimit, and for nothing after the connection was cut.
func (s *sender) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pushing && s.buf == nil {
		return
	}
	late := time.AfterFunc(closeLimit, func() { s.stop(errControl) })
	defer late.Stop()
	for s.err == nil && (s.pushing || s.buf != nil) {
		s.moved.Wait()
	}
}

// stop lets nothing be sent any more, because of err. What is being written ends
// with the connection.
func (s *sender) stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(err)
}

// fail keeps the first error. The lock is held.
func (s *sender) fail(err error) {
	if s.err == nil {
		s.err = err
		if s.buf != nil {
			recycle(s.buf)
			s.buf = nil
		}
		s.moved.Broadcast()
	}
}

// failure returns why nothing is sent any more, nil if it is.
func (s *sender) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
