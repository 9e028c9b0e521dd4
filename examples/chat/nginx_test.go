//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// nginx is a real nginx in front of a server. Its configuration is nginx.conf with other
// addresses and a shorter life of old workers.
type nginx struct {
	addr string
	cmd  *exec.Cmd
	path string
	dir  string
}

func startNginx(t *testing.T, backend string) *nginx {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Skip("no nginx on this machine")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := &nginx{addr: l.Addr().String(), path: path, dir: t.TempDir()}
	require.NoError(t, l.Close())
	config, err := os.ReadFile("nginx.conf")
	require.NoError(t, err)
	for old, now := range map[string]string{
		"127.0.0.1:8080":               n.addr,
		"127.0.0.1:8000;":              backend + ";",
		"worker_shutdown_timeout 10s;": "worker_shutdown_timeout 1s;",
	} {
		require.Contains(t, string(config), old)
		config = []byte(strings.ReplaceAll(string(config), old, now))
	}
	require.NoError(t, os.WriteFile(filepath.Join(n.dir, "nginx.conf"), config, 0o600))
	n.start(t)
	return n
}

func (n *nginx) start(t *testing.T) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(n.path, "-c", filepath.Join(n.dir, "nginx.conf"), "-p", n.dir, "-e", "stderr")
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	n.cmd = cmd
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait() // also until its workers have closed the log
		if t.Failed() {
			t.Logf("nginx says:\n%s", log.Bytes())
		}
	})
}

// The test reloads the proxy, kills the server behind it, and restarts the proxy.
func TestBehindNginxNothingIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	server, addr := serveIt(t, "", "-log", log)
	n := startNginx(t, addr)
	ann, bob := joinIt(t, n.addr, "ann"), joinIt(t, n.addr, "bob")
	hurry(ann, "-- here as ann", 1)
	hurry(bob, "-- here as bob", 1)
	const lines = 60
	for i, harm := range []func(){
		func() { require.NoError(t, n.cmd.Process.Signal(syscall.SIGHUP)) },
		func() { server.Kill(); server, _ = serveIt(t, addr, "-log", log) },
		func() { n.cmd.Process.Signal(syscall.SIGTERM); n.cmd.Wait(); n.start(t) },
	} {
		for _, text := range numbered("line", i*lines+1, (i+1)*lines) {
			ann.Type(text)
		}
		bob.Await(fmt.Sprintf("ann: line %d\n", i*lines+lines/2))
		harm()
		hurry(ann, "-- back after ", i+1)
		hurry(bob, "-- back after ", i+1)
	}
	ann.Type("the end")
	hurry(bob, "ann: the end\n", 1)
	require.Equal(t, append(numbered("line", 1, 3*lines), "the end"), heard(bob, "ann"))
}
