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

// least is the size of the smallest message that is compressed.
func (c *compression) least() int {
	if c.keeps {
		return 128
	}
	return 512
}

// deflate returns data compressed (RFC 7692, section 7.2.1), in the memory of buf if it has room.
func (c *compression) deflate(buf, data []byte) []byte {
	c.out.buf = buf[:0]
	w := c.writer
	if w == nil {
		w = deflaters.Get().(*flate.Writer)
		w.Reset(&c.out)
	}
	_, _ = w.Write(data) // never fails, as out does not
	_ = w.Flush()
	buf, c.out.buf = c.out.buf, nil // buf goes back to its pool
	if c.keeps {
		c.writer = w
	} else {
		w.Reset(io.Discard)
		deflaters.Put(w)
	}
	return bytes.TrimSuffix(buf, []byte(deflateTail))
}
