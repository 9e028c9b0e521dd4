package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/parallel"
)

// Options say what [Run] measures. The zero value is everything that does not take long,
// in nine rounds.
type Options struct {
	Rows   []string // names; default: all but those that take long
	Peers  []string // names; the base of the ratios is always among them; default: all
	Rounds int      // default 9
	Long   bool     // the default of Rows is all of them

	// Progress is called after each measurement, of which there are [Options.Steps]. Several
	// goroutines may call it at once. Default: nothing.
	Progress func()

	sizes  sizes                  // default: fullSizes
	client func() (worker, error) // default: a process
}

// plan is what options come to.
type plan struct {
	Options
	rows  []*row
	peers []string
}

// Validate returns an error that names the option which is wrong, if one is.
func (o Options) Validate() error {
	_, err := o.plan()
	return err
}

// Steps returns how many measurements there will be; 0 if an option is wrong.
func (o Options) Steps() int {
	p, err := o.plan()
	if err != nil {
		return 0
	}
	n := 0
	for _, r := range p.rows {
		n += p.Rounds * p.steps(r)
	}
	return n
}

func (o Options) plan() (*plan, error) {
	if o.sizes.idle == 0 {
		o.sizes = fullSizes
	}
	if o.client == nil {
		o.client = func() (worker, error) { return start() }
	}
	if o.Progress == nil {
		o.Progress = func() {}
	}
	if o.Rounds == 0 {
		o.Rounds = 9
	}
	if o.Rounds < 0 {
		return nil, fmt.Errorf("want at least one round, not %d", o.Rounds)
	}
	p := &plan{Options: o}
	known := rowsOf(o.sizes)
	for _, name := range o.Rows {
		r, err := findRow(known, name)
		if err != nil {
			return nil, err
		}
		p.rows = append(p.rows, r)
	}
	if len(o.Rows) == 0 {
		p.rows = slices.DeleteFunc(known, func(r *row) bool { return r.long && !o.Long })
	}
	for _, name := range o.Peers {
		if _, err := findPeer(name); err != nil {
			return nil, err
		}
	}
	for _, name := range Names() { // in their order, the base first
		if len(o.Peers) == 0 || slices.Contains(o.Peers, name) || name == all[0].name {
			p.peers = append(p.peers, name)
		}
	}
	return p, nil
}

// of returns the peers that a row measures. The base of its ratios comes twice.
func (p *plan) of(r *row) []string {
	var names []string
	for _, name := range p.peers {
		if known, err := findPeer(name); err != nil || r.takes != nil && !r.takes(known) {
			continue
		}
		names = append(names, name)
		if name == all[0].name && r.one != nil && r.columns[0].Ratio {
			names = append(names, name+" "+twin)
		}
	}
	return names
}

// Run measures, row by row. If a measurement fails, Run goes on with the next row; its error
// names the rows and the peers for which it failed. When ctx ends, Run ends too, and the error is
// the cause. Either leaves what was measured until then.
func Run(ctx context.Context, o Options) (*Report, error) {
	p, err := o.plan()
	if err != nil {
		return nil, err
	}
	report := &Report{}
	var failed []error
	for _, r := range p.rows {
		result := newResult(r, p.of(r))
		report.Rows = append(report.Rows, result)
		end := cli.Measure()
		err := p.rounds(ctx, r, result)
		result.Measured = end()
		if err == nil {
			continue
		}
		result.Cut = true
		if ctx.Err() != nil {
			return report, context.Cause(ctx)
		}
		failed = append(failed, err)
	}
	return report, errors.Join(failed...)
}

// rounds measures all rounds of a row, one after the other unless it only waits.
func (p *plan) rounds(ctx context.Context, r *row, result *Result) error {
	if !r.waits {
		for range p.Rounds {
			figures, err := p.round(ctx, r, result)
			if err != nil {
				return err
			}
			result.add(figures)
		}
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := make([]map[string][]float64, p.Rounds)
	err := parallel.Do(ctx, p.Rounds, atOnce, func(i int) (err error) {
		if all[i], err = p.round(ctx, r, result); err != nil {
			cancel(err) // the other rounds are of no use any more
		}
		return err
	})
	for _, figures := range all {
		if err == nil {
			result.add(figures)
		}
	}
	return err
}

// steps is how many measurements a round of r has.
func (p *plan) steps(r *row) int {
	if r.side != nil {
		return 1
	}
	return len(p.of(r))
}

// round measures every peer once. It adds to the notes of the result, not to its figures.
func (p *plan) round(ctx context.Context, r *row, result *Result) (map[string][]float64, error) {
	names := p.of(r)
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: none of the peers redials", r.name)
	}
	if r.side != nil {
		defer p.Progress()
		x := p.exam(ctx, names[0])
		defer x.end()
		figures, err := r.side(x, names)
		return figures, about(ctx, r.name, err)
	}
	figures := map[string][]float64{}
	for _, i := range rand.Perm(len(names)) {
		x := p.exam(ctx, names[i])
		figure, err := r.one(x)
		x.end()
		if err != nil {
			return nil, about(ctx, r.name+", "+names[i], err)
		}
		figures[names[i]] = figure
		if x.note != "" {
			result.Notes = append(result.Notes, names[i]+": "+x.note)
		}
		p.Progress()
	}
	return figures, nil
}

// exam is made for a peer that is known.
func (p *plan) exam(ctx context.Context, name string) *exam {
	known, _ := findPeer(name)
	return &exam{ctx: ctx, name: known.name, peer: known, sizes: p.sizes, client: p.client, server: start, pairs: p.sizes.pairs}
}

// about says what an error is about, but for the end of ctx.
func about(ctx context.Context, what string, err error) error {
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("measure %s: %w", what, err)
}
