package contention

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/bench/internal/event"
	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Result is what one run, or the mean of several, has shown.
type Result struct {
	Time   time.Duration // until the last client knows that it has won; if some gave up, until the last has won or given up
	Calls  float64       // writes that reached the row
	GaveUp float64       // clients whose policy gave up before they had won
}

// Mean runs it with so many seeds, from seed on, and returns the mean. The error
// names what is wrong, or is the cause of ctx when that ends.
func Mean(ctx context.Context, p backoff.Policy, clients, runs int, seed uint64) (Result, error) {
	if clients < 1 || runs < 1 {
		return Result{}, fmt.Errorf("simulate contention: want clients and runs, not %d and %d", clients, runs)
	}
	var sum, calls, gaveUp float64
	for n := range runs {
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		y := Run(p, clients, seed+uint64(n))
		sum += y.Time.Seconds() / float64(runs)
		calls += y.Calls / float64(runs)
		gaveUp += y.GaveUp / float64(runs)
	}
	return Result{Time: time.Duration(sum * float64(time.Second)), Calls: calls, GaveUp: gaveUp}, nil
}

// Run simulates so many clients that contend for one row. The same seed gives the same Result on
// every machine.
func Run(p backoff.Policy, clients int, seed uint64) Result {
	r := &run{policy: p, rand: rand.New(rand.NewPCG(seed, 0xa35)), clients: make([]client, clients)}
	for i := range r.clients {
		r.send(0, message{client: int32(i), to: atRead})
	}
	for {
		at, m, ok := r.messages.Pop()
		if !ok {
			return Result{Time: time.Duration(r.now), Calls: float64(r.calls), GaveUp: float64(r.gaveUp)}
		}
		r.now = at
		r.receive(m)
	}
}

// run is the state of one run.
type run struct {
	policy   backoff.Policy
	rand     *rand.Rand
	now      int64 // ns
	messages event.Queue[message]
	clients  []client
	version  int32 // of the row
	calls    int
	gaveUp   int
}

// client is one client.
type client struct {
	outage  schedule.Outage
	version int32 // as it read it
}

// message is on its way between a client and the row.
type message struct {
	client int32
	to     station
	won    bool // in the answer to a write
}

// station is what a message's arrival does.
type station uint8

const (
	atRead   station = iota // the row is read
	atReader                // the client learns the version, and writes
	atWrite                 // the row is written if it has that version still
	atWriter                // the client learns whether it has won
)

const (
	meanLeg = 10 * time.Millisecond
	sdLeg   = 2 * time.Millisecond
)

// send sends a message after a wait.
func (r *run) send(wait time.Duration, m message) {
	leg := math.Abs(float64(meanLeg) + float64(float64(sdLeg)*r.rand.NormFloat64()))
	r.messages.Push(r.now+int64(wait)+int64(leg), m)
}

func (r *run) receive(m message) {
	c := &r.clients[m.client]
	switch m.to {
	case atRead:
		c.version = r.version // its own until it writes: it has one message under way at a time
		m.to = atReader
	case atReader:
		m.to = atWrite
	case atWrite:
		r.calls++
		m.won = c.version == r.version
		if m.won {
			r.version++
		}
		m.to = atWriter
	case atWriter:
		if m.won {
			return
		}
		step, ok := c.outage.Next(r.policy, backoff.Verdict{Class: backoff.ClassRetry}, time.Unix(0, r.now), r.rand)
		if !ok {
			r.gaveUp++
			return
		}
		r.send(step.Wait, message{client: m.client, to: atRead})
		return
	}
	r.send(0, m)
}
