package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Options are what is drawn. Zero fields have the defaults.
type Options struct {
	RPS      int                  // calls per second of the queueing scenarios; default 10,000
	Seeds    int                  // how many runs of each the figures are the mean of; default 3
	Seed     uint64               // of the first; those that follow count up
	N        int                  // connections of a herd; default 10,000
	Capacity float64              // handshakes per second; default 500
	Only     []string             // IDs of the chapters that are drawn; default: all
	Each     func(done, many int) // called after each figure, one at a time; nil is allowed
}

// Validate returns an error that names what is wrong with o.
func (o Options) Validate() error {
	if o.RPS < 0 || o.Seeds < 0 || o.N < 0 || o.N > mostConnections || o.Capacity < 0 || o.Capacity > 1e9 {
		return errors.New("draw report: a number is out of range")
	}
	for _, id := range o.Only {
		if !slices.Contains(ChapterIDs(), id) {
			return fmt.Errorf("find chapter %q: there are %s", id, strings.Join(ChapterIDs(), ", "))
		}
	}
	return nil
}

// mostConnections keeps the herds within what takes minutes.
const mostConnections = 1_000_000

func (o Options) withDefaults() (Options, error) {
	if o.RPS == 0 {
		o.RPS = 10_000
	}
	if o.Seeds == 0 {
		o.Seeds = 3
	}
	if o.N == 0 {
		o.N = 10_000
	}
	if o.Capacity == 0 {
		o.Capacity = 500
	}
	return o, o.Validate()
}
