package main

import (
	"context"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// reached names the variable of the environment that has the file in which a binary notes the functions that it calls.
const reached = "REDIAL_MUTANT_REACHED"

// soon is how long a test may take to be one of the fast tests.
const soon = 200 * time.Millisecond

// reach is one test of a package, and what it calls. A mutant is run only with the tests that call its function.
type reach struct {
	test  string
	took  time.Duration
	calls map[string]bool // the numbers of functions
}

// findReach runs each test of the suite alone without a mutant, and notes which functions with mutants it calls.
func (s *suite) findReach(ctx context.Context, dir string) error {
	if s.binary == "" {
		return nil
	}
	output, err := s.execute(ctx, dir, 0, "-test.list=^(Test|Fuzz|Example)")
	if err != nil {
		return fmt.Errorf("the list of tests: %s", reason(output))
	}
	names := strings.Fields(output)
	all, errs := make([]reach, len(names)), make([]error, len(names))
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	var work sync.WaitGroup
	for i, name := range names {
		places <- struct{}{}
		work.Go(func() {
			defer func() { <-places }()
			all[i], errs[i] = s.reachOf(ctx, dir, name)
		})
	}
	work.Wait()
	for i, err := range errs {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil: // a test that needs another one finds no mutant by itself
			fmt.Fprintf(os.Stderr, "mutants: %s does not pass alone: %v\n", names[i], err)
		default:
			s.tests = append(s.tests, all[i])
		}
	}
	return nil
}

// reachOf runs one test.
func (s *suite) reachOf(ctx context.Context, dir, name string) (reach, error) {
	file := filepath.Join(dir, name+".reached")
	alone := *s
	alone.env = append(alone.env, reached+"="+file)
	start := time.Now()
	if output, err := alone.execute(ctx, dir, 0, "-test.run=^"+name+"$"); err != nil {
		return reach{}, fmt.Errorf("%w: %s", err, reason(output))
	}
	r := reach{test: name, took: time.Since(start), calls: map[string]bool{}}
	text, err := os.ReadFile(file)
	for _, number := range strings.Fields(string(text)) {
		r.calls[number] = true
	}
	return r, err
}

// groups returns the tests that call a function in suites: the fast ones, because they catch most mutants, and then
// the others. A mutant in a function that no test calls has none.
func (s *suite) groups(function string) []*suite {
	var fast, slow []string
	var sums [2]time.Duration
	for _, t := range s.tests {
		switch {
		case !t.calls[function]:
		case t.took < soon:
			fast, sums[0] = append(fast, t.test), sums[0]+t.took
		default:
			slow, sums[1] = append(slow, t.test), sums[1]+t.took
		}
	}
	var all []*suite
	for i, names := range [][]string{fast, slow} {
		if len(names) == 0 {
			continue
		}
		g := *s
		g.args = append(slices.Clone(s.args), "-test.run=^("+strings.Join(names, "|")+")$")
		g.limit, g.seconds = 10*time.Second+8*sums[i], int(10+8*sums[i].Seconds())
		all = append(all, &g)
	}
	return all
}

// functionNumber returns the number of the function of an edit in the binary.
func (m *made) functionNumber(e *edit) string { return fmt.Sprint(slices.Index(m.functions(), e.decl)) }

// functions returns the functions that have mutants.
func (m *made) functions() (all []*ast.FuncDecl) {
	for _, e := range m.edits {
		if e.decl != nil && !slices.Contains(all, e.decl) {
			all = append(all, e.decl)
		}
	}
	return all
}

// chooser is a file of the package in a binary with mutants.
const chooser = `package %s

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutantAtWork    = func() int { n, _ := strconv.Atoi(os.Getenv(%q)); return n }()
	mutantReach, _  = os.OpenFile(os.Getenv(%q), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	mutantReached   [%d]atomic.Bool
)

func noteMutant(function int) {
	if mutantReach != nil && !mutantReached[function].Swap(true) {
		fmt.Fprintln(mutantReach, function)
	}
}
`
