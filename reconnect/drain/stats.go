package drain

import (
	"fmt"
	"time"
)

// Stats are the numbers of a [Group]: Members and Hung as they are now, the others since the
// beginning.
type Stats struct {
	Members int // connections in the Group, with those that are being closed
	Hung    int // closers and notices that have run for longer than CloseTimeout, and still do

	Added   int // connections that were added
	Left    int // of these, those that were removed before they were closed
	Noticed int // notices that were called
	Closed  int // closers that have returned nil
	Failed  int // closers that have returned an error: most often the connection had just ended
	Renewed int // of Closed and Failed, those that were for MaxAge
	Hurried int // of Closed and Failed, those that began because the context of Drain had ended
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
	CauseDrain Cause = iota // its moment in the window of a drain had come
	CauseAge                // it had its MaxAge
	CauseHurry              // the context of Drain had ended
)

// String returns "drain", "age" or "hurry".
func (c Cause) String() string {
	if names := [...]string{"drain", "age", "hurry"}; int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("cause %d", c)
}

// Trace has hooks that observe a [Group]. Each field may be nil. They decide nothing, and no
// lock is held while one runs.
type Trace struct {
	// CloseDone reports that a closer has returned. It runs in the goroutine of the closer,
	// and many may run at once.
	CloseDone func(CloseDone)
}

// CloseDone is the event of [Trace.CloseDone].
type CloseDone struct {
	Cause Cause         // why the connection was closed
	Took  time.Duration // how long the closer ran
	Err   error         // what it has returned
}
