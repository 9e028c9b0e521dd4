package fleet

import (
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
)

// Spell is a stretch of an outage in which dials meet the same.
type Spell struct {
	Down   Down          // what dials meet; Up: they are served
	Length time.Duration // of the spell
	Spread time.Duration // added to it, a draw from [0, Spread) for each server
}

// Loss is how a session ends when the server goes.
type Loss uint8

// The ways to be lost.
const (
	Reset      Loss = iota // the connection breaks: verdict Retry
	CloseRetry             // close frame 1012 (service restart): Retry as well
	CloseLater             // close frame 1013 (try again later): Overload
)

// Down is what a dial meets while the server is away.
type Down uint8

// The kinds of Down.
const (
	Refused     Down = iota // the process is dead: refused at once
	Silent                  // the host is gone: no SYN is answered
	Stopped                 // the process hangs (SIGSTOP): the kernel lets dials into the queue, and it is worked off afterwards
	Swallowed               // a balancer accepts the connection, and it is never answered, not even afterwards
	Unavailable             // a balancer answers 503, with the server's Retry-After
	Denied                  // the server answers 401, at once
	Nameless                // its name does not exist
	Up                      // the server is there: it serves
)

var (
	losses = []string{"reset", "1012", "1013"}
	downs  = []string{"refused", "silent", "stopped", "swallowed", "503", "401", "no such host", "up"}
)

// Losses returns all ways to be lost.
func Losses() []Loss { return pick.Kinds[Loss](losses) }

// Downs returns all that a dial can meet.
func Downs() []Down { return pick.Kinds[Down](downs) }

// String returns a word for it, as tables show it.
func (l Loss) String() string { return pick.Kind(losses, l) }

// String returns a word for it, as tables show it.
func (d Down) String() string { return pick.Kind(downs, d) }
