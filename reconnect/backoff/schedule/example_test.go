package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/schedule"
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

// A try is given twice the time after each overload, because a client that gives up a
// handshake which waits in a server's queue makes the server work in vain.
func ExampleWithTimeouts() {
	policy := schedule.WithTimeouts(nil, schedule.Timeout{}, schedule.Timeout{Base: 20 * time.Second, Cap: time.Minute})
	for overloads := range 3 {
		step, _ := policy.Next(backoff.History{N: overloads, Overloads: overloads}, backoff.Rand())
		fmt.Println(step.Handshake)
	}
	// Output:
	// 20s
	// 40s
	// 1m0s
}

// A dialer of one's own tells its supervisor when it is connected. From then on a handshake
// that is not answered may be kept, while another dial begins beside it.
func ExampleAttempt() {
	dial := func(ctx context.Context) error {
		attempt := schedule.AttemptFrom(ctx)
		fmt.Println("attempt", attempt.Number, "may take", attempt.Connect, "to connect")
		// ... connect, and then:
		if attempt.Connected != nil {
			attempt.Connected()
		}
		// ... the handshake, which ends when ctx does
		return nil
	}
	ctx := schedule.WithAttempt(context.Background(), schedule.Attempt{ // as the supervisor does
		Number: 1, Connect: 16 * time.Second, Connected: func() { fmt.Println("connected") },
	})
	fmt.Println(dial(ctx))
	// Output:
	// attempt 1 may take 16s to connect
	// connected
	// <nil>
}
