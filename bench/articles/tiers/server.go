package tiers

import (
	"math"
	"time"

	"github.com/redial-go/redial/bench/internal/event"
)

const (
	uptime   = 0.995 // of the lowest tier outside of the failure
	meanTrip = 5e6   // ns, of Exp: the network
	sigma    = 0.25  // of the service time's logarithm
)

// server is a tier's.
type server struct {
	queue event.FIFO[request]
	room  int // in the queue
	cpus  int
	busy  int
	tier  *Tier
	mean  float64 // s; of the service time

	scaler *scaler // nil: it always has as many CPUs
	worked int64   // ns x CPUs that were busy since the last decision
	since  int64   // ns; worked is complete up to here
}

func newServer(t *Tier, rps int) server {
	mean := t.Service.Seconds() * math.Exp(sigma*sigma/2)
	s := server{room: math.MaxInt, tier: t, mean: mean}
	s.resize(int(math.Ceil(t.Capacity * float64(rps) * mean)))
	if t.Scaling != nil {
		s.scaler = &scaler{Scaling: t.Scaling, first: s.cpus}
	}
	return s
}

// resize gives s so many CPUs, and its queue the room for the time that it may take.
func (s *server) resize(cpus int) {
	s.cpus = cpus
	if s.tier.Queue > 0 {
		s.room = int(s.tier.Queue.Seconds() * float64(cpus) / s.mean)
	}
}

// work notes that as many CPUs were busy since it was called last.
func (s *server) work(now int64) {
	s.worked += (now - s.since) * int64(s.busy)
	s.since = now
}

// reach is the arrival of a request at its tier.
func (r *run) reach(q request) {
	tier := r.calls[q.call].tier
	s := &r.servers[tier]
	switch {
	case s.busy < s.cpus:
		r.serve(tier, q)
	case s.queue.Len() < s.room:
		s.queue.Push(r.now, q)
		b := &r.result.at(r.now).Tiers[tier]
		b.Queue = max(b.Queue, s.queue.Len())
	default:
		r.result.at(r.now).Tiers[tier].Refused++
		r.answer(q, false, false)
	}
}

// serve gives a request a CPU.
func (r *run) serve(tier int, q request) {
	r.servers[tier].work(r.now)
	r.servers[tier].busy++
	took := float64(r.setup.Scenario.Tiers[tier].Service) * math.Exp(sigma*r.rand.NormFloat64())
	r.events.Push(r.now+int64(took), due{kindServed, q})
}

// served is the end of a request's service, from where the tier below goes on.
func (r *run) served(q request) {
	c := &r.calls[q.call]
	tier, again := c.tier, c.again || q.serial != c.first
	s := &r.servers[tier]
	s.work(r.now)
	s.busy--
	if s.busy < s.cpus {
		if _, next, some := s.queue.Pop(); some {
			r.serve(tier, next)
		}
	}
	r.result.at(r.now).Tiers[tier].Completed++
	if tier+1 < len(r.servers) {
		r.begin(tier+1, q, again)
		return
	}
	r.answer(q, r.succeeds(), false)
}

// succeeds decides how a request ends at the lowest tier.
func (r *run) succeeds() bool {
	if f, now := &r.setup.Scenario.Failure, time.Duration(r.now); now >= f.From && now < f.To {
		return r.rand.Float64() >= f.Share
	}
	return r.rand.Float64() < uptime
}
