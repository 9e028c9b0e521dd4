package redisgate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/budget/redisgate"
)

// A venue allows 20 dials a second and 5 at a time, from all processes together.
func Example() {
	server, err := miniredis.Run() // in the program, for the example
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	defer client.Close()

	limiter, err := redisgate.New(client, &redisgate.Options{
		Key:   "venue.example",
		Rate:  budget.Window{N: 20, Per: time.Second},
		Slots: 5,
		Local: redisgate.Share{N: 5, Slots: 1}, // for four processes
		Slack: 500 * time.Millisecond,          // for a busy machine
	})
	if err != nil {
		panic(err)
	}
	defer limiter.Close()
	gate, err := budget.NewGate(&budget.GateOptions{Limiter: limiter})
	if err != nil {
		panic(err)
	}

	// reconnect.RunOptions.Gate takes the gate, and does the following for each dial:
	done, err := gate.Acquire(context.Background(), "venue.example:443")
	fmt.Println(err, limiter.Status().Held)
	done(backoff.Verdict{Class: backoff.ClassOK}) // the session is ready
	fmt.Println(limiter.Status().Held)
	// Output:
	// <nil> 1
	// 0
}
