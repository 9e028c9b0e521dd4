package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/internal/line"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// Herd describes one run: which connections are lost, what meets them, and how long to watch.
type Herd struct {
	N         int           // connections, at least 1
	Client    Client        // what each of them is; the zero value is the library with its defaults
	Groups    []Group       // unlike connections, instead of Client
	Fresh     bool          // they are not lost, but begin at the same instant
	Processes int           // how many processes the connections are spread over evenly, each with a budget.Gate of its own; 0: no gate
	Gate      line.Options  // of each process
	Outage    Outage        // the zero value: a restart that is over at once
	Leaves    []Leave       // how each connection leaves a server that drains, instead of an Outage; nil: all are lost at once
	Server    Server        // its Capacity must be given
	Watch     time.Duration // of virtual time, from the loss; default 10 min + 12 N/C
	Seed      uint64        // of all chance
}

// Client describes how one connection is kept.
type Client struct {
	Name          string         // as tables show it
	Policy        backoff.Policy // default &backoff.Adaptive{}, the library's
	Whole         bool           // the step's Connect is one limit on the whole try, as other makes have it, instead of two
	OneConnection bool           // as in schedule.DialOptions, like the next three
	StartSpread   time.Duration  // default: the first dial of a Fresh herd does not wait
	StableAfter   time.Duration  // default 10 s; 1 ns: being up at all is enough
	Credit        time.Duration  // default 30 s; negative: none
	Limit         time.Duration  // the one limit on a dial of another make, which Policy has too; 0: as Policy says
	Lent          bool           // Limit is one that we have chosen, because the make has none of its own
	Addresses     bool           // remembers the servers whose handshakes hung, if Server.Apart, and dials them last
}

// Group is a part of a herd.
type Group struct {
	Client Client
	Share  float64       // of the connections
	Late   time.Duration // a loss is noticed so much later
	RTT    time.Duration // a message and its answer; default 0
}

// Outage is how the connections are lost, and what becomes of dials until the
// server is back.
type Outage struct {
	Loss   Loss
	Down   Down
	Length time.Duration // from the loss; default 0: the server is back at once
	Again  time.Duration // the server dies a second time so long after it came back, and is away for Length again; 0: it does not

	// Spells are what happens instead, one after the other from the loss on. Each that
	// begins after one of Up is another loss. Down, Length and Again mean nothing then.
	Spells []Spell
}

// spells are those of o, without Up at the end.
func (o *Outage) spells() []Spell {
	if o.Spells != nil {
		return o.Spells
	}
	all := []Spell{{Down: o.Down, Length: o.Length}}
	if o.Again > 0 {
		all = append(all, Spell{Down: Up, Length: o.Again}, all[0])
	}
	return all
}

// Server is what the herd comes back to.
type Server struct {
	Capacity   float64       // handshakes completed per second
	Queue      Queue         // what happens to dials that find no room
	Backlog    int           // how many wait at most beside the one being served; default 4096, as Linux has it
	Answers    float64       // 503s written per second, beside the handshakes; default 20 * Capacity
	RetryAfter time.Duration // told with each 503; default: nothing is told
	Status429  bool          // each 503 is a 429 instead, which is about its caller
	Booked     bool          // with each 503 a time of one's own is told, the next that is free, in whole seconds
	Ramp       time.Duration // after a return the server is slow: at first it has RampFrom of Capacity, and all of it only so much later; default 0
	Ends       time.Duration // each session that begins in the run is dropped so long after; default: none is

	// There may be several, behind one name: each dial meets one of them at random, and
	// each has the Capacity and the Backlog.
	Count   int           // default 1
	Hung    int           // so many of them accept and never answer, at any time
	Apart   bool          // they have addresses of their own: see Client.Addresses
	First   bool          // with Apart: clients dial in the same order, and those that hang come first
	Rolling time.Duration // each has its outage so much later than the one before; only those whose server it is are lost
}

// RampFrom is the share of its Capacity that a server with a Ramp has at first.
const RampFrom = 0.02

// Queue is what happens to a dial that finds Backlog others waiting.
type Queue uint8

// The kinds of queue.
const (
	Unbounded Queue = iota // there is always room
	Reject                 // refused at once, as by a server that closes connections beyond its limit: verdict Retry
	Drop                   // the SYN is dropped; the client's kernel sends it again after 1, 3, 7, 15 s
	Busy                   // answered 503: verdict Overload
	Random                 // there is always room, and waiting dials are served at random
)

var queues = []string{"unbounded", "reject", "drop", "503", "random"}

// Queues returns all kinds of queue.
func Queues() []Queue { return pick.Kinds[Queue](queues) }

// String returns a word for it, as tables show it.
func (q Queue) String() string { return pick.Kind(queues, q) }

// Ideal is how long the server needs for all clients if it is never idle and
// nothing is in vain: N/C. Several servers that do not hang share the work.
func (h *Herd) Ideal() time.Duration {
	serving := max(h.Server.Count-h.Server.Hung, 1)
	return time.Duration(float64(h.N) / (h.Server.Capacity * float64(serving)) * float64(time.Second))
}

// Return is when the last server is back for good, from the loss, if no spell has a
// Spread. A [Result] counts from then.
func (h *Herd) Return() time.Duration {
	return total(h.Outage.spells()) + time.Duration(max(h.Server.Count-1, 0))*h.Server.Rolling
}

// These limits fit into memory, and into 63 bits of ns with many dials for each client.
const (
	maxN     = 100_000_000
	maxIdeal = 1000 * time.Hour
	maxWatch = 1000 * time.Hour
)

// within reports whether times are at least 0 and at most so long.
func within(most time.Duration, times ...time.Duration) bool {
	return !slices.ContainsFunc(times, func(d time.Duration) bool { return d < 0 || d > most })
}

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
	case !within(maxWatch, h.Watch, h.Outage.Length, h.Outage.Again, h.Server.RetryAfter, h.Server.Ends, h.Server.Ramp) || !within(maxWatch/maxServers, h.Server.Rolling):
		return h, fmt.Errorf("fleet: a time is negative, or longer than %v", maxWatch)
	case h.Server.Backlog < 0 || !(h.Server.Answers >= 0) || h.Server.Answers > 1e9:
		return h, errors.New("fleet: a backlog or a rate of answers is out of range")
	case h.Server.Count < 0 || h.Server.Count > maxServers || h.Server.Hung < 0 || h.Server.Hung > max(h.Server.Count, 1):
		return h, fmt.Errorf("fleet: there cannot be %d servers of which %d hang: at most %d", h.Server.Count, h.Server.Hung, maxServers)
	case h.Processes < 0 || h.Processes > h.N:
		return h, fmt.Errorf("fleet: %d connections cannot be spread over %d processes", h.N, h.Processes)
	case int(h.Outage.Loss) >= len(losses) || int(h.Outage.Down) >= len(downs) || int(h.Server.Queue) >= len(queues):
		return h, errors.New("fleet: unknown kind of loss, outage or queue")
	}
	sum := time.Duration(0)
	for _, s := range h.Outage.Spells {
		if !within(maxWatch, s.Length, s.Spread) || int(s.Down) >= len(downs) {
			return h, errors.New("fleet: a spell is of an unknown kind or its length is out of range")
		}
		if sum += s.Length + s.Spread; sum > maxWatch {
			return h, fmt.Errorf("fleet: the spells are longer than %v together", maxWatch)
		}
	}
	for _, g := range h.Groups {
		if !(g.Share >= 0 && g.Share <= 1) || !within(maxWatch, g.Late, g.RTT) {
			return h, errors.New("fleet: a group's share or time is out of range")
		}
	}
	if len(h.Groups) > 255 {
		return h, fmt.Errorf("fleet: %d groups are more than 255", len(h.Groups))
	}
	if err := h.validateLeaves(); err != nil {
		return h, err
	}
	if _, err := budget.NewGate(&budget.GateOptions{Rate: h.Gate.Rate, Burst: h.Gate.Burst}); err != nil {
		return h, fmt.Errorf("fleet: %w", err)
	}
	h.Watch = cmp.Or(h.Watch, min(10*time.Minute+12*h.Ideal(), maxWatch))
	h.Server.Backlog = cmp.Or(h.Server.Backlog, 4096)
	h.Server.Answers = cmp.Or(h.Server.Answers, min(20*h.Server.Capacity, 1e9))
	h.Server.Count = cmp.Or(h.Server.Count, 1)
	if h.Leaves != nil {
		h.Outage.Spells = []Spell{} // none
	}
	if h.Groups == nil {
		h.Groups = []Group{{Client: h.Client, Share: 1}}
	}
	return h, nil
}
