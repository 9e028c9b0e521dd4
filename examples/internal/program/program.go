// Package program runs an example as a process, for its tests.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// environ tells a process that it is the program and not its tests.
const environ = "REDIAL_EXAMPLE_PROGRAM=1"

// Main runs the tests of m. If a test has started this process as the program, Main calls run
// instead and exits with the code that run returns. So the program is built like its tests,
// for instance with the race detector. Both must leave no goroutine but those that ignore
// names.
func Main(m *testing.M, run func() int, ignore ...goleak.Option) {
	name, _, _ := strings.Cut(environ, "=")
	if os.Getenv(name) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	code := run()
	if err := goleak.Find(ignore...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 70
	}
	os.Exit(code)
}

// Program is a process that a test has started.
type Program struct {
	*Output         // both standard output and standard error, unless connect sets others
	Out     *Output // standard output, of StartFilter
	Cmd     *exec.Cmd
	Stdin   io.Writer
	Copying sync.WaitGroup // what copies the output, if it is not package exec

	t     *testing.T
	ended chan struct{}
	want  string // the lines of Out that the test has waited for
}

// Start starts the program of this test binary, with pipes. The process is killed after a
// minute and when the test ends.
func Start(t *testing.T, args ...string) *Program {
	t.Helper()
	return StartWith(t, func(p *Program) {
		in, err := p.Cmd.StdinPipe()
		require.NoError(t, err)
		p.Stdin = in
		p.Cmd.Stdout, p.Cmd.Stderr = p, p
	}, args...)
}

// StartFilter is Start, but standard output goes to Out, and Output has standard error alone.
func StartFilter(t *testing.T, args ...string) *Program {
	t.Helper()
	return StartWith(t, func(p *Program) {
		in, err := p.Cmd.StdinPipe()
		require.NoError(t, err)
		p.Out = p.NewOutput()
		p.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = in, p.Out, p
	}, args...)
}

// StartWith is Start, but connect sets Stdin and the files of Cmd.
func StartWith(t *testing.T, connect func(*Program), args ...string) *Program {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return StartFile(t, self, connect, args...)
}

// StartFile is StartWith for the program in a file.
func StartFile(t *testing.T, file string, connect func(*Program), args ...string) *Program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	p := &Program{Cmd: exec.CommandContext(ctx, file, args...), t: t, ended: make(chan struct{})}
	p.Output = p.NewOutput()
	p.Cmd.Env = append(os.Environ(), environ, "TERM=xterm", "USER=me", "GORACE=atexit_sleep_ms=0")
	connect(p)
	if signal.Ignored(os.Interrupt) { // as in the background of a script: the program would ignore it, too
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	require.NoError(t, p.Cmd.Start())
	go func() { // the cleanup waits for it
		defer close(p.ended)
		p.Cmd.Wait()
		p.Copying.Wait()
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
		if t.Failed() {
			t.Logf("%s wrote:\n%s", strings.Join(args, " "), p)
		}
	})
	return p
}

// FullDisk returns a connect for StartWith and StartFile by which the program has a full disk behind
// standard output. Its input is a pipe that stays open, and Output has standard error alone. FullDisk
// skips the test on a system without /dev/full.
func FullDisk(t *testing.T) (connect func(*Program)) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full on this system: ", err)
	}
	t.Cleanup(func() { full.Close() })
	return func(p *Program) {
		in, err := p.Cmd.StdinPipe()
		require.NoError(t, err)
		p.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = in, full, p
	}
}

// NewOutput returns an Output that ends with the process, for connect to use.
func (p *Program) NewOutput() *Output {
	o := NewOutput(p.t)
	o.ended = p.ended
	return o
}

// WantLines waits for the next lines of Out.
func (p *Program) WantLines(want ...string) {
	p.t.Helper()
	for _, line := range want {
		p.want += line + "\n"
		p.Out.Find("^" + regexp.QuoteMeta(p.want))
	}
}

// Type enters lines.
func (p *Program) Type(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		p.Press(line + "\n")
	}
}

// Press enters keys.
func (p *Program) Press(keys string) {
	p.t.Helper()
	_, err := io.WriteString(p.Stdin, keys)
	require.NoError(p.t, err)
}

// CloseInput ends the input.
func (p *Program) CloseInput() {
	p.t.Helper()
	require.NoError(p.t, p.Stdin.(io.Closer).Close())
}

// Interrupt sends what Ctrl-C sends. It skips the test on Windows, which cannot.
func (p *Program) Interrupt() {
	p.t.Helper()
	if runtime.GOOS == "windows" {
		p.t.Skip("Windows has no interrupt that a test could send")
	}
	if err := p.Cmd.Process.Signal(os.Interrupt); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(p.t, err)
	}
}

// Kill ends the process as a crash does.
func (p *Program) Kill() {
	p.t.Helper()
	require.NoError(p.t, p.Cmd.Process.Kill())
	p.ExitCode()
}

// Ended returns a channel that is closed when the process has ended.
func (p *Program) Ended() <-chan struct{} { return p.ended }

// ExitCode waits for the end of the process and returns its exit code, or -1 if a signal ended
// it.
func (p *Program) ExitCode() int {
	<-p.ended
	return p.Cmd.ProcessState.ExitCode()
}
