//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect"
)

// plan says what call is to be held.
type plan struct {
	length  time.Duration // of the call
	life    time.Duration // of a connection, at the service
	warn    time.Duration // how long before its end the service says so
	rotate  bool          // the caller heeds that
	overlap overlap
	rand    rand.Source // nil: a random one
}

func (p *plan) validate() error {
	switch {
	case p.length < every:
		return fmt.Errorf("-for must be at least %v, which is a frame, not %v", every, p.length)
	case p.warn <= 0:
		return fmt.Errorf("-warn must be above 0, not %v", p.warn)
	case p.life <= p.warn:
		return fmt.Errorf("-life must be longer than -warn: it is %v, and -warn is %v", p.life, p.warn)
	}
	return nil
}

// endLimit is how long the last frames may take.
const endLimit = 10 * time.Second

// hold holds the call, and prints what happens.
func (p *plan) hold(ctx context.Context, d reconnect.Dialer, s *service, out io.Writer) (*report, error) {
	limit := fmt.Errorf("the call was not over %v after its end", endLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, p.length+endLimit, limit)
	defer cancel()
	r := &report{journal: newJournal(out)}
	c, err := newCaller(d, p, r.journal)
	if err != nil {
		return nil, err
	}
	spoken := make(chan error, 1)
	go func() { // <-spoken waits for it
		spoken <- c.speak(ctx, int(p.length/every))
	}()
	err = c.listen(ctx)
	if err != nil {
		cancel() // because there is nobody to speak to
	}
	if failed := <-spoken; err == nil {
		err = failed
	}
	leave, left := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer left()
	c.line.Shutdown(leave) // its error is that the service has not answered in time
	call, stats := s.first(), c.line.Stats()
	r.rotations, r.failed = stats.Rotations, stats.RotationsFailed
	r.toService, r.toCaller = counted{&c.said, &call.heard}, counted{&call.said, &c.heard}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	r.err = err
	return r, nil
}

// overlap is the flag for a [reconnect.Overlap].
type overlap reconnect.Overlap

const overlapHold = overlap(reconnect.OverlapHold)

var overlaps = map[string]overlap{
	"hold": overlapHold, "mix": overlap(reconnect.OverlapMix), "break": overlap(reconnect.OverlapBreakFirst),
}

// MarshalText returns the word for o.
func (o overlap) MarshalText() ([]byte, error) {
	for name, value := range overlaps {
		if value == o {
			return []byte(name), nil
		}
	}
	return nil, fmt.Errorf("there is no overlap %d", o)
}

// UnmarshalText sets o to what the word means.
func (o *overlap) UnmarshalText(text []byte) error {
	value, ok := overlaps[string(text)]
	if !ok {
		return errors.New("must be hold, mix or break")
	}
	*o = value
	return nil
}
