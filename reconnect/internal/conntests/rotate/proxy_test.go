//go:build unix

package rotate_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// What the tests behind a real nginx and a real haproxy have in common.

// proxy is a real reverse proxy in a process of its own, before a real server.
type proxy struct {
	addr string
	cmd  *exec.Cmd
}

// startProxy starts a program that listens on addr, with a file of its own for the
// configuration. It may take a moment to listen, which a Conn does not mind.
func startProxy(t *testing.T, name, addr, config string, args func(dir, file string) []string) *proxy {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + name); err != nil {
			t.Skipf("no %s on this machine", name)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, name+".conf")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	var log bytes.Buffer
	p := &proxy{addr: addr, cmd: exec.Command(path, args(dir, file)...)}
	p.cmd.Stdout, p.cmd.Stderr = &log, &log
	require.NoError(t, p.cmd.Start())
	// Stop it when the test ends.
	t.Cleanup(func() {
		p.cmd.Process.Signal(syscall.SIGTERM)
		p.cmd.Wait() // until its workers have closed the log as well
		if t.Failed() {
			t.Logf("%s says:\n%s", name, log.Bytes())
		}
	})
	return p
}

// freeAddr returns an address on loopback on which nobody listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// reload makes the proxy start a new process for what comes, and waits until that serves. A
// connection may still come to the old one for a moment.
func (p *proxy) reload(t *testing.T, signal syscall.Signal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	old := p.process(t, ctx)
	for i := 0; p.process(t, ctx) == old; i++ {
		if i%100 == 0 { // more than once, because haproxy's master misses what comes while it starts
			require.NoError(t, p.cmd.Process.Signal(signal))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// process returns the id of the process that a new request comes to.
func (p *proxy) process(t *testing.T, ctx context.Context) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.addr, nil)
		require.NoError(t, err)
		answer, err := client.Do(r)
		if err == nil {
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err == nil && answer.StatusCode == http.StatusOK {
				return string(body)
			}
		}
		require.NoError(t, ctx.Err(), err)
		time.Sleep(10 * time.Millisecond)
	}
}

// awaitExit waits until a process has ended.
func awaitExit(t *testing.T, process string) {
	t.Helper()
	pid, err := strconv.Atoi(process)
	require.NoError(t, err)
	for range 6000 { // a minute
		if syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	require.FailNow(t, "the process has not ended", process)
}

// client is a Conn through a proxy, and the errors of its dials.
type client struct {
	t   *testing.T
	ctx context.Context
	*reconnect.Conn
	failures chan error // when it is full, further ones are dropped
}

func (p *proxy) dial(t *testing.T, o reconnect.Options) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := &client{t: t, ctx: ctx, failures: make(chan error, 100)}
	o.Run.Policy = scene.Every(20 * time.Millisecond)
	o.Run.Trace = &reconnect.Trace{DialDone: func(d reconnect.DialDone) {
		select {
		case c.failures <- d.Err:
		default:
		}
	}}
	var err error
	c.Conn, err = reconnect.New(&dialer.WebSocket{URL: "ws://" + p.addr}, &o)
	require.NoError(t, err)
	t.Cleanup(func() { scene.CloseAndWait(c.Conn) })
	return c
}

// numberClient is a Conn through a proxy to a numberServer, and what it has read.
type numberClient struct {
	*client
	numberLog
}

// startNumbers starts a numberServer, and returns its address.
func startNumbers(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	new(numberServer).run(t, l, 2*time.Millisecond)
	return l.Addr().String()
}

func (p *proxy) dialNumbers(t *testing.T, r reconnect.Rotation) *numberClient {
	t.Helper()
	o := reconnect.Options{OnSession: awaitWelcome, Rotate: r}
	o.Inbox.Messages = 1 << 16 // so that no seam says that the reader was slow
	return &numberClient{client: p.dial(t, o)}
}

// read reads up to the next number, and returns the process that it came through.
func (c *numberClient) read() (process string) {
	c.t.Helper()
	for before := len(c.entries); ; before = len(c.entries) {
		require.NoError(c.t, c.add(c.Read(c.ctx, nil)))
		if c.entries[before].seam == nil {
			return c.process
		}
	}
}

// requireSeamless requires that sessions were replaced, and that nothing is missing.
func (c *numberClient) requireSeamless() {
	c.t.Helper()
	require.NotEmpty(c.t, c.seams())
	for _, s := range c.seams() {
		require.Equal(c.t, "rotated planned overlapped", seamWords(s))
	}
	require.Empty(c.t, c.missing(), c.String())
}
