//go:build linux

package recipes_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// piped is a recipe that reads its standard input. It can be killed and started again. The output of all its
// processes is in the same two files.
type piped struct {
	t      *testing.T
	binary string
	args   []string
	in     io.WriteCloser // the standard input of the process that runs now
	cmd    *exec.Cmd      // nil: none runs
}

// pipe builds a recipe and starts it. It is killed when the test ends.
func pipe(t *testing.T, name string, args ...string) *piped {
	binary := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-o", binary, "./"+name)
	build.Dir = "../../../examples/recipes"
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	return begin(t, binary, args)
}

// twin starts another process of the same recipe.
func (p *piped) twin(args ...string) *piped {
	binary := filepath.Join(p.t.TempDir(), filepath.Base(p.binary))
	require.NoError(p.t, os.Link(p.binary, binary))
	return begin(p.t, binary, args)
}

func begin(t *testing.T, binary string, args []string) *piped {
	p := &piped{t: t, binary: binary, args: args}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s wrote:\n%s\n%s", binary, tail(p.read(".out")), tail(p.read(".notes")))
		}
	})
	p.start()
	return p
}

// start starts the recipe, which must not run.
func (p *piped) start() { p.startTo(p.binary + ".out") }

// startFull is like start, but with a full disk behind the standard output.
func (p *piped) startFull() { p.startTo("/dev/full") }

func (p *piped) startTo(out string) {
	files := make([]*os.File, 2)
	for i, name := range []string{out, p.binary + ".notes"} {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(p.t, err)
		defer f.Close()
		files[i] = f
	}
	p.cmd = exec.Command(p.binary, p.args...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = files[0], files[1], &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	p.in, err = p.cmd.StdinPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, p.cmd.Start())
}

// kill ends the recipe by SIGKILL, if it runs.
func (p *piped) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

const (
	interruptLimit    = 500 * time.Millisecond // on the end of a recipe after Ctrl-C
	interruptAttempts = 3                      // to keep the limit, because another process may be using the machine
)

// interrupt sends what Ctrl-C sends, and waits for the end, whose exit code must be 0.
// It returns how long that took.
func (p *piped) interrupt() (took time.Duration) {
	begun := time.Now()
	require.NoError(p.t, p.cmd.Process.Signal(os.Interrupt))
	p.wait()
	return time.Since(begun)
}

// wait waits for the end of the recipe, whose exit code must be 0.
func (p *piped) wait() {
	err := p.cmd.Wait()
	p.cmd = nil
	require.NoError(p.t, err)
}

// ended reports whether the process, for which no method has waited, has ended.
func (p *piped) ended() bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d/exe", p.cmd.Process.Pid))
	return err != nil
}

// exitCode waits for the end of the recipe.
func (p *piped) exitCode() int {
	_ = p.cmd.Wait()
	code := p.cmd.ProcessState.ExitCode()
	p.cmd = nil
	return code
}

// waitFull waits for the end of a recipe that startFull has started. The recipe must report the full disk, and its exit
// code must be 4.
func (p *piped) waitFull() {
	p.t.Helper()
	p.noted(1, syscall.ENOSPC.Error())
	require.Equal(p.t, 4, p.exitCode())
}

// feed writes lines to the standard input.
func (p *piped) feed(lines ...string) {
	_, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n")
	require.NoError(p.t, err)
}

func (p *piped) read(suffix string) string {
	text, err := os.ReadFile(p.binary + suffix)
	require.NoError(p.t, err)
	return string(text)
}

// lines returns the complete lines of the standard output.
func (p *piped) lines() []string {
	lines := strings.Split(p.read(".out"), "\n")
	return lines[:len(lines)-1]
}

// noted waits until a text was written to the standard error so many times.
func (p *piped) noted(n int, text string) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("%d times %q", n, text), func() bool { return strings.Count(p.read(".notes"), text) >= n })
}

// eventually waits until something holds, and fails the test after two minutes.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "this does not happen: %s", what)
	}
}

// tail returns the end of a text.
func tail(text string) string { return text[max(0, len(text)-4000):] }

// linesOf returns the complete lines of a file, none if there is no file.
func linesOf(t *testing.T, file string) []string {
	text, err := os.ReadFile(file)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	lines := strings.Split(string(text), "\n")
	return lines[:len(lines)-1]
}
