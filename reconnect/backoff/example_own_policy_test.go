package backoff_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// fibonacci is a Policy of your own. It has no state, because what varies is in the History.
type fibonacci struct{ unit time.Duration }

func (f fibonacci) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	low, high := f.unit, 2*f.unit
	for range min(a.N, 8) {
		low, high = high, low+high
	}
	return backoff.Step{Wait: backoff.Uniform(r, low, high)}, true // jittered, so that a herd does not stay in step
}

// A Policy returns the next wait for what has happened so far.
func ExamplePolicy() {
	policy := backoff.Limit(fibonacci{unit: time.Second}, 10, 0)
	r := rand.New(rand.NewPCG(1, 2)) // the same draws each time; a program takes backoff.Rand()
	for _, n := range []int{0, 1, 2, 3, 10} {
		step, ok := policy.Next(backoff.History{N: n}, r)
		fmt.Println(step.Wait.Round(100*time.Millisecond), ok)
	}
	// Output:
	// 1.8s true
	// 2.6s true
	// 4.6s true
	// 7.4s true
	// 0s false
}
