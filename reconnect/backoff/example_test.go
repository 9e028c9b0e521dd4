package backoff_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

func ExamplePermanent() {
	err := retry.Do(context.Background(), nil, func(context.Context) error {
		return backoff.Permanent(errors.New("no such account"))
	})
	fmt.Println(err)
	// Output: no such account
}

// An account that is not paid for: the tries are soon minutes apart.
func ExampleSlow() {
	err := fmt.Errorf("login: %w", backoff.Slow(errors.New("account suspended")))
	fmt.Println(err)
	fmt.Println(backoff.Classify(err).Class)
	// Output:
	// login: account suspended
	// slow
}

// A token that expires: the try after its refusal brings a new one.
func ExampleRefresh() {
	login := func(token string) error {
		if token != "token 2" {
			return backoff.Refresh(fmt.Errorf("%s has expired", token))
		}
		return nil
	}
	token := "token 1"
	policy := &backoff.Exponential{Base: time.Millisecond}
	err := retry.Do(context.Background(), policy, func(ctx context.Context) error {
		if backoff.AttemptFrom(ctx).Refresh {
			token = "token 2"
		}
		return login(token)
	})
	fmt.Println(token, err)
	// Output: token 2 <nil>
}

func ExampleClassify() {
	refused := backoff.RetryAfter(errors.New("come back later"), 7*time.Second)
	v := backoff.Classify(fmt.Errorf("dial: %w", refused))
	fmt.Println(v.Class, v.RetryAfter)
	v = backoff.Classify(context.DeadlineExceeded)
	fmt.Println(v.Class, v.RetryAfter)
	// Output:
	// retry 7s
	// overload 0s
}

// A policy for a trading bot that is alone: at once, then every half second or
// so, and never for longer than ten seconds in all.
func ExampleFirst() {
	policy := backoff.Limit(
		backoff.First(0, &backoff.Exponential{Base: 500 * time.Millisecond, Factor: 1, Jitter: backoff.JitterProportional}),
		0, 10*time.Second)
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 3 {
		step, ok := policy.Next(backoff.History{N: n}, r)
		fmt.Println(step.Wait.Round(time.Millisecond), ok)
	}
	_, ok := policy.Next(backoff.History{N: 3, Elapsed: 10 * time.Second}, r)
	fmt.Println(ok)
	// Output:
	// 0s true
	// 554ms true
	// 523ms true
	// false
}

func ExampleParseRetryAfter() {
	now := time.Date(1994, time.November, 6, 8, 49, 30, 0, time.UTC)
	for _, value := range []string{"7", "Sun, 06 Nov 1994 08:49:37 GMT", "784111777", "soon"} {
		fmt.Println(backoff.ParseRetryAfter(value, now))
	}
	// Output:
	// 7s true
	// 7s true
	// 7s true
	// 0s false
}

// A try is given twice the time after each overload, because a client that gives up a
// handshake which waits in a server's queue makes the server work for nothing.
func ExampleWithTimeouts() {
	policy := backoff.WithTimeouts(nil, backoff.Timeout{}, backoff.Timeout{Base: 20 * time.Second, Cap: time.Minute})
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
		attempt := backoff.AttemptFrom(ctx)
		fmt.Println("attempt", attempt.Number, "may take", attempt.Connect, "to connect")
		// ... connect, and then:
		if attempt.Connected != nil {
			attempt.Connected()
		}
		// ... the handshake, which ends when ctx does
		return nil
	}
	ctx := backoff.WithAttempt(context.Background(), backoff.Attempt{ // as the supervisor does
		Number: 1, Connect: 16 * time.Second, Connected: func() { fmt.Println("connected") },
	})
	fmt.Println(dial(ctx))
	// Output:
	// attempt 1 may take 16s to connect
	// connected
	// <nil>
}
