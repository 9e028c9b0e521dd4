package reconnect

import (
	"slices"
	"sync"
)

// chunk is memory for messages that wait to be read, one behind the other.
type chunk struct {
	buf    []byte // its length is what is in use
	unread int    // messages in it
}

// chunkSizes are the sizes of chunks. All connections share those that nothing lies
// in.
var chunkSizes = [...]int{2 << 10, 8 << 10, 64 << 10}

const largestChunk = 64 << 10

var chunks [len(chunkSizes)]sync.Pool

// newChunk returns an empty chunk with room for size bytes, nil if that is more than
// the largest has.
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

// free gives the chunk back. There must be no message in it.
func (c *chunk) free() {
	c.buf = c.buf[:0]
	i := slices.Index(chunkSizes[:], cap(c.buf))
	chunks[i].Put(c)
}

// room returns what is not in use, without length.
func (c *chunk) room() []byte { return c.buf[len(c.buf):] }

// take takes data, which was written to room, into use.
func (c *chunk) take(data []byte) { c.buf = c.buf[:len(c.buf)+len(data)] }

// holds reports whether data was written to room.
func (c *chunk) holds(data []byte) bool {
	return len(data) > 0 && len(c.buf) < cap(c.buf) && &data[0] == &c.buf[:len(c.buf)+1][len(c.buf)]
}
