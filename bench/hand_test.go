//go:build unix

package main

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/cli"
)

// built is this program, as a user runs it.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programs, "bench")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return string(out), err
	}
	return path, nil
})

// program is a running one.
type program struct {
	*exec.Cmd
	lines <-chan string // of both its outputs
}

func start(t *testing.T, args ...string) *program {
	path, err := built()
	require.NoError(t, err, path)
	p := &program{Cmd: exec.Command(path, args...)}
	r, w := io.Pipe()
	p.Stdout, p.Stderr = w, w
	require.NoError(t, p.Start())
	lines := make(chan string, 10_000)
	go func() { // ends with the program: see end
		defer close(lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
		}
	}()
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait(); _ = w.Close() })
	p.lines = lines
	return p
}

// until returns the next line that has words in it.
func (p *program) until(t *testing.T, words string) string {
	t.Helper()
	late := time.After(2 * time.Minute)
	var before []string
	for {
		select {
		case line, ok := <-p.lines:
			require.True(t, ok, "%q has ended without %q:\n%s", p.Args[1:], words, strings.Join(before, "\n"))
			if strings.Contains(line, words) {
				return line
			}
			before = append(before, line)
		case <-late:
			require.Fail(t, "late", "%q has not said %q:\n%s", p.Args[1:], words, strings.Join(before, "\n"))
		}
	}
}

// interrupt is Ctrl-C. It returns the exit code.
func (p *program) interrupt(t *testing.T) int {
	require.NoError(t, p.Process.Signal(syscall.SIGINT))
	_ = p.Wait() // its code says how it ended
	return p.ProcessState.ExitCode()
}

// A reader stops the server of a storm by hand, lets it go on, and ends both programs.
func TestAStormCanBeStoppedByHand(t *testing.T) {
	t.Parallel()
	server := start(t, "storm", "-serve", "127.0.0.1:0")
	_, address, _ := strings.Cut(server.until(t, "the server listens at "), "listens at ")
	address, _, _ = strings.Cut(address, ". ")
	clients := start(t, "storm", "-connect", address, "-clients", "100", "-lambda", "500ms", "-timeout", "300ms", "-policy", "simple")
	clients.until(t, "timed out")
	seconds := func(n int) {
		for range n {
			clients.until(t, "s ")
		}
	}
	seconds(2)
	require.NoError(t, server.Process.Signal(syscall.SIGSTOP))
	seconds(3)
	require.NoError(t, server.Process.Signal(syscall.SIGCONT))
	server.until(t, "goes on after a stop of ")
	server.until(t, "s ")
	seconds(1)
	require.Equal(t, cli.ExitInterrupted, clients.interrupt(t))
	require.Regexp(t, `^client=simple clients=100 time=\d+s ok=[1-9]\d* timed_out=[1-9]\d* failed=\d+ away=\d+ well=`, clients.until(t, "client="))
	require.Equal(t, cli.ExitInterrupted, server.interrupt(t))
	server.until(t, "bench: interrupted")
}
