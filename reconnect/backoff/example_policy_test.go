package backoff_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Without jitter the waits double up to the cap; with it, which is the default, each is
// drawn from between 0 and that.
func ExampleExponential() {
	plain := &backoff.Exponential{Base: 500 * time.Millisecond, Cap: 3 * time.Second, Jitter: backoff.JitterNone}
	full := &backoff.Exponential{Base: 500 * time.Millisecond, Cap: 3 * time.Second}
	r := rand.New(rand.NewPCG(1, 2)) // the same draws each time; a program takes backoff.Rand()
	for n := range 5 {
		delay, _ := plain.Next(backoff.History{N: n}, r)
		wait, _ := full.Next(backoff.History{N: n}, r)
		fmt.Println(delay.Wait, wait.Wait <= delay.Wait)
	}
	// Output:
	// 500ms true
	// 1s true
	// 2s true
	// 3s true
	// 3s true
}

// The default policy with other numbers, for a client that may come back more slowly. Its
// waits grow with the time that the outage has lasted, not with the number of tries.
func ExampleAdaptive() {
	policy := &backoff.Adaptive{Spread: 10 * time.Second, Cap: time.Minute} // default: 2 s, 10 s
	r := rand.New(rand.NewPCG(1, 2))                                        // the same draws each time; a program takes backoff.Rand()
	for _, a := range []backoff.History{
		{},
		{N: 1, Elapsed: 10 * time.Second},
		{N: 2, Elapsed: time.Minute},
		{N: 3, Elapsed: time.Hour},
	} {
		step, _ := policy.Next(a, r)
		fmt.Printf("after %v: %v\n", a.Elapsed, step.Wait.Round(time.Second))
	}
	// Output:
	// after 0s: 8s
	// after 10s: 4s
	// after 1m0s: 19s
	// after 1h0m0s: 45s
}

// Limit ends a policy, here after two waits or when a wait would end later than a minute
// after the loss.
func ExampleLimit() {
	policy := backoff.Limit(&backoff.Exponential{}, 2, time.Minute)
	for n := range 3 {
		_, ok := policy.Next(backoff.History{N: n}, backoff.Rand())
		fmt.Println(ok)
	}
	_, ok := policy.Next(backoff.History{N: 1, Elapsed: time.Minute}, backoff.Rand())
	fmt.Println(ok)
	// Output:
	// true
	// true
	// false
	// false
}

// This prints the waits of a charging station: two doublings, and then the same wait again.
func ExampleOCPP() {
	policy := &backoff.OCPP{WaitMinimum: 5 * time.Second, RepeatTimes: 2, RandomRange: 2 * time.Second}
	r := rand.New(rand.NewPCG(1, 2)) // the same draws each time; a program takes backoff.Rand()
	for a := (backoff.History{}); a.N < 5; a.N++ {
		step, _ := policy.Next(a, r)
		fmt.Print(step.Wait.Round(100*time.Millisecond), " ")
		a.Prev = step.Wait
	}
	// Output: 6.5s 14.3s 30.2s 30.2s 30.2s
}
