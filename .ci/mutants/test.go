package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// These limits are wide, because the machine may do other work too. The first one ends a mutant that hangs.
const (
	ownLimit     = 5 * time.Minute
	historyLimit = 20 * time.Minute
)

// result says whether, and by which tests, a mutant was found.
type result struct {
	*patch
	own, histories finding
}

// finding is what one kind of test has found.
type finding struct {
	caught bool
	text   string
}

// test runs the tests of the packages of p, and random histories.
func test(ctx context.Context, dir string, p *patch) (result, error) {
	r := result{patch: p}
	module, pkg := p.module()
	packages := []string{pkg}
	if module == "./" && (pkg == "./reconnect" || partOfConn(pkg)) {
		packages = append(packages, connTests()...)
		packages = slices.Compact(packages) // package reconnect comes first
	}
	for i := 0; i < len(packages) && !r.own.caught; i++ {
		what, err := gotest(ctx, dir, p, module, packages[i], ownLimit, "-test.failfast")
		if err != nil {
			return r, err
		}
		r.own = found(what)
	}
	uses, err := inHistories(ctx, module, pkg)
	switch {
	case err != nil:
		return r, err
	case *histories == 0:
		r.histories.text = "not run"
		return r, nil
	case !uses:
		r.histories.text = "not part of a history"
		return r, nil
	}
	what, err := gotest(ctx, dir, p, module, "./reconnect/internal/history", historyLimit, historyArgs(pkg)...)
	r.histories = found(what)
	return r, err
}

// partOfConn reports whether a package is a part of a Conn, which the tests of a Conn test, too.
func partOfConn(pkg string) bool {
	return strings.HasPrefix(pkg, "./reconnect/internal/") && pkg != "./reconnect/internal/meter"
}

// connTests returns the packages with the tests of a Conn: package reconnect and each area of conntests.
func connTests() []string {
	areas, _ := filepath.Glob("reconnect/internal/conntests/*") // the pattern is valid
	packages := []string{"./reconnect"}
	for _, area := range areas {
		packages = append(packages, "./"+filepath.ToSlash(area))
	}
	return packages
}

// found returns the finding for what gotest has returned.
func found(what string) finding {
	if what == "" {
		return finding{text: "passed"}
	}
	return finding{caught: true, text: what}
}

// inHistories reports whether the histories import a package.
func inHistories(ctx context.Context, module, pkg string) (bool, error) {
	if module != "./" {
		return false, nil
	}
	out, err := exec.CommandContext(ctx, "go", "list", "-test", "-deps", "./reconnect/internal/history").Output()
	if err != nil {
		return false, fmt.Errorf("go list: %w", err)
	}
	return slices.Contains(strings.Fields(string(out)), "github.com/redial-go/redial/"+strings.TrimPrefix(pkg, "./")), nil
}

// historyArgs returns the arguments for random histories. If the package is one that a history has above its Conn, each history has it.
func historyArgs(pkg string) []string {
	args := []string{"-test.run=^TestHistories$", fmt.Sprint("-histories=", *histories), "-seed=1", "-first"}
	if name := filepath.Base(pkg); slices.Contains([]string{"subscription", "call", "ledger", "bridge", "drain"}, name) {
		args = append(args, "-above="+name)
	}
	return args
}

// gotest runs the tests of a package with the overlay of p, and returns what has failed, and after what time; nothing: all
// have passed. At its end no child is left.
func gotest(ctx context.Context, dir string, p *patch, module, pkg string, limit time.Duration, args ...string) (what string, err error) {
	binary := filepath.Join(dir, p.name, "mutant.test")
	defer os.Remove(binary)
	if output, err := p.execute(ctx, module, "go", "test", "-c", "-overlay", p.overlay, "-vet=off", "-o", binary, pkg); err != nil {
		return "", fmt.Errorf("the tests of %s: %w\n%s", pkg, err, output)
	}
	if _, err := os.Stat(binary); err != nil {
		return "", nil // there are no tests
	}
	start := time.Now()
	output, err := p.execute(ctx, filepath.Join(module, pkg), binary, append([]string{"-test.timeout", limit.String()}, args...)...)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err == nil:
		return "", nil
	}
	return fmt.Sprintf("%s, %v", reason(output), time.Since(start).Round(100*time.Millisecond)), nil
}

// execute runs a command in a directory of the module, in a group of processes that ends with ctx, and returns its output.
func (p *patch) execute(ctx context.Context, dir, name string, args ...string) (output string, err error) {
	var all bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &all, &all
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Dir(p.overlay), "REDIAL_LONG=") // files that a test leaves in this directory are removed in the end
	cmd.Env = append(cmd.Env, p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Minute
	err = cmd.Run()
	return all.String(), err
}

var (
	failed  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	seed    = regexp.MustCompile(`seed \d+: [^\n]*`)
	running = regexp.MustCompile(`\.((?:Test|Fuzz|Example)\w*)(?:\.func[\d.]+)*\(`)
	panics  = regexp.MustCompile(`(?m)^(?:panic|fatal error): .*`)
)

// reason returns what has failed first, by the output of go test.
func reason(output string) string {
	what := panics.FindString(output)
	if name := failed.FindStringSubmatch(output); name != nil && name[1] != "TestHistories" {
		return name[1]
	}
	if s := seed.FindString(output); s != "" {
		return s
	}
	if name := running.FindStringSubmatch(output); name != nil {
		return name[1] + " (" + what + ")"
	}
	if strings.Contains(output, "goleak") {
		return "goleak"
	}
	return strings.TrimSpace("failed " + what)
}
