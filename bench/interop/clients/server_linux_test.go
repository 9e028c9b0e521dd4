package clients_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/port"
)

// server is a program that a test starts on loopback, kills and starts again.
type server struct {
	t       *testing.T
	address string
	command func() *exec.Cmd
	running *exec.Cmd
	output  string // the file to which it writes; a buffer would need goroutines
}

// program finds the binary of a server, or skips the test.
func program(t *testing.T, name, pattern string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, _ := filepath.Glob(pattern)
	if len(found) == 0 {
		t.Skipf("%s is not installed (apt-get install redis-server postgresql)", name)
	}
	return found[len(found)-1]
}

// start runs the server and waits until it accepts connections.
func (s *server) start() {
	for range 100 {
		output, err := os.Create(s.output)
		require.NoError(s.t, err)
		s.running = s.command()
		s.running.Stdout, s.running.Stderr = output, output
		require.NoError(s.t, s.running.Start())
		output.Close()
		if s.accepts() {
			return
		}
		s.kill()
	}
	said, _ := os.ReadFile(s.output)
	require.FailNow(s.t, "the server does not come up", string(said))
}

func (s *server) accepts() bool {
	for range 200 {
		if nc, err := net.Dial("tcp", s.address); err == nil {
			nc.Close()
			return true
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/exe", s.running.Process.Pid)); err != nil {
			return false // it has ended, for instance since the old one still holds its memory
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// kill ends the server and what it has started as a power cut would, if it runs.
func (s *server) kill() {
	if s.running == nil {
		return
	}
	pids := children(s.running.Process.Pid)
	_ = s.running.Process.Kill()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = s.running.Wait()
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

func startRedis(t *testing.T) *server {
	path, port, dir := program(t, "redis-server", "/usr/bin/redis-server"), port.Free(t), t.TempDir()
	s := &server{t: t, address: "127.0.0.1:" + port, output: filepath.Join(dir, "output")}
	s.command = func() *exec.Cmd {
		return bound(exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "yes", "--appendfsync", "always"))
	}
	t.Cleanup(s.kill)
	s.start()
	return s
}

func startPostgres(t *testing.T) (s *server, url string) {
	initdb := program(t, "initdb", "/usr/lib/postgresql/*/bin/initdb")
	port, dir := port.Free(t), t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	data := filepath.Join(dir, "data")
	if id := unprivileged(t); id != nil {
		require.NoError(t, os.Chown(dir, int(id.Uid), int(id.Gid)))
	}
	run := func(name string, arguments ...string) *exec.Cmd {
		c := bound(exec.Command(filepath.Join(filepath.Dir(initdb), name), arguments...))
		c.Dir, c.SysProcAttr.Credential = dir, unprivileged(t)
		return c
	}
	output, err := run("initdb", "-D", data, "-U", "redial", "-A", "trust", "--no-sync").CombinedOutput()
	require.NoError(t, err, string(output))
	s = &server{t: t, address: "127.0.0.1:" + port, output: filepath.Join(dir, "output")}
	s.command = func() *exec.Cmd {
		return run("postgres", "-D", data, "-p", port, "-h", "127.0.0.1", "-k", "")
	}
	t.Cleanup(s.kill)
	s.start()
	return s, "postgres://redial@" + s.address + "/postgres"
}

// bound ends c with the test, even if that crashes.
func bound(c *exec.Cmd) *exec.Cmd {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// unprivileged returns the user as which PostgreSQL runs, because it refuses root; nil means ours.
func unprivileged(t *testing.T) *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.Atoi(u.Uid)
			gid, _ := strconv.Atoi(u.Gid)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Skip("PostgreSQL refuses root, and there is no user postgres or nobody")
	return nil
}
