//go:build !js

package conn

import (
	"bytes"
	"compress/flate"
	"io"
	"sync"
)

// deflaters holds the writers of package flate, of about 1.2 MB each.
var deflaters = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is right
	return w
}}

var deflatedBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// least is the size of the smallest message that is compressed.
func (c *compression) least() int {
	if c.keeps {
		return 128
	}
	return 512
}

// deflate compresses a message into buf (RFC 7692, section 7.2.1).
func (c *compression) deflate(buf *bytes.Buffer, data []byte) []byte {
	buf.Reset()
	c.out.Writer = buf
	w := c.writer
	if w == nil {
		w = deflaters.Get().(*flate.Writer)
		w.Reset(&c.out)
	}
	_, _ = w.Write(data) // never fails, as buf does not
	_ = w.Flush()
	c.out.Writer = nil // buf goes back to its pool
	if c.keeps {
		c.writer = w
	} else {
		w.Reset(io.Discard)
		deflaters.Put(w)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte(deflateTail))
}

// deflate adds messages, compressed if they are large enough. A compressed message that is larger
// than a fragment is divided like any other.
func (c *WebSocket) deflate(ms []Message, spans *[batch]span) (n int, err error) {
	s := c.wire.stream
	buf := deflatedBuffers.Get().(*bytes.Buffer)
	defer func() {
		if buf.Cap() <= maxFrame {
			deflatedBuffers.Put(buf)
		}
	}()
	for n < min(len(ms), batch) && goesAlong(spans[:n], ms[n]) && err == nil {
		if err := checkType(ms[n]); err != nil {
			return n, err
		}
		first, data := byte(ms[n].Type), ms[n].Data
		if len(data) >= s.inflate.least() {
			first, data = first|bitRSV1, s.inflate.deflate(buf, data)
		}
		err = c.divide(first, data)
		spans[n] = s.out.next()
		n++
	}
	return n, err
}
