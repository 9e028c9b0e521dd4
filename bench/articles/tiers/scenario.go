package tiers

import (
	"time"

	"github.com/redial-go/redial/bench/internal/pick"
)

// Scenario is what happens in a simulation, and which strategies are tried on it. The tags are its
// keys in a file; see [Read].
type Scenario struct {
	Name       string        `json:"name"`
	Title      string        `json:"title"`  // of its picture
	Text       string        `json:"text"`   // what is to be said of it
	RPS        int           `json:"rps"`    // calls per second that are usual; [Setup] may have another number
	Length     time.Duration `json:"length"` // how long calls arrive; what has arrived by then runs to its end
	Bucket     time.Duration `json:"bucket"` // length of a [Bucket]
	Failure    Failure       `json:"failure"`
	Tiers      []Tier        `json:"tiers"` // from the one that is called from outside down
	Strategies []Strategy    `json:"strategies"`

	file []byte // what it was read from
}

// Failure is when and how the lowest tier fails.
type Failure struct {
	From  time.Duration `json:"from"` // since the start
	To    time.Duration `json:"to"`
	Share float64       `json:"share"` // of the requests that end in that time
}

// Tier is one service.
type Tier struct {
	Name     string        `json:"name"`
	Capacity float64       `json:"capacity"` // what its CPUs can do, times the normal load; their number is rounded up
	Service  time.Duration `json:"service"`  // median time of its own work on a request
	Queue    time.Duration `json:"queue"`    // how long its CPUs need for a full queue; what finds it full is refused; 0: the queue has no bound
	Timeout  time.Duration `json:"timeout"`  // of its caller, counted from sending a request
	Scaling  *Scaling      `json:"scaling"`  // nil: it always has as many CPUs

}

// Strategy is what the callers do about failed requests.
type Strategy struct {
	Name      string     `json:"name"`
	Callers   []Caller   `json:"callers"`   // of each tier
	Admission *Admission `json:"admission"` // which users are let in; nil: all
}

// Admission is the manual way out of an overload: a cut to a share of the users. The
// others are let in again by steps, and a user that is let in stays in. Until At, all are.
type Admission struct {
	At    time.Duration `json:"at"`    // of the cut, since the start
	Share float64       `json:"share"` // of the users that are let in from then on
	Step  float64       `json:"step"`  // what is added to it
	Every time.Duration `json:"every"` // between the steps; the first comes so long after the cut
}

// Admits returns the share of the users that are let in at a time since the start.
func (a *Admission) Admits(at time.Duration) float64 {
	if a == nil || at < a.At {
		return 1
	}
	return min(1, a.Share+a.Step*float64((at-a.At)/a.Every))
}

// Strategy returns the strategy of that name. The error names those that there are.
func (s *Scenario) Strategy(name string) (Strategy, error) {
	return pick.One("strategy of "+s.Name, name, s.Strategies, func(y Strategy) string { return y.Name })
}

// People returns the people among the callers of s.
func (s *Scenario) People() (all []*Person) {
	for _, y := range s.Strategies {
		for _, c := range y.Callers {
			if c.Person != nil {
				all = append(all, c.Person)
			}
		}
	}
	return all
}

// Admissions returns the manual ways out that strategies of s take.
func (s *Scenario) Admissions() (all []*Admission) {
	for _, y := range s.Strategies {
		if y.Admission != nil {
			all = append(all, y.Admission)
		}
	}
	return all
}
