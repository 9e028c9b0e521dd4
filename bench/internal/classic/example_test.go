package classic_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/reconnect/backoff"
)

// This prints the waits of connect_retry. Give the policy to retry.Do to use it for
// any operation.
func ExampleConnectRetry() {
	var policy backoff.Policy = &classic.ConnectRetry{}
	for n := 0; ; n++ {
		step, ok := policy.Next(backoff.History{N: n}, backoff.Rand())
		if !ok {
			break
		}
		fmt.Print(step.Wait, " ")
	}
	// Output: 1s 2s 4s 8s 16s 32s 1m4s
}

// Paced draws its waits as Adaptive does, and leaves the limits on a try to a WithTimeouts
// around it.
func ExamplePaced() {
	policy := backoff.WithTimeouts(&classic.Paced{Cap: 20 * time.Second},
		backoff.Timeout{Base: 5 * time.Second},  // to connect
		backoff.Timeout{Base: 10 * time.Second}) // for the handshake
	r := rand.New(rand.NewPCG(1, 2)) // the same draws each time; a program takes backoff.Rand()
	step, _ := policy.Next(backoff.History{N: 5, Elapsed: time.Hour}, r)
	fmt.Println(step.Wait.Round(time.Second), step.Connect, step.Handshake)
	// Output: 18s 5s 10s
}

// Decorrelated jitter and normally distributed noise go by the wait before.
func ExampleDecorrelated() {
	r := rand.New(rand.NewPCG(1, 2)) // the same draws each time; a program takes backoff.Rand()
	for _, policy := range []backoff.Policy{&classic.Decorrelated{NoAtom: true}, &classic.Normal{Min: time.Second}} {
		var a backoff.History
		for range 3 {
			step, _ := policy.Next(a, r)
			fmt.Println(step.Wait.Round(time.Millisecond))
			a.N, a.Prev = a.N+1, step.Wait
		}
	}
	// Output:
	// 2.539s
	// 5.078s
	// 12.167s
	// 1s
	// 1.775s
	// 3.408s
}
