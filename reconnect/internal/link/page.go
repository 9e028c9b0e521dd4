package link

import (
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/chunk"
)

// Page is memory for one message of a link at a time. The memory and the paused mark of the link are kept
// until the connection is about to block, if it announces that, so that messages already received cost
// no memory and no mark.
type Page struct {
	link   *Link
	chunk  *chunk.Chunk
	last   int32 // size of the message before, or chunk.Largest if that is less
	begun  bool  // a message is being read into the chunk
	waits  bool  // the connection calls rest before it waits
	buffer func(size int) []byte
}

// NewPage returns a page without memory. The caller calls Free in the end.
func NewPage(l *Link) *Page {
	p := &Page{link: l}
	p.buffer = p.room
	p.waits = l.Transport != nil && l.Transport.BeforeBlock(p.rest)
	return p
}

// Read returns the next message, which is valid until Done.
func (p *Page) Read() (conn.Message, error) { return p.link.Read(p.buffer) }

// room returns memory for a message of that size. Size 0 means that the size is not
// known, so that the message is expected to be as large as the one before; -1 asks for
// little room.
func (p *Page) room(size int) []byte {
	p.begun = true
	if size == 0 {
		size = int(p.last)
	}
	if p.chunk != nil && p.chunk.Size() < size {
		p.Free()
	}
	if p.chunk == nil {
		if p.chunk = chunk.New(size); p.chunk == nil {
			return nil
		}
	}
	return p.chunk.Room()
}

// Done notes that nobody needs m any more, and that reading goes on.
func (p *Page) Done(m conn.Message) {
	p.last, p.begun = int32(min(len(m.Data), chunk.Largest)), false
	if !p.waits {
		p.rest()
	}
}

// rest prepares for a wait.
func (p *Page) rest() {
	p.link.Unpause()
	if !p.begun && p.link.Transport != nil {
		p.Free()
	}
}

// Free gives the memory back.
func (p *Page) Free() {
	if p.chunk != nil {
		p.chunk.Free()
		p.chunk = nil
	}
}
