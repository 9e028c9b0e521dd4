package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Dials decides when a connection is dialed: here again after a refusal, and then beside a
// handshake that is not answered. The clock is the example's.
func ExampleDials() {
	d := schedule.NewDials(nil, nil)
	now := time.Now()
	d.Start(now)

	action := d.Next(now)
	fmt.Println(action.Do == schedule.DoDial, "dial", action.Which)
	d.Failed(action.Which, backoff.Verdict{Class: backoff.ClassRetry, Refused: true}, now)

	now = d.Due() // the wait is over
	action = d.Next(now)
	fmt.Println(action.Do == schedule.DoDial, "dial", action.Which)
	d.Connected(action.Which, now)

	now = now.Add(time.Minute) // the handshake hangs
	action = d.Next(now)
	fmt.Println(action.Do == schedule.DoKeep, "dial", action.Which)
	action = d.Next(now)
	fmt.Println(action.Do == schedule.DoDial, "dial", action.Which)
	d.Connected(action.Which, now)

	d.Answered(action.Which, now) // the second is answered, so that the first is cut
	action = d.Next(now)
	fmt.Println(action.Do == schedule.DoCut, "dial", action.Which)
	// Output:
	// true dial 0
	// true dial 0
	// true dial 0
	// true dial 1
	// true dial 0
}

// What a supervisor does, without the waiting.
func ExampleOutage() {
	var outage schedule.Outage
	policy := &backoff.Exponential{Jitter: backoff.JitterNone}
	lost := time.Now()
	outage.Begin(lost)
	for _, err := range []error{errors.New("EOF"), context.DeadlineExceeded, backoff.Permanent(errors.New("banned"))} {
		step, ok := outage.Next(policy, backoff.Classify(err), lost, backoff.Rand())
		fmt.Println(outage.History().Verdict.Class, step.Wait, ok)
	}
	// Output:
	// retry 1s true
	// overload 2s true
	// stop 0s false
}
