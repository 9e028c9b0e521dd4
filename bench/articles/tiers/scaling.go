package tiers

import (
	"errors"
	"math"
	"time"
)

// Scaling gives a tier more CPUs while it is busy, by the rule of Kubernetes' HorizontalPodAutoscaler: the
// CPUs that are wanted are those that there are times the busy share over the target, rounded up, and none is
// added or taken away for a tenth more or less. A tier never has fewer than it began with.
type Scaling struct {
	Target float64       `json:"target"` // the share of the CPUs' time that should be busy
	Every  time.Duration `json:"every"`  // between two decisions; Kubernetes: 15 s
	Delay  time.Duration `json:"delay"`  // from a decision until new CPUs serve
	Calm   time.Duration `json:"calm"`   // CPUs are taken away when for so long no decision wanted them; Kubernetes: 5 min
	Most   float64       `json:"most"`   // CPUs, times those at the beginning
}

// tolerance is the difference from the target for which nothing is done; Kubernetes: 0.1.
const tolerance = 0.1

// check returns an error if c makes no sense.
func (c *Scaling) check() error {
	if c != nil && (!(c.Target > 0 && c.Target <= 1) || c.Every <= 0 || c.Delay < 0 || c.Calm < 0 || !(c.Most >= 1 && c.Most <= 1000)) {
		return errors.New("scaling needs a target of more than 0 to 1, time between its decisions, no negative time, and 1 to 1000 times the CPUs at most")
	}
	return nil
}

// size is how many CPUs a tier has from a time on.
type size struct {
	at         int64 // ns
	tier, cpus int
}

// wish is how many CPUs a decision wanted.
type wish struct {
	at   int64
	cpus int
}

// scaler is what decides for a tier.
type scaler struct {
	*Scaling
	first  int // CPUs at the beginning
	coming int // CPUs that are on their way
	wishes []wish
}

// scale decides how many CPUs a tier should have, and when to decide again.
func (r *run) scale(tier int) {
	s := &r.servers[tier]
	c := s.scaler
	s.work(r.now)
	ratio := float64(s.worked) / float64(int64(c.Every)*int64(s.cpus)) / c.Target
	s.worked = 0
	want := s.cpus
	if math.Abs(ratio-1) > tolerance {
		want = int(math.Ceil(float64(s.cpus) * ratio))
	}
	want = min(max(want, c.first), int(float64(c.first)*c.Most))
	most := want
	recent := append(c.wishes[:0:0], wish{r.now, want})
	for _, w := range c.wishes {
		if r.now-w.at <= int64(c.Calm) {
			recent, most = append(recent, w), max(most, w.cpus)
		}
	}
	c.wishes = recent
	switch all := s.cpus + c.coming; {
	case want > all:
		c.coming += want - all
		r.events.Push(r.now+int64(c.Delay), due{kindGrown, request{uint32(tier), uint32(want - all)}})
	case most < all && c.coming == 0:
		r.resize(tier, most)
	}
	if next := r.now + int64(c.Every); next < int64(r.setup.Scenario.Length) {
		r.events.Push(next, due{kindScale, request{call: uint32(tier)}})
	}
}

// grown is the arrival of CPUs at a tier.
func (r *run) grown(tier, cpus int) {
	s := &r.servers[tier]
	s.scaler.coming -= cpus
	r.resize(tier, s.cpus+cpus)
	for s.busy < s.cpus {
		_, next, some := s.queue.Pop()
		if !some {
			return
		}
		r.serve(tier, next)
	}
}

// resize gives a tier so many CPUs. Those that are busy and too many finish what they do.
func (r *run) resize(tier, cpus int) {
	s := &r.servers[tier]
	s.resize(cpus)
	r.result.sizes = append(r.result.sizes, size{r.now, tier, cpus})
}
