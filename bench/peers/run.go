package peers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Options say what [Run] measures. The zero value is everything that does not take long,
// in nine rounds.
type Options struct {
	Rows   []string // names; default: all but those that take long
	Peers  []string // names; the base of the ratios is always among them; default: all
	Rounds int      // default 9
	Long   bool     // the default of Rows is all of them

	// Progress is called after each measurement, of which there are [Options.Steps].
	// Default: nothing.
	Progress func()

	sizes  sizes                  // default: fullSizes
	client func() (worker, error) // default: a process
	random *rand.Rand             // draws the orders; default: the runtime's
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
	if o.random == nil {
		o.random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
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
		if name == all[0].name && r.one != nil && r.columns[0].ratio {
			names = append(names, name+" "+twin)
		}
	}
	return names
}

// Run measures, row by row. An error names the row and the peer that it is about, and
// leaves what was measured before; so does the end of ctx, whose cause is the error then.
func Run(ctx context.Context, o Options) (*Report, error) {
	p, err := o.plan()
	if err != nil {
		return nil, err
	}
	step := p.Progress
	if step == nil {
		step = func() {}
	}
	report := &Report{}
	for _, r := range p.rows {
		result := newResult(r, p.of(r))
		report.Rows = append(report.Rows, result)
		for range p.Rounds {
			figures, err := p.round(ctx, r, result, step)
			if err != nil {
				return report, err
			}
			result.add(figures)
		}
	}
	return report, nil
}

// steps is how many measurements a round of r has.
func (p *plan) steps(r *row) int {
	if r.side != nil {
		return 1
	}
	return len(p.of(r))
}

// round measures every peer once. It adds to the notes of the result, not to its figures.
func (p *plan) round(ctx context.Context, r *row, result *Result, step func()) (map[string][]float64, error) {
	names := p.of(r)
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: none of the peers redials", r.name)
	}
	if r.side != nil {
		defer step()
		x := p.exam(ctx, names[0])
		defer x.end()
		figures, err := r.side(x, names)
		return figures, about(ctx, r.name, err)
	}
	figures := map[string][]float64{}
	for _, i := range p.random.Perm(len(names)) {
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
		step()
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
