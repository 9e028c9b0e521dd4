package classic_test

import (
	"fmt"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/classic"
)

// This prints the waits of connect_retry. Give the policy to [backoff.Retry] to use it for
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
