package server

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/port"
)

// Server is a program that accepts connections on one port. One goroutine uses it: that of the test.
type Server struct {
	Port    string         // stays the same when the program starts again
	Address string         // 127.0.0.1 and the port
	In      io.WriteCloser // the standard input of the process that runs now

	// Patience is how long the program may take until it accepts connections. Default: 5 s.
	Patience time.Duration

	t       testing.TB
	command func() *exec.Cmd
	running *exec.Cmd
	output  string // the file to which it writes; a buffer would need goroutines
}

// New returns a Server that does not run yet. command returns the program for a port of 127.0.0.1, which is the
// same at each call. The program is killed when the test ends, or when the process of the test dies.
func New(t testing.TB, command func(port string) *exec.Cmd) *Server {
	p := port.Free(t)
	s := &Server{Port: p, Address: "127.0.0.1:" + p, t: t, output: filepath.Join(t.TempDir(), "output")}
	s.command = func() *exec.Cmd { return command(p) }
	t.Cleanup(s.Kill)
	return s
}

// Start runs the program and waits until it accepts connections. A program that ends instead is started
// again, at most 100 times: an old one may still hold its memory or its lock.
func (s *Server) Start() {
	s.t.Helper()
	for range 100 {
		output, err := os.Create(s.output)
		require.NoError(s.t, err)
		s.running = s.command()
		if s.running.SysProcAttr == nil {
			s.running.SysProcAttr = new(syscall.SysProcAttr)
		}
		s.running.SysProcAttr.Pdeathsig = syscall.SIGKILL // of the thread that starts it, in fact; Go keeps its threads
		s.running.Stdout, s.running.Stderr = output, output
		s.In, err = s.running.StdinPipe()
		require.NoError(s.t, err)
		require.NoError(s.t, s.running.Start())
		output.Close()
		if s.accepts() {
			return
		}
		s.Kill()
	}
	require.FailNow(s.t, "the server does not come up", s.Output())
}

// Output returns what the process that was started last has written to standard output and standard error.
func (s *Server) Output() string {
	said, err := os.ReadFile(s.output)
	require.NoError(s.t, err)
	return string(said)
}

func (s *Server) accepts() bool {
	for range cmp.Or(s.Patience, 5*time.Second) / (10 * time.Millisecond) {
		if nc, err := net.Dial("tcp", s.Address); err == nil {
			nc.Close()
			return true
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/exe", s.running.Process.Pid)); err != nil {
			return false // it has ended
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// Kill ends the program, and the processes that it has started, by SIGKILL, as a power cut would. Kill does nothing
// if the program does not run.
func (s *Server) Kill() {
	if s.running == nil {
		return
	}
	pids := children(s.running.Process.Pid)
	_ = s.running.Process.Kill()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = s.running.Wait()
	s.In.Close()
	s.running = nil
}

func children(pid int) (pids []int) {
	list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, field := range strings.Fields(string(list)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Find returns the path of a program, by its name or by a pattern of paths. It skips the test if there is none.
func Find(t testing.TB, name, pattern string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, _ := filepath.Glob(pattern)
	if len(found) == 0 {
		t.Skipf("%s is not installed", name)
	}
	return found[len(found)-1]
}
