package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"runtime"
	"strings"
	"sync"
)

// outcome is the result of an edit: the tests that fail with it, or nil, and what has failed in them.
type outcome struct {
	edit *edit
	by   *suite
	what string
	err  error
}

// hung reports whether the tests were ended by a limit.
func (o outcome) hung() bool {
	return strings.Contains(o.what, "test timed out") || strings.Contains(o.what, "cpu limit")
}

// caughtEach runs the mutants, several at a time, because those that hang wait and need no
// processor. It starts them and yields their outcomes in order.
func (m *made) caughtEach(ctx context.Context, suites []*suite) iter.Seq[outcome] {
	return func(yield func(outcome) bool) {
		ctx, stop := context.WithCancel(ctx)
		var work sync.WaitGroup
		defer work.Wait()
		defer stop()
		places := make(chan struct{}, 2*runtime.GOMAXPROCS(0))
		results := make(chan chan outcome, len(m.edits))
		work.Go(func() {
			defer close(results)
			for i, e := range m.edits {
				places <- struct{}{}
				result := make(chan outcome, 1)
				results <- result
				work.Go(func() {
					defer func() { <-places }()
					result <- m.caught(ctx, suites, i+1, e)
				})
			}
		})
		for result := range results {
			if !yield(<-result) {
				return
			}
		}
	}
}

// caught returns the first tests that fail with an edit.
func (m *made) caught(ctx context.Context, suites []*suite, n int, e *edit) outcome {
	for _, s := range suites {
		if e.decl == nil {
			if what, err := s.alone(ctx, m, e); err != nil || what != "" {
				return outcome{e, s, what, err}
			}
			continue
		}
		groups := []*suite{s}
		if s.tests != nil {
			groups = s.groups(m.functionNumber(e))
		}
		for _, g := range groups {
			if what, err := g.run(ctx, m.dir, n); err != nil || what != "" {
				return outcome{e, s, what, err}
			}
		}
	}
	return outcome{edit: e}
}

// runMade makes the mutants of a package and runs every step-th of them. It prints those that survive, and returns how many
// have survived without an explanation.
func runMade(ctx context.Context, pkg string, step int, known survivors) (survived int, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	m, err := makeMutants(ctx, dir, pkg, step)
	if err != nil {
		return 0, err
	}
	suites, err := m.suites(ctx)
	if err != nil {
		return 0, err
	}
	all, err := m.overlay()
	if err != nil {
		return 0, err
	}
	for _, t := range suites {
		if err := t.build(ctx, dir, all); err != nil {
			return 0, err
		}
		if err := t.check(ctx, dir); err != nil {
			return 0, fmt.Errorf("%s: %w", pkg, err)
		}
	}
	if err := suites[0].findReach(ctx, dir); err != nil {
		return 0, fmt.Errorf("%s: %w", pkg, err)
	}
	counts := map[string]int{}
	mutants, explainedHere, hung := 0, 0, 0
	for o := range m.caughtEach(ctx, suites) {
		mutants++
		e := o.edit
		switch {
		case o.err != nil:
			return 0, o.err
		case o.by != nil:
			counts[o.by.what]++
			if o.hung() {
				hung++
			}
			if known[e.name()] != "" {
				fmt.Printf("caught, though explained as a survivor: %s\n", e.name())
			}
			if *verbose {
				fmt.Printf("caught    %s:%d %s: %s (%s)\n", e.file, e.line, e.function, e.what, o.what)
			}
		case known[e.name()] != "":
			explainedHere++
		default:
			survived++
			fmt.Printf("SURVIVED  %s:%d %s: %s\n", e.file, e.line, e.function, e.what)
		}
	}
	total := 0
	for _, t := range suites {
		total += counts[t.what]
	}
	share := float64(total) / float64(max(mutants, 1))
	fmt.Printf("%s: %d mutants (of %d edits), %d caught (%.1f %%)", m.pkg, mutants, len(m.found), total, 100*share)
	for _, t := range suites {
		fmt.Printf(", %d by %s", counts[t.what], t.what)
	}
	fmt.Printf(" (%d of all hung until a limit); %d survived, and %d more as explained\n", hung, survived, explainedHere)
	return survived, nil
}
