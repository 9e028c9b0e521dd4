//go:build linux

package recipes_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/internal/server"
)

// startPeer starts this test binary as the server with that name in peers.
func startPeer(t *testing.T, name string, args ...string) *server.Server {
	s := server.New(t, func(port string) *exec.Cmd {
		c := exec.Command(os.Args[0], append([]string{port}, args...)...)
		c.Env = append(os.Environ(), serverEnv+"="+name)
		return c
	})
	s.Start()
	return s
}

// recipe is a program of examples/recipes that runs.
type recipe struct {
	t          *testing.T
	cmd        *exec.Cmd
	in         io.Writer // its standard input
	out, notes string    // the files that have its standard output and standard error
}

// run builds a recipe of examples/recipes and starts it. The recipe is killed when the test ends.
func run(t *testing.T, name string, args ...string) *recipe {
	return runIn(t, "../../../examples/recipes", name, args...)
}

// runIn is run with a program of another directory.
func runIn(t *testing.T, parent, name string, args ...string) *recipe {
	dir := t.TempDir()
	binary := filepath.Join(dir, name)
	build := exec.Command("go", "build", "-o", binary, "./"+name)
	build.Dir = parent
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	r := &recipe{t: t, cmd: exec.Command(binary, args...), out: filepath.Join(dir, "out"), notes: filepath.Join(dir, "notes")}
	out, err := os.Create(r.out)
	require.NoError(t, err)
	defer out.Close()
	notes, err := os.Create(r.notes)
	require.NoError(t, err)
	defer notes.Close()
	r.in, err = r.cmd.StdinPipe()
	require.NoError(t, err)
	r.cmd.Stdout, r.cmd.Stderr, r.cmd.SysProcAttr = out, notes, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
		if t.Failed() {
			t.Logf("%s wrote:\n%s\n%s", name, r.read(r.out), r.read(r.notes))
		}
	})
	return r
}

func (r *recipe) read(file string) string {
	text, err := os.ReadFile(file)
	require.NoError(r.t, err)
	return string(text)
}

// lines returns the lines that the recipe has written to standard output, without a last one that is not complete.
func (r *recipe) lines() []string {
	lines := strings.Split(r.read(r.out), "\n")
	return lines[:len(lines)-1]
}

// patience is how long a test waits for something that must happen. Nothing is measured by it.
const patience = 2 * time.Minute

// await waits until so many lines of standard output match a pattern.
func (r *recipe) await(n int, pattern string) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); len(r.matches(pattern)) < n; time.Sleep(5 * time.Millisecond) {
		require.True(r.t, time.Now().Before(deadline), "fewer than %d lines are %q", n, pattern)
	}
}

// matches returns each line of standard output that matches a pattern.
func (r *recipe) matches(pattern string) (list []string) {
	for _, line := range r.lines() {
		if regexp.MustCompile(pattern).MatchString(line) {
			list = append(list, line)
		}
	}
	return list
}

// numbered returns the lines "PREFIX FROM" to "PREFIX TO-1".
func numbered(prefix string, from, to int) (list []string) {
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprintf("%s %d", prefix, i))
	}
	return list
}

// tally compares the lines that came with those that were sent, each of which was sent once. lost have not
// come, and doubled have come more than once (a line that came three times is in it twice).
func tally(came, sent []string) (lost, doubled []string) {
	count := map[string]int{}
	for _, line := range came {
		if count[line]++; count[line] > 1 {
			doubled = append(doubled, line)
		}
	}
	for _, line := range sent {
		if count[line] == 0 {
			lost = append(lost, line)
		}
	}
	return lost, doubled
}
