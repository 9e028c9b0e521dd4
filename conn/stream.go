package conn

import "io"

// stream is the connection of a WebSocket after its handshake: above TLS, if there is TLS.
type stream struct {
	source
	out     sender
	inflate *compression // nil: the peers have not agreed on permessage-deflate

	left  int // bytes of the data frame in progress that are not consumed
	shell shell
	small [smallSize]byte
}

// smallSize is how much an idle stream asks for, if its reader gives it no larger
// buffer. It is a prime, as idleSize, and a control frame fits.
const smallSize = 131

// shell is the body of the 101 response that coder/websocket gets for the handshake. Once detached, it
// no longer closes the connection.
type shell struct {
	io.ReadWriteCloser
	detached bool
}

func (s *shell) Close() error {
	if s.detached {
		return nil
	}
	return s.ReadWriteCloser.Close()
}

// newStream returns the stream of w over body.
func newStream(w *Wire, body io.ReadWriteCloser) *stream {
	s := &stream{source: source{wire: w, body: body}, shell: shell{ReadWriteCloser: body}}
	s.out.to = &s.source
	return s
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

// await waits for the whole control frame with header h, and returns its payload without consuming it.
func (s *stream) await(h header) ([]byte, error) {
	for len(s.win) < h.whole() {
		if err := s.more(nil); err != nil {
			return nil, err
		}
	}
	payload := s.win[h.head():h.whole()]
	if h.masked {
		mask(payload, s.win[h.size:])
	}
	return payload, nil
}

// more waits for bytes, and puts them behind those that are not consumed.
func (s *stream) more(land []byte) error {
	buf := s.small[:]
	switch {
	case !s.begun: // idle, perhaps for long
		s.release()
		if land = land[:min(len(land), aheadSize)]; len(land) > len(buf) {
			return s.landIn(land)
		}
	case s.ahead != nil || s.full || len(s.win) == len(buf): // the last: landIn has filled it
		buf = s.useAhead()
	}
	s.win = buf[:copy(buf, s.win)]
	n, err := s.ask(buf[len(s.win):])
	s.win = buf[:len(s.win)+n]
	return err
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
