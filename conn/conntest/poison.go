package conntest

import (
	"context"

	"github.com/redial-go/redial/conn"
)

// Poisoned is the byte that [Poison] leaves in reused buffers.
const Poisoned byte = 0xDB

// Poison finds out who keeps a message longer than it is theirs: the connection
// that it returns fills the whole capacity of the buffer given to Read with
// [Poisoned] before it reads, so that what was kept of an earlier message turns
// into 0xDB bytes at once. It has the abilities of c that [FakeOptions] names.
func Poison(c conn.Conn) conn.Conn { return abilitiesOf(c).of(poisoned{c}) }

// DialFunc is a function that dials, as a dialer: *[Fake]s, a [Poison] around
// them, an error.
type DialFunc func(ctx context.Context) (conn.Conn, error)

// Dial calls f.
func (f DialFunc) Dial(ctx context.Context) (conn.Conn, error) { return f(ctx) }

// PoisonDialer returns a dialer whose connections are those of d under [Poison].
func PoisonDialer(d interface {
	Dial(ctx context.Context) (conn.Conn, error)
}) DialFunc {
	return func(ctx context.Context) (conn.Conn, error) {
		c, err := d.Dial(ctx)
		if err != nil {
			return nil, err
		}
		return Poison(c), nil
	}
}

type poisoned struct{ conn.Conn }

func (p poisoned) Read(buf []byte) (conn.Message, error) {
	whole := buf[:cap(buf)]
	for i := range whole {
		whole[i] = Poisoned
	}
	return p.Conn.Read(buf)
}
