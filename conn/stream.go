package conn

import (
	"errors"
	"io"
	"sync/atomic"
)

// stream is what coder/websocket reads and writes: the body of the 101 response,
// which is the TLS connection, or the raw one without TLS. A WebSocket
// reads all data frames itself. It lends coder/websocket other frames to read, control
// frames and the headers of frames that break the rules, so that coder/websocket never
// holds a byte of a data frame.
type stream struct {
	source
	out     sender
	inflate *compression // nil: the peers have not agreed on permessage-deflate

	left      int         // bytes of the data frame under way that are not consumed
	lent      int16       // bytes of what has come that coder/websocket may read
	ending    bool        // and behind them an emptyMessage
	answering atomic.Bool // Close waits for the answer
	small     [smallSize]byte
}

// smallSize is how much an idle stream asks for, if its reader gives it no larger
// buffer. It is a prime, as idleSize, and a control frame fits.
const smallSize = 131

// emptyMessage is the frame of an empty message. coder/websocket gets it behind a frame that
// it was lent, so that its Reader returns, without an error.
const emptyMessage = "\x82\x00"

// errNothingLent is the error for coder/websocket when it must not read.
var errNothingLent = errors.New("nothing to read")

// newStream returns the stream of w over body.
func newStream(w *Wire, body io.ReadWriteCloser) *stream {
	s := &stream{source: source{wire: w, body: body}}
	s.out.to = &s.source
	return s
}

// Read is called by coder/websocket, for a Read that has lent it a frame, or for Close.
func (s *stream) Read(p []byte) (int, error) {
	if s.lent == 0 {
		switch s.wire.reads.state.Load() {
		case nobody, lent, recalled:
			if !s.ending || len(p) < len(emptyMessage) {
				return 0, errNothingLent
			}
			s.ending = false
			return copy(p, emptyMessage), nil
		}
		s.answering.Store(true)
		err := s.awaitAnswer()
		s.answering.Store(false)
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, s.win[:s.lent])
	s.lent -= int16(n)
	s.consume(n)
	return n, nil
}

// awaitAnswer waits for the peer's close frame, for Close, and lends it. It throws all other
// frames away, even if they break the rules. Only a length or an opcode that no frame has
// is lent too, so that coder/websocket refuses it.
func (s *stream) awaitAnswer() error {
	s.wire.reads.claim()
	s.by = byClose
	for {
		h, err := s.header(nil)
		if err != nil {
			return err
		}
		switch op := h.opcode(); {
		case h.length < 0, op > opBinary && op < opClose, op > opPong:
			s.lent = int16(h.size)
			return nil
		case op == opClose && h.length <= maxControl:
			s.lent = int16(h.whole())
			return s.await(h.whole())
		case op == opClose:
			s.lent = int16(h.size)
			return nil
		}
		if err := s.skip(uint64(h.head()) + uint64(h.length)); err != nil {
			return err
		}
	}
}

// skip throws away the next n bytes. No int holds the size of the largest frame that a peer
// may announce.
func (s *stream) skip(n uint64) error {
	for {
		some := min(n, uint64(len(s.win)))
		s.consume(int(some))
		if n -= some; n == 0 {
			s.finish(len(s.win) > 0)
			return nil
		}
		if err := s.more(nil); err != nil {
			return err
		}
	}
}

// header waits for a whole frame header, and returns it without consuming it.
// While it waits between messages, what comes may be put into land, a buffer of the
// caller, so that a large message needs one read.
func (s *stream) header(land []byte) (header, error) {
	for {
		if h, ok := parseHeader(s.win); ok {
			return h, nil
		}
		if err := s.more(land); err != nil {
			return header{}, err
		}
	}
}

// controls returns the size of the control frames at hand, and how many of them are pings. They
// are lent together, so that a flood costs what coder/websocket takes for each frame. The first
// one is whole. A close frame behind others is left for the next call, and so is a frame that
// breaks the rules. There are maxAnswers at most, because each may be a ping.
func (s *stream) controls() (size, pings int) {
	for range maxAnswers {
		h, ok := parseHeader(s.win[size:])
		last := h.opcode() == opClose
		if !ok || !h.isControl() || !h.short || h.masked || h.whole() > len(s.win)-size || last && size > 0 {
			break
		}
		if size += h.whole(); last {
			break
		}
		if h.opcode() == opPing {
			pings++
		}
	}
	return size, pings
}

// await waits until n bytes have come, which fit into the small buffer.
func (s *stream) await(n int) error {
	for len(s.win) < n {
		if err := s.more(nil); err != nil {
			return err
		}
	}
	return nil
}

// more waits for bytes, and puts them behind those that are not consumed.
func (s *stream) more(land []byte) error {
	switch {
	case !s.begun: // idle, perhaps for long
		s.release()
		if land = land[:min(len(land), aheadSize)]; len(land) > len(s.small) {
			return s.landIn(land)
		}
	case s.ahead != nil || s.full || len(s.win) == len(s.small): // the last: landIn has put as much there
		return s.fill(s.useAhead())
	}
	s.win = s.small[:copy(s.small[:], s.win)]
	return s.fill(s.small[:])
}

// landIn reads into the caller's buffer, and moves what has come into one of ours.
func (s *stream) landIn(land []byte) error {
	n, err := s.ask(land)
	buf := s.small[:]
	if n > len(buf) {
		buf = s.useAhead()
	}
	s.win = buf[:copy(buf, land[:n])]
	return err
}

// fill reads into buf, behind win, with which it begins.
func (s *stream) fill(buf []byte) error {
	n, err := s.ask(buf[len(s.win):])
	s.win = buf[:len(s.win)+n]
	return err
}

func (s *stream) consume(n int) { s.win = s.win[n:] }

// payload appends what is left of the frame under way to buf, which may grow to
// most. Beyond the first 8 KiB memory grows with what comes, never by a length.
func (s *stream) payload(buf []byte, most int) ([]byte, error) {
	for {
		some := min(s.left, len(s.win))
		buf = append(roomFor(buf, max(some, min(s.left, 4<<10)), most), s.win[:some]...)
		s.consume(some)
		if s.left -= some; s.left == 0 {
			return buf, nil
		}
		if (s.full || s.ahead != nil) && s.left < aheadSize/2 {
			if err := s.more(nil); err != nil {
				return nil, err
			}
			continue
		}
		buf = roomFor(buf, 1, most)
		n, err := s.ask(buf[len(buf):min(len(buf)+s.left, cap(buf))])
		if err != nil {
			return nil, err
		}
		buf = buf[:len(buf)+n]
		s.left -= n
	}
}

func (s *stream) Write(p []byte) (int, error) { return s.out.Write(p) }

// Close is called by coder/websocket, perhaps with a close frame of its own under
// way: this goes out first, unless Close has waited for its answer already.
func (s *stream) Close() error {
	if !s.answering.Load() {
		s.out.settle()
	}
	return s.body.Close()
}
