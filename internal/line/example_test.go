package line_test

import (
	"fmt"
	"time"

	"github.com/redial-go/redial/internal/line"
)

// A Queue is a gate's queue for one host, without a clock: this is how a simulator has it.
func ExampleQueue() {
	now := time.Now()
	queue := line.New(line.Options{Rate: 2, Burst: 1}, nil) // two dials per second
	for range 2 {
		queue.Join(now)
	}
	for range 2 {
		ticket, next := queue.Admit(now)
		fmt.Println(ticket != nil)
		if ticket == nil {
			fmt.Println("the next one after", next.Sub(now).Round(time.Millisecond))
		}
	}
	// Output:
	// true
	// false
	// the next one after 500ms
}
