package queueing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
)

// Scenario is what happens in a simulation, and which strategies are tried on it. The tags are its
// keys in a file; see [Read].
type Scenario struct {
	Name       string          `json:"name"`
	Title      string          `json:"title"`      // of its picture
	Claim      string          `json:"claim"`      // what an article says of it, if one does
	Capacity   float64         `json:"capacity"`   // of the server, times the normal load; the number of CPUs is rounded down
	Processors int             `json:"cpus"`       // how many CPUs the server has, instead of a capacity
	Latency    time.Duration   `json:"latency"`    // the median service time; 0: 10 ms
	Trip       time.Duration   `json:"trip"`       // the mean time that a request takes to the server; 0: 5 ms
	Length     time.Duration   `json:"length"`     // how long calls arrive; what has arrived by then runs to its end
	Failure    Failure         `json:"failure"`    //
	Timeouts   []time.Duration `json:"timeouts"`   // of a request, counted from sending it; each call draws one for all its requests
	Limit      float64         `json:"limit"`      // of calls under way at once, in seconds of normal load (0.1: a tenth of the calls per second); others wait; 0: none
	Hosts      int             `json:"hosts"`      // of the server, which share its queue and CPUs, for strategies that eject one; of users each has its part, else each request goes to any; 0: one
	Strategies []Strategy      `json:"strategies"` //

	file []byte // what it was read from
}

// Failure is when and how the server fails.
type Failure struct {
	From   time.Duration `json:"from"` // since the start
	To     time.Duration `json:"to"`
	Share  float64       `json:"share"`   // of the requests that end in that time
	ByUser bool          `json:"by_user"` // Share is of the users instead: a user that fails once fails each time
	ByHost bool          `json:"by_host"` // Share is of the hosts instead: each request of a host that fails does
}

const (
	ms = time.Millisecond

	uptime  = 0.995   // of the server outside of the failure
	trip    = 5 * ms  // the mean of Exp: the network
	latency = 10 * ms // the median of LogNormal(0, sigma): the handler
	sigma   = 0.25
)

// meanLatency is the mean service time in s where the median is latency: 10 ms x e^(sigma^2/2).
const meanLatency = 0.010317434074991027

// withDefaults returns s with the defaults instead of zeros.
func (s Scenario) withDefaults() Scenario {
	if s.Latency == 0 {
		s.Latency = latency
	}
	if s.Trip == 0 {
		s.Trip = trip
	}
	return s
}

// mean returns the mean service time in s.
func (s *Scenario) mean() float64 {
	if s.Latency == 0 {
		return meanLatency
	}
	return meanLatency * (float64(s.Latency) / float64(latency))
}

// CPUs returns how many CPUs the server has for rps calls per second.
func (s *Scenario) CPUs(rps int) int {
	if s.Processors > 0 {
		return s.Processors
	}
	return max(1, int(s.Capacity*float64(rps)*s.mean()))
}

// Full returns what the server's CPUs can do, in percent of the normal load of rps calls per second.
func (s *Scenario) Full(rps int) float64 {
	return 100 * float64(s.CPUs(rps)) / (float64(rps) * s.mean())
}

// Permits returns how many calls may be under way at once, 0 for any number.
func (s *Scenario) Permits(rps int) int { return permits(s.Limit, rps) }

func permits(limit float64, rps int) int {
	if limit == 0 {
		return 0
	}
	return max(1, int(float64(limit*float64(rps))+1e-9))
}

// Strategy returns the strategy of that name: one of the scenario, or one of [Presets]. The
// error names those that there are.
func (s *Scenario) Strategy(name string) (Strategy, error) {
	all := slices.Concat(s.Strategies, Presets())
	return pick.One("strategy of "+s.Name, name, all, nameOf)
}

func nameOf(y Strategy) string { return y.Name }

// When returns a time of a [Summary] as people read it: "1.04 s", or if there is none
// "not within 1.5s", which is the scenario's length.
func (s *Scenario) When(at time.Duration, ok bool) string {
	if !ok {
		return fmt.Sprintf("not within %v", s.Length)
	}
	return fmt.Sprintf("%.2f s", at.Seconds())
}

// Check returns an error that names what is wrong with s, if anything is.
func (s *Scenario) Check() error {
	f := &s.Failure
	switch {
	case s.Name == "":
		return errors.New("want a name")
	case s.Length < ms || s.Length > time.Hour:
		return fmt.Errorf("want a length of 1ms to 1h, not %v", s.Length)
	case s.Processors < 0 || s.Processors == 0 && !(s.Capacity > 0) || s.Capacity > 1000:
		return fmt.Errorf("want a capacity of more than 0 to 1000, not %v, or a number of cpus", s.Capacity)
	case s.Latency > time.Hour || s.Trip > time.Hour:
		return errors.New("want a latency and a trip of at most 1h")
	case f.From > f.To:
		return fmt.Errorf("want a failure that ends after it begins, not from %v to %v", f.From, f.To)
	case !(f.Share >= 0 && f.Share <= 1):
		return fmt.Errorf("want 0 to 1 as the share that fails, not %v", f.Share)
	case len(s.Timeouts) == 0 || len(s.Timeouts) > 255 || slices.Min(s.Timeouts) <= 0:
		return errors.New("want 1 to 255 timeouts above 0")
	case !(s.Limit >= 0 && s.Limit <= 3600):
		return fmt.Errorf("want 0 to 3600 s worth of calls as the limit, not %v", s.Limit)
	case s.Hosts < 0 || s.Hosts > 100:
		return fmt.Errorf("want 0 to 100 hosts, not %d", s.Hosts)
	case f.ByHost && (f.ByUser || s.Hosts < 2):
		return errors.New("a failure by_host wants 2 hosts or more, and not by_user")
	case len(s.Strategies) == 0:
		return errors.New("want a strategy")
	}
	for i := range s.Strategies {
		y := &s.Strategies[i]
		if y.Name == "" || slices.IndexFunc(s.Strategies, func(z Strategy) bool { return z.Name == y.Name }) < i {
			return fmt.Errorf("strategy %d: want a name that no other has, not %q", i+1, y.Name)
		}
		if err := cmp.Or(y.Check(), y.check(s)); err != nil {
			return fmt.Errorf("strategy %s: %w", y.Name, err)
		}
	}
	return nil
}
