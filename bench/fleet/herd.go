package fleet

import (
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// Herd is one run: who is lost, what meets them, and for how long to watch.
type Herd struct {
	N         int                // connections, at least 1
	Client    Client             // what each of them is; the zero value is the library with its defaults
	Processes int                // how many processes the connections are spread over evenly, each with a budget.Gate of its own; 0: no gate
	Gate      budget.LineOptions // of each process
	Outage    Outage             // the zero value: a restart that is over at once
	Server    Server             // its Capacity must be given
	Watch     time.Duration      // of virtual time, from the loss; default 10 min + 12 N/C
	Seed      uint64             // of all chance
}

// Client says how one connection is kept.
type Client struct {
	Name        string         // as tables show it
	Policy      backoff.Policy // default backoff.Default
	Whole       bool           // the step's Connect is one limit on the whole try, as other makes have it, instead of two
	StableAfter time.Duration  // as in reconnect.RunOptions; default 10 s; negative: being up at all is enough
}

// Outage is how the connections are lost, and what becomes of dials until the
// server is back.
type Outage struct {
	Loss   Loss
	Down   Down
	Length time.Duration // from the loss; default 0: the server is back at once
	Again  time.Duration // the server dies a second time so long after it came back, and is away for Length again; 0: it does not
}

// Loss is how a session ends when the server goes.
type Loss uint8

// The ways to be lost.
const (
	Reset      Loss = iota // the connection breaks: verdict Retry
	CloseRetry             // close frame 1012 (service restart): Retry as well
	CloseLater             // close frame 1013 (try again later): Overload
)

// Down is what a dial meets while the server is away.
type Down uint8

// What a dial can meet.
const (
	Refused     Down = iota // the process is dead: refused at once
	Silent                  // the host is gone: no SYN is answered
	Stopped                 // the process hangs (SIGSTOP): the kernel lets dials into the queue, and it is worked off afterwards
	Swallowed               // a balancer accepts the connection, and it is never answered, not even afterwards
	Unavailable             // a balancer answers 503, with the server's Retry-After
)

// Server is what the herd comes back to.
type Server struct {
	Capacity   float64       // handshakes completed per second
	Queue      Queue         // what happens to dials that find no room
	Backlog    int           // how many wait at most beside the one being served; default 4096, as Linux has it
	Answers    float64       // 503s written per second, beside the handshakes; default 20 * Capacity
	RetryAfter time.Duration // told with each 503; default: nothing is told
}

// Queue is what happens to a dial that finds Backlog others waiting.
type Queue uint8

// The kinds of queue.
const (
	Unbounded Queue = iota // there is always room
	Reject                 // refused at once, as by a server that closes what is too much: verdict Retry
	Drop                   // the SYN is dropped; the client's kernel sends it again after 1, 3, 7, 15 s
	Busy                   // answered 503: verdict Overload
)

var (
	losses = [...]string{"reset", "1012", "1013"}
	downs  = [...]string{"refused", "silent", "stopped", "swallowed", "503"}
	queues = [...]string{"unbounded", "reject", "drop", "503"}
)

// String returns the name that ParseLoss knows.
func (l Loss) String() string { return name(losses[:], int(l)) }

// String returns the name that ParseDown knows.
func (d Down) String() string { return name(downs[:], int(d)) }

// String returns the name that ParseQueue knows.
func (q Queue) String() string { return name(queues[:], int(q)) }

// ParseLoss is the inverse of String.
func ParseLoss(s string) (Loss, error) {
	n, err := number("loss", losses[:], s)
	return Loss(n), err
}

// ParseDown is the inverse of String.
func ParseDown(s string) (Down, error) {
	n, err := number("outage", downs[:], s)
	return Down(n), err
}

// ParseQueue is the inverse of String.
func ParseQueue(s string) (Queue, error) {
	n, err := number("queue", queues[:], s)
	return Queue(n), err
}

// Ideal is how long the server needs for all clients if it is never idle and
// nothing is in vain: N/C.
func (h *Herd) Ideal() time.Duration {
	return time.Duration(float64(h.N) / h.Server.Capacity * float64(time.Second))
}

// What fits into memory, and into 63 bits of ns with many dials for each client.
const (
	maxN     = 100_000_000
	maxIdeal = 1000 * time.Hour
	maxWatch = 1000 * time.Hour
)

func (h Herd) withDefaults() (Herd, error) {
	switch {
	case h.N < 1:
		return h, fmt.Errorf("fleet: want at least 1 connection, not %d", h.N)
	case h.N > maxN:
		return h, fmt.Errorf("fleet: %d connections are more than %d", h.N, maxN)
	case !(h.Server.Capacity > 0) || h.Server.Capacity > 1e9:
		return h, fmt.Errorf("fleet: a server cannot complete %v handshakes per second", h.Server.Capacity)
	case float64(h.N)/h.Server.Capacity > maxIdeal.Seconds():
		return h, fmt.Errorf("fleet: %d handshakes at %v per second would take more than %v", h.N, h.Server.Capacity, maxIdeal)
	case h.Watch > maxWatch || h.Outage.Length > maxWatch || h.Outage.Again > maxWatch || h.Server.RetryAfter > maxWatch:
		return h, fmt.Errorf("fleet: a time is longer than %v", maxWatch)
	case h.Outage.Length < 0 || h.Outage.Again < 0 || h.Watch < 0 || h.Server.RetryAfter < 0:
		return h, errors.New("fleet: a time is negative")
	case h.Server.Backlog < 0 || !(h.Server.Answers >= 0) || h.Server.Answers > 1e9:
		return h, errors.New("fleet: a backlog or a rate of answers is out of range")
	case h.Processes < 0 || h.Processes > h.N:
		return h, fmt.Errorf("fleet: %d connections cannot be spread over %d processes", h.N, h.Processes)
	case int(h.Outage.Loss) >= len(losses) || int(h.Outage.Down) >= len(downs) || int(h.Server.Queue) >= len(queues):
		return h, errors.New("fleet: unknown kind of loss, outage or queue")
	}
	if _, err := budget.NewGate(&budget.GateOptions{LineOptions: h.Gate}); err != nil {
		return h, fmt.Errorf("fleet: %w", err)
	}
	if h.Watch == 0 {
		h.Watch = min(10*time.Minute+12*h.Ideal(), maxWatch)
	}
	if h.Server.Backlog == 0 {
		h.Server.Backlog = 4096
	}
	if h.Server.Answers == 0 {
		h.Server.Answers = min(20*h.Server.Capacity, 1e9)
	}
	if h.Client.Policy == nil {
		h.Client.Policy = backoff.Default()
	}
	if h.Client.StableAfter == 0 {
		h.Client.StableAfter = 10 * time.Second
	}
	return h, nil
}

func name(names []string, n int) string {
	if n < len(names) {
		return names[n]
	}
	return fmt.Sprintf("kind %d", n)
}

func number(what string, names []string, s string) (int, error) {
	for n, name := range names {
		if s == name {
			return n, nil
		}
	}
	return 0, fmt.Errorf("fleet: unknown %s %q, not one of %q", what, s, names)
}
