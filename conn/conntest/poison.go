package conntest

import (
	"github.com/redial-go/redial/conn"
)

// Poison returns a connection that shows when a reader keeps the data of a message for
// too long. Before it reads, it fills the whole capacity of the buffer given to Read
// with 0xDB, so that data of an earlier message turns into these bytes at once. The
// connection has the abilities of c that [FakeOptions] names.
func Poison(c conn.Conn) conn.Conn { return abilitiesOf(c).addTo(poisoned{c}) }

type poisoned struct{ conn.Conn }

func (p poisoned) Read(buf []byte) (conn.Message, error) {
	whole := buf[:cap(buf)]
	for i := range whole {
		whole[i] = 0xDB
	}
	return p.Conn.Read(buf)
}
