package watch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
)

// Shared is what the watchers of all links of one Conn have in common: the options, and what they
// remember from one session to the next.
type Shared struct {
	Liveness  *LivenessOptions
	Stall     *StallOptions     // nil: no limit
	KeepAlive *KeepAliveOptions // nil: nothing is written
	Report    Report

	patience atomic.Uint32 // with a peer that is silent; 0 without a limit
	stalls   atomic.Int32  // sessions in a row without data
}

// LivenessOptions are those of reconnect.Liveness, with their defaults. Neither duration is negative.
type LivenessOptions struct {
	Limit      time.Duration // zero means no limit
	Probe      func(ctx context.Context, write func(conn.Message) error) error
	ProbeEvery time.Duration    // zero means no probes but those that Limit needs
	Now        func() time.Time // the wall clock
}

// StallOptions has the fields of reconnect.Stall.
type StallOptions struct {
	Limit    time.Duration
	Expected func(time.Time) bool
}

// KeepAliveOptions has the fields of reconnect.KeepAlive.
type KeepAliveOptions struct {
	Every   time.Duration
	Message func() conn.Message
}

// Report gets the events of the watchers.
type Report interface {
	ProbeStart(session uint64, silence time.Duration)
	ProbeDone(session uint64, took time.Duration, err error)
	SlowHandler(session uint64, function string, since time.Duration)
	Overdue(function string, since time.Duration)
	Await(done <-chan struct{}, function string) // waits for done, and reports that function is overdue if that takes long
}
