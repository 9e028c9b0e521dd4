package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The longest times. A mutant that hangs is caught by the first.
const (
	ownLimit     = 5 * time.Minute
	historyLimit = 15 * time.Minute
)

// result is what a mutant has come to.
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
	if strings.HasPrefix(pkg, "./reconnect/internal/") { // the parts of a Conn, which are tested by one
		packages = append(packages, "./reconnect")
	}
	start := time.Now()
	for _, pkg := range packages {
		what, err := gotest(ctx, dir, p, module, ownLimit, "-failfast", pkg)
		if err != nil {
			return r, err
		}
		if what != "" {
			r.own = finding{true, fmt.Sprintf("%s, %v", what, time.Since(start).Round(time.Second))}
			break
		}
	}
	if !r.own.caught {
		r.own.text = "passed"
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
	start = time.Now()
	what, err := gotest(ctx, dir, p, module, historyLimit, "-run", "^TestHistories$", "./reconnect/internal/history",
		"-histories", fmt.Sprint(*histories), "-seed", "1")
	if err != nil {
		return r, err
	}
	r.histories = finding{what != "", "passed"}
	if what != "" {
		r.histories.text = fmt.Sprintf("%s, %v", what, time.Since(start).Round(time.Second))
	}
	return r, nil
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

// gotest runs tests with the overlay of p, and returns what has failed; nothing: all have passed. At its end no child
// is left.
func gotest(ctx context.Context, dir string, p *patch, module string, limit time.Duration, args ...string) (what string, err error) {
	within, cancel := context.WithTimeout(ctx, limit+2*time.Minute) // to compile, too
	defer cancel()
	args = append([]string{"test", "-overlay", p.overlay, "-vet=off", "-count=1", "-timeout", limit.String()}, args...)
	cmd := exec.CommandContext(within, "go", args...)
	var output bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = module, &output, &output
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "REDIAL_LONG=") // what is left there goes with dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Minute
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err == nil:
		return "", nil
	case within.Err() != nil:
		return "hangs", nil
	case strings.Contains(output.String(), "[build failed]") || strings.Contains(output.String(), "[setup failed]"):
		return "", fmt.Errorf("a test does not compile:\n%s", &output)
	}
	return reason(output.String()), nil
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
