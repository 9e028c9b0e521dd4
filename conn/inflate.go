//go:build !js

package conn

import (
	"compress/flate"
	"errors"
	"io"
	"math"
	"sync"
)

// inflated is one compressed message while it is read (RFC 7692, section 7.2.2).
type inflated struct {
	flate   io.ReadCloser // reads payload; kept in the pool
	payload deflated
	room    int // bytes that may still come out
}

// inflaters holds the readers of package flate, of about 44 KB each. A connection
// has one only while it reads a compressed message.
var inflaters = sync.Pool{New: func() any { return new(inflated) }}

// inflate reads a compressed message, whose first frame has header h. When buf is full, an empty
// read shows whether there is more, so that a message may fill it completely.
func (c *WebSocket) inflate(buf []byte, h header) ([]byte, error) {
	m := inflaters.Get().(*inflated)
	defer m.end()
	m.room = c.limit
	m.payload = deflated{c: c, s: c.wire.stream, empty: true}
	m.payload.room = 2*min(int64(c.limit), math.MaxInt64/4) + 2*windowSize
	if err := m.payload.follow(h); err != nil {
		return nil, err
	}
	m.reset()
	for brim := cap(buf) == 0; ; {
		if brim {
			buf = roomFor(buf, min(512, c.limit+1-len(buf)), c.limit+1)
		}
		n, err := m.Read(buf[len(buf):cap(buf)])
		brim = n == 0 && len(buf) == cap(buf)
		buf = buf[:len(buf)+n]
		switch err {
		case nil:
		case io.EOF:
			return buf, nil
		default:
			return nil, err
		}
	}
}

// reset begins a new stream of blocks.
func (m *inflated) reset() {
	window := m.payload.s.inflate.window
	if m.flate == nil {
		m.flate = flate.NewReaderDict(&m.payload, window)
		return
	}
	_ = m.flate.(flate.Resetter).Reset(&m.payload, window) // is always nil
}

// end gives the reader back to the pool.
func (m *inflated) end() {
	m.payload = deflated{}
	inflaters.Put(m)
}

// Read implements [io.Reader]. It returns io.EOF at the end of the message.
func (m *inflated) Read(p []byte) (int, error) {
	for {
		n, err := m.flate.Read(p[:min(len(p), m.room+1)])
		m.payload.s.inflate.remember(p[:n])
		if m.room -= n; m.room < 0 {
			return n, m.payload.c.tooBig()
		}
		if err == nil {
			return n, nil
		}
		if again, err := m.payload.ended(err); !again {
			return n, err
		}
		m.reset()
		if n > 0 {
			return n, nil
		}
	}
}

// deflated is the payload of a compressed message, as package flate reads it.
//
// The message must end where its last block does. The sender has left out deflateTail,
// which is the length of an empty stored block. So flate gets the tail only when it
// asks for such a length: it has read the header of the block byte by byte, and now asks
// for 4 bytes at once. If it asks for anything else, the message was cut short.
type deflated struct {
	c      *WebSocket
	s      *stream
	fin    bool  // the frame under way is the last
	room   int64 // bytes that may still come in: no sender needs so many for a message of the limit
	empty  bool  // nothing was read so far
	byByte bool  // the last read was of a byte
	whole  bool  // the message has ended as it should
	err    error // of the connection, or of the peer's frames
}

// deflateTail ends what a flush of DEFLATE has written. The sender of a message removes it (RFC 7692, section 7.2.1),
// and the receiver appends it before it decompresses the message (section 7.2.2).
const deflateTail = "\x00\x00\xff\xff"

var errCutShort = errors.New("a compressed message ends inside a block")

// more reports whether there are bytes to read, and waits for them.
func (d *deflated) more() bool {
	for d.s.left == 0 && !d.fin && d.err == nil {
		var h header
		if h, d.err = d.c.next(nil, true); d.err == nil {
			d.err = d.follow(h)
		}
	}
	for d.s.left > 0 && len(d.s.win) == 0 && d.err == nil {
		d.err = d.s.more(nil)
	}
	if d.err == io.EOF {
		d.err = io.ErrUnexpectedEOF
	}
	return d.s.left > 0 && d.err == nil
}

// follow begins the frame with header h.
func (d *deflated) follow(h header) error {
	d.fin = h.fin()
	if d.room -= h.length; d.room < 0 {
		return d.c.tooBig()
	}
	return nil
}

func (d *deflated) ReadByte() (byte, error) {
	if (d.s.left == 0 || len(d.s.win) == 0) && !d.more() {
		return 0, d.last()
	}
	b := d.s.win[0]
	d.s.consume(1)
	d.s.left--
	d.empty, d.byByte = false, true
	return b, nil
}

func (d *deflated) Read(p []byte) (n int, err error) {
	switch {
	case d.more():
		n = copy(p, d.s.win[:min(d.s.left, len(d.s.win))])
		d.s.consume(n)
		d.s.left -= n
	case d.err == nil && d.byByte && len(p) == len(deflateTail):
		n, d.whole = copy(p, deflateTail), true
	default:
		err = d.last()
	}
	d.empty, d.byByte = false, false
	return n, err
}

// last returns the error behind the last byte.
func (d *deflated) last() error {
	switch {
	case d.err != nil:
		return d.err
	case d.whole || d.empty: // a message without a payload is empty
		d.whole = true
		return io.EOF
	}
	return errCutShort
}

// ended returns what err of flate means: io.EOF at the end of the message. Behind a
// final block (RFC 7692, 7.2.3.4) there may be others, which begin again.
func (d *deflated) ended(err error) (again bool, _ error) {
	switch {
	case d.err != nil:
		return false, d.err
	case d.whole:
		return false, io.EOF
	case err != io.EOF:
		return false, d.c.refuse(&ProtocolError{Err: err, code: codeBadData})
	case d.more():
		return true, nil
	case d.err != nil:
		return false, d.err
	}
	return false, io.EOF
}
