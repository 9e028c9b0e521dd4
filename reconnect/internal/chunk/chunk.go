// Package chunk has the memory for messages that wait to be read. All connections share the memory
// that is free.
package chunk

import (
	"slices"
	"sync"
)

// Chunk is memory for messages, one behind the other.
type Chunk struct {
	Unread int // messages in it that nobody has read; for its user

	buf []byte // its length is how much is in use
}

// sizes are the sizes of chunks.
var sizes = [...]int{2 << 10, 8 << 10, 64 << 10}

// Largest is the size of the largest chunk.
const Largest = 64 << 10

var free [len(sizes)]sync.Pool

// New returns an empty chunk with room for size bytes, or nil if that is more than the
// largest chunk has.
func New(size int) *Chunk {
	for i, most := range sizes {
		if size > most {
			continue
		}
		if c, ok := free[i].Get().(*Chunk); ok {
			return c
		}
		return &Chunk{buf: make([]byte, 0, most)}
	}
	return nil
}

// Free gives the chunk back. It must be empty, and nobody may use it any more.
func (c *Chunk) Free() {
	c.buf = c.buf[:0]
	i := slices.Index(sizes[:], cap(c.buf))
	free[i].Put(c)
}

// Room returns the part that is not in use, with length 0.
func (c *Chunk) Room() []byte { return c.buf[len(c.buf):] }

// Take marks data, which was written to Room, as in use.
func (c *Chunk) Take(data []byte) { c.buf = c.buf[:len(c.buf)+len(data)] }

// Holds reports whether data lies at the start of Room.
func (c *Chunk) Holds(data []byte) bool {
	return len(data) > 0 && len(c.buf) < cap(c.buf) && &data[0] == &c.buf[:len(c.buf)+1][len(c.buf)]
}

// Size returns how many bytes the chunk has, those in use included.
func (c *Chunk) Size() int { return cap(c.buf) }
