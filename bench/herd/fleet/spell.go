package fleet

import (
	"fmt"
	"time"
)

// Spell is a stretch of time in which dials meet the same. An outage is one spell, or
// several in a row; after the last the server is there for good.
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

// What a dial can meet.
const (
	Refused     Down = iota // the process is dead: refused at once
	Silent                  // the host is gone: no SYN is answered
	Stopped                 // the process hangs (SIGSTOP): the kernel lets dials into the queue, and it is worked off afterwards
	Swallowed               // a balancer accepts the connection, and it is never answered, not even afterwards
	Unavailable             // a balancer answers 503, with the server's Retry-After
	Up                      // the server is there: it serves
)

var (
	losses = [...]string{"reset", "1012", "1013"}
	downs  = [...]string{"refused", "silent", "stopped", "swallowed", "503", "up"}
)

// String returns the name that ParseLoss knows.
func (l Loss) String() string { return name(losses[:], int(l)) }

// String returns the name that ParseDown knows.
func (d Down) String() string { return name(downs[:], int(d)) }

// ParseLoss is the inverse of String.
func ParseLoss(s string) (Loss, error) {
	n, err := number("loss", losses[:], s)
	return Loss(n), err
}

// ParseDown is the inverse of String.
func ParseDown(s string) (Down, error) {
	n, err := number("outage", downs[:], s)
	return Down(n), err
}

func name(names []string, n int) string {
	if n < len(names) {
		return names[n]
	}
	return fmt.Sprintf("kind %d", n)
}

func number(what string, names []string, s string) (int, error) {
	for n, name := range names {
		if s == name {
			return n, nil
		}
	}
	return 0, fmt.Errorf("fleet: unknown %s %q, not one of %q", what, s, names)
}
