package server

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Redis starts a redis-server that writes each command to its disk before the answer.
func Redis(t testing.TB) *Server {
	path, dir := Find(t, "redis-server", "/usr/bin/redis-server"), t.TempDir()
	s := New(t, func(port string) *exec.Cmd {
		return exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "yes", "--appendfsync", "always")
	})
	s.Start()
	return s
}

// Postgres starts a PostgreSQL with an empty database, and returns the database's address.
func Postgres(t testing.TB) (s *Server, url string) {
	initdb := Find(t, "initdb", "/usr/lib/postgresql/*/bin/initdb")
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	data := filepath.Join(dir, "data")
	if id := unprivileged(t); id != nil {
		require.NoError(t, os.Chown(dir, int(id.Uid), int(id.Gid)))
	}
	run := func(name string, arguments ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(filepath.Dir(initdb), name), arguments...)
		c.Dir, c.SysProcAttr = dir, &syscall.SysProcAttr{Credential: unprivileged(t), Pdeathsig: syscall.SIGKILL}
		return c
	}
	output, err := run("initdb", "-D", data, "-U", "redial", "-A", "trust", "--no-sync").CombinedOutput()
	require.NoError(t, err, string(output))
	s = New(t, func(port string) *exec.Cmd {
		return run("postgres", "-D", data, "-p", port, "-h", "127.0.0.1", "-k", "")
	})
	s.Start()
	return s, "postgres://redial@" + s.Address + "/postgres"
}

// unprivileged returns the user as which PostgreSQL runs, because it refuses root; nil means ours.
func unprivileged(t testing.TB) *syscall.Credential {
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
