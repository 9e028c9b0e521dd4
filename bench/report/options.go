package report

import (
	"cmp"
	"errors"

	"github.com/redial-go/redial/bench/articles/queueing"
	"github.com/redial-go/redial/bench/articles/tiers"
	"github.com/redial-go/redial/bench/internal/pick"
)

// Options are what is drawn. Zero fields have the defaults.
type Options struct {
	RPS      int                  // calls per second of the queueing scenarios; default 10,000
	Seeds    int                  // how many runs of each the figures are the mean of; default 3
	Seed     uint64               // of the first; those that follow count up
	N        int                  // connections of a herd; default 10,000
	Capacity float64              // handshakes per second; default 500
	Scenario string               // the only one of packages queueing and tiers that is drawn: a name, or a file that ends with ".json"; default: all of them
	Only     []string             // IDs of the chapters that are drawn; default: all
	Each     func(done, many int) // called after each figure, one at a time; nil is allowed
}

// Validate returns an error that names what is wrong with o.
func (o Options) Validate() error {
	if o.RPS < 0 || o.Seeds < 0 || o.N < 0 || o.N > mostConnections || o.Capacity < 0 || o.Capacity > 1e9 {
		return errors.New("draw report: a number is out of range")
	}
	if o.Scenario != "" {
		if err := o.findScenario(); err != nil {
			return err
		}
	}
	for _, id := range o.Only {
		if _, err := pick.One("chapter", id, ChapterIDs(), pick.Itself); err != nil {
			return err
		}
	}
	return nil
}

// findScenario returns an error if there is none that o.Scenario names.
func (o Options) findScenario() (err error) {
	if tiers.Has(o.Scenario) {
		_, err = tiers.Find(o.Scenario)
	} else {
		_, err = queueing.Find(o.Scenario)
	}
	return err
}

// mostConnections keeps the herds within what takes minutes.
const mostConnections = 1_000_000

func (o Options) withDefaults() (Options, error) {
	o.RPS, o.Seeds = cmp.Or(o.RPS, 10_000), cmp.Or(o.Seeds, 3)
	o.N, o.Capacity = cmp.Or(o.N, 10_000), cmp.Or(o.Capacity, 500)
	return o, o.Validate()
}
