package drain

import (
	"fmt"
	"time"
)

// Stats are the numbers of a [Group]: Members and Hung as they are now, the others since the
// beginning.
type Stats struct {
	Members int // connections in the Group, including connections that are being closed
	Hung    int // closers and notices that have run for longer than CloseTimeout, and still run

	Added   int // connections that were added
	Left    int // connections that were removed before the Group closed them
	Noticed int // notices that were called
	Closed  int // closers that have returned nil
	Failed  int // closers that have returned an error: most often the connection had just ended
	Renewed int // closes, of Closed and Failed, because of MaxAge
	Hurried int // closes, of Closed and Failed, because the context of Drain had ended
	Refused int // requests that Handler has refused
}

// count counts a closer that has returned err.
func (s *Stats) count(cause Cause, err error) {
	if err != nil {
		s.Failed++
	} else {
		s.Closed++
	}
	switch cause {
	case CauseAge:
		s.Renewed++
	case CauseHurry:
		s.Hurried++
	}
}

// Cause says why the Group has closed a connection.
type Cause uint8

// The causes.
const (
	CauseDrain Cause = iota // the moment of the connection in the window of a drain has come
	CauseAge                // the connection has reached its MaxAge
	CauseHurry              // the context of Drain has ended
)

// String returns "drain", "age" or "hurry".
func (c Cause) String() string {
	if names := [...]string{"drain", "age", "hurry"}; int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("cause %d", c)
}

// Trace has a hook that observes a [Group]. No lock is held while the hook runs, and its result
// decides nothing.
type Trace struct {
	// CloseDone reports that a closer has returned. CloseDone runs in the goroutine of the closer,
	// and many goroutines may call it at once. Nil: none.
	CloseDone func(CloseDone)
}

// CloseDone is the event of [Trace.CloseDone].
type CloseDone struct {
	Cause Cause         // why the connection was closed
	Took  time.Duration // how long the closer ran
	Err   error         // the error that the closer has returned
}
