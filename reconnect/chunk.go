package reconnect

import (
	"slices"
	"sync"
)

// chunk is memory for messages that wait to be read, one behind the other.
type chunk struct {
	buf    []byte // its length is how much is in use
	unread int    // messages in it
}

// chunkSizes are the sizes of chunks. All connections share the chunks that are empty.
var chunkSizes = [...]int{2 << 10, 8 << 10, 64 << 10}

const largestChunk = 64 << 10

var chunks [len(chunkSizes)]sync.Pool

// newChunk returns an empty chunk with room for size bytes, or nil if that is more than the
// largest chunk has.
func newChunk(size int) *chunk {
	for i, most := range chunkSizes {
		if size > most {
			continue
		}
		if c, ok := chunks[i].Get().(*chunk); ok {
			return c
		}
		return &chunk{buf: make([]byte, 0, most)}
	}
	return nil
}

// free gives the chunk back. It must be empty.
func (c *chunk) free() {
	c.buf = c.buf[:0]
	i := slices.Index(chunkSizes[:], cap(c.buf))
	chunks[i].Put(c)
}

// room returns the part that is not in use, with length 0.
func (c *chunk) room() []byte { return c.buf[len(c.buf):] }

// take marks data, which was written to room, as in use.
func (c *chunk) take(data []byte) { c.buf = c.buf[:len(c.buf)+len(data)] }

// holds reports whether data lies at the start of room.
func (c *chunk) holds(data []byte) bool {
	return len(data) > 0 && len(c.buf) < cap(c.buf) && &data[0] == &c.buf[:len(c.buf)+1][len(c.buf)]
}
