package queueing

import (
	"errors"
	"fmt"

	"github.com/redial-go/redial/bench/articles/caller"
)

// Strategy is what a caller does about a failed request, and whether the server helps. The tags are
// its keys in a file.
type Strategy struct {
	Name string `json:"name"`
	caller.Caller
	Local       bool    `json:"local"`       // each 200 calls per second have a budget of their own; else there is one for all
	Deadline    bool    `json:"deadline"`    // the server knows until when a caller waits
	Limit       float64 `json:"limit"`       // of calls under way at once, instead of Scenario.Limit
	Concurrency float64 `json:"concurrency"` // requests that the server holds at once, in multiples of its CPUs; it refuses others; 0: any number
	Adaptive    bool    `json:"adaptive"`    // the server finds out itself how many it can hold, as Envoy's adaptive concurrency does
	Eject       int     `json:"eject"`       // errors in a row after which callers leave a host alone, as Envoy's outlier detection does; 0: never
}

// check returns an error that names what is wrong with y in a scenario, if anything is.
func (y *Strategy) check(s *Scenario) error {
	switch {
	case !(y.Limit >= 0 && y.Limit <= 3600):
		return fmt.Errorf("want 0 to 3600 s worth of calls as the limit, not %v", y.Limit)
	case !(y.Concurrency >= 0 && y.Concurrency <= 1e6):
		return fmt.Errorf("want a concurrency of 0 to 1000000 times the CPUs, not %v", y.Concurrency)
	case y.Adaptive && y.Concurrency > 0:
		return errors.New("want a concurrency, or adaptive")
	case y.Eject < 0 || y.Eject > 0 && s.Hosts < 2:
		return errors.New("eject wants a number of errors, and 2 hosts or more")
	}
	return nil
}

// localRate is how many calls per second one client makes where budgets are
// local.
const localRate = 200

// Presets returns the retry budgets of others, over two retries at once as the article's budget is. Every scenario has them as strategies
// beside its own: see [Scenario.Strategy].
func Presets() (all []Strategy) {
	for _, name := range caller.Presets() {
		all = append(all, Strategy{Name: "retry-budget-" + name, Caller: caller.Caller{Retries: 2, Budget: name}})
	}
	return all
}
