package reconnect

import "github.com/redial-go/redial/conn"

// page is memory for one message of a link at a time. If the connection announces when it
// waits, the memory is kept until then, and so is the note that nobody reads: what is at hand
// meanwhile costs neither.
type page struct {
	link   *link
	chunk  *chunk
	last   int  // size of the message before
	begun  bool // a message is being read into the chunk
	waits  bool // the connection calls rest before it waits
	buffer func(size int) []byte
}

func newPage(l *link) *page {
	p := &page{link: l}
	p.buffer = p.room
	w, ok := l.conn.(conn.BlockNotifier)
	p.waits = ok && w.BeforeBlock(p.rest)
	return p
}

// read returns the next message, which is valid until done.
func (p *page) read() (conn.Message, error) { return p.link.read(p.buffer) }

// room returns memory for a message of that size. Size 0 means that the size is not
// known, so that the message is expected to be as large as the one before; -1 asks for
// little room.
func (p *page) room(size int) []byte {
	p.begun = true
	if size == 0 {
		size = min(p.last, largestChunk)
	}
	if p.chunk != nil && cap(p.chunk.buf) < size {
		p.free()
	}
	if p.chunk == nil {
		if p.chunk = newChunk(size); p.chunk == nil {
			return nil
		}
	}
	return p.chunk.room()
}

// done notes that nobody needs m any more, and that reading goes on.
func (p *page) done(m conn.Message) {
	p.last, p.begun = len(m.Data), false
	if !p.waits {
		p.rest()
	}
}

// rest prepares for a wait.
func (p *page) rest() {
	p.link.unpause()
	if !p.begun && p.link.late != nil {
		p.free()
	}
}

func (p *page) free() {
	if p.chunk != nil {
		p.chunk.free()
		p.chunk = nil
	}
}
