package conntest

import (
	"github.com/redial-go/redial/conn"
)

// Poison returns a connection that exposes readers that keep data for too long: before it reads, it
// fills the buffer passed to Read, or returned to ReadBuffer, up to its capacity with 0xDB. The
// connection is a [conn.Transport] and a [conn.Pinger] if c is.
func Poison(c conn.Conn) conn.Conn {
	t, _ := c.(conn.Transport)
	p, _ := c.(conn.Pinger)
	if t != nil {
		t = poisonedTransport{t}
	}
	return withAbilities(poisoned{c}, t, p)
}

type poisoned struct{ conn.Conn }

func (p poisoned) Read(buf []byte) (conn.Message, error) { return p.Conn.Read(poison(buf)) }

type poisonedTransport struct{ conn.Transport }

func (p poisonedTransport) ReadBuffer(buffer func(size int) []byte) (conn.Message, error) {
	return p.Transport.ReadBuffer(func(size int) []byte { return poison(buffer(size)) })
}

// poison fills buf up to its capacity, and returns it.
func poison(buf []byte) []byte {
	whole := buf[:cap(buf)]
	for i := range whole {
		whole[i] = 0xDB
	}
	return buf
}
