package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// suite is a binary of tests. A mutant is caught if it fails in one of them.
type suite struct {
	what    string // for the table
	pkg     string
	limit   time.Duration // ends a mutant that waits for ever
	seconds int           // of processor time: ends a mutant that runs for ever
	args    []string
	binary  string
	env     []string
	tests   []reach // or nil, if each mutant is run with all tests
}

// suites returns the tests of the package, for package reconnect with those of conntests, then random histories,
// then, for a part of a Conn, the tests of a Conn. Without histories it returns only the tests of the package.
func (m *made) suites(ctx context.Context) ([]*suite, error) {
	all := []*suite{{what: "own tests", pkg: "./" + m.pkg, args: []string{"-test.failfast"}}}
	addConnTests := func() {
		for _, pkg := range connTests() {
			if pkg != "./"+m.pkg {
				what := strings.TrimPrefix(pkg, "./")
				all = append(all, &suite{what: what, pkg: pkg, args: []string{"-test.failfast"}})
			}
		}
	}
	if m.pkg == "reconnect" {
		addConnTests()
	}
	if *histories == 0 {
		return all, nil
	}
	uses, err := inHistories(ctx, "./", "./"+m.pkg)
	if err != nil {
		return nil, err
	}
	if uses {
		all = append(all, &suite{what: "histories", pkg: "./reconnect/internal/history", args: historyArgs(m.pkg)})
	}
	if partOfConn("./" + m.pkg) {
		addConnTests()
	}
	return all, nil
}

// usage returns the processor time that the children of this process have used.
func usage() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// check runs the tests without a mutant, and sets the limits that end a mutant that hangs.
// The limits are wide, because the machine may do other work too.
func (s *suite) check(ctx context.Context, dir string) error {
	if s.binary == "" {
		return nil
	}
	s.limit, s.seconds = 10*time.Minute, 600
	start, used := time.Now(), usage()
	output, err := s.execute(ctx, dir, 0, s.args...)
	s.limit = 20*time.Second + 4*time.Since(start)
	s.seconds = int(10 + 4*(usage()-used).Seconds())
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("the tests fail without a mutant: %s", reason(output))
	}
	return nil
}

// memory is the limit in KiB for the process of the tests: a mutant that allocates for ever must not use all memory of the machine.
const memory = 6 << 20

// build compiles the tests with an overlay. A package without tests has no binary.
func (s *suite) build(ctx context.Context, dir, overlay string) error {
	s.binary = filepath.Join(dir, strings.NewReplacer(" ", "-", "/", "-").Replace(s.what)+".test")
	p := &patch{overlay: overlay}
	if output, err := p.execute(ctx, ".", "go", "test", "-c", "-overlay", overlay, "-vet=off", "-o", s.binary, s.pkg); err != nil {
		return fmt.Errorf("the tests of %s: %w\n%s", s.pkg, err, output)
	}
	if _, err := os.Stat(s.binary); errors.Is(err, fs.ErrNotExist) {
		s.binary = ""
	}
	return nil
}

// run runs the tests with the n-th mutant, or without one if n is 0, and returns what has failed.
func (s *suite) run(ctx context.Context, dir string, n int) (what string, err error) {
	if s.binary == "" {
		return "", nil
	}
	start := time.Now()
	output, err := s.execute(ctx, dir, n, s.args...)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err == nil:
		return "", nil
	}
	return fmt.Sprintf("%s: %s, %v", s.what, reason(output), time.Since(start).Round(100*time.Millisecond)), nil
}

// execute runs the binary with the n-th mutant, or without one if n is 0.
func (s *suite) execute(ctx context.Context, dir string, n int, args ...string) (output string, err error) {
	p := &patch{overlay: filepath.Join(dir, "overlay"), env: append([]string{fmt.Sprint(number, "=", n)}, s.env...)}
	limited := fmt.Sprintf("ulimit -v %d && ulimit -t %d && exec \"$@\"", memory, s.seconds)
	all := []string{"-c", limited, "sh", s.binary, "-test.timeout", s.limit.String()}
	return p.execute(ctx, s.pkg, "sh", append(all, args...)...)
}

// alone builds and runs the tests with an edit in a declaration of the package, and returns what has failed.
func (s *suite) alone(ctx context.Context, m *made, e *edit) (what string, err error) {
	dir, err := os.MkdirTemp(m.dir, "alone")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.alone(dir, e)
	if err != nil {
		return "", err
	}
	alone := *s
	if err := alone.build(ctx, dir, overlay); err != nil {
		return "", err
	}
	return alone.run(ctx, dir, 0)
}
