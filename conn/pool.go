package conn

import "sync"

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
