package conn

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Write implements [Conn]. If the message is larger than 64 KiB, the Framer allocates a copy. A
// frame of up to 32 KiB is one Write of the net.Conn, and a larger one is a Write for each 32 KiB. If
// a part after the first has to wait for the network and is then taken, that counts as a sign of life
// for Silence.
//
// The error is [ErrNotWritten] if the net.Conn reports that it has written nothing, over TLS too,
// because the peer cannot decrypt a partial record. After this error too the connection is closed.
func (c *Framed) Write(m Message) error {
	_, err := c.WriteBatch([]Message{m})
	return err
}

// WriteBatch implements [Transport]: up to 64 messages, or up to 32 KiB and the message that
// reaches this size, are written together.
func (c *Framed) WriteBatch(ms []Message) (n int, err error) {
	for n < len(ms) && err == nil {
		var some int
		some, err = c.writeSome(ms[n:])
		n += some
	}
	return n, err
}

// writeSome writes at least the first of ms, and as many after it as go with it.
func (c *Framed) writeSome(ms []Message) (n int, err error) {
	if cause := c.wire.ended(); cause != nil {
		return 0, notWritten(cause)
	}
	buf := frames.Get().(*[]byte)
	defer recycle(buf)
	out, ends := *buf, [batch]int{} // frames, and where each ends
	for n < min(len(ms), batch) && len(out) < fragment && (n == 0 || len(ms[n].Data) < fragment) {
		var frame []byte // in place, unless there is no room for it, or the Framer is careless
		if frame, err = c.framer.AppendFrame(out[len(out):], ms[n].Data); err != nil {
			if !errors.Is(err, ErrBadMessage) {
				err = fmt.Errorf("%w: %w", ErrBadMessage, err)
			}
			err = notWritten(err)
			break
		}
		if n == 0 && len(frame) > maxFrame {
			out = frame
		} else {
			out = append(out, frame...)
			*buf = out
		}
		ends[n] = len(out)
		n++
	}
	if n == 0 {
		return 0, err
	}
	c.wire.writing.begin(c.wire)
	c.writeSlot <- struct{}{}
	took, failed := c.write(out)
	<-c.writeSlot
	c.wire.writing.end()
	if failed != nil {
		return handed(ends[:n], took, failed)
	}
	return n, err
}

// handed returns how many frames were written whole when the net.Conn failed with cause
// after took bytes, and the error of the next frame. The last frame never counts as
// written, because of the error.
func handed(ends []int, took int, cause error) (n int, err error) {
	begin := 0
	for n < len(ends)-1 && ends[n] <= took {
		begin = ends[n]
		n++
	}
	if took <= begin {
		return n, notWritten(cause)
	}
	return n, &lostError{"write", cause}
}

// write writes frames, in parts that have a WriteTimeout each, and returns how many bytes of them were taken. It is our
// turn.
func (c *Framed) write(out []byte) (took int, err error) {
	if cause := c.wire.ended(); cause != nil {
		return 0, cause
	}
	for took < len(out) && err == nil {
		var since time.Duration
		if took > 0 {
			c.wire.writing.progress()
			since = clock()
		}
		var n int
		n, err = c.nc.Write(out[took:min(took+fragment, len(out))])
		if took > 0 && err == nil && clock()-since >= time.Millisecond {
			c.wire.noteLife()
		}
		took += n
	}
	if err != nil {
		err = c.wire.end(err)
		c.wire.Cut()
	}
	return took, err
}

// frames holds buffers of up to maxFrame bytes for what is written. A connection
// has one only while it writes.
var frames = sync.Pool{New: func() any { return new([]byte) }}

const maxFrame = 64 << 10

// recycle gives a buffer of frames back, unless it has become too large to keep.
func recycle(buf *[]byte) {
	if cap(*buf) > maxFrame {
		*buf = nil
	}
	*buf = (*buf)[:0]
	frames.Put(buf)
}
