//go:build unix

package reconnect_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// The tests of conn.go behind a real nginx.

const nginxConfig = `
daemon off;
worker_processes 1;
worker_shutdown_timeout 1s;
pid nginx.pid;
error_log stderr;
events { worker_connections 64; }
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	server {
		listen %s;
		location / {
			proxy_pass http://%s;
			proxy_http_version 1.1;
			proxy_set_header Upgrade $http_upgrade;
			proxy_set_header Connection "upgrade";
			proxy_read_timeout %ds;
		}
	}
}
`

// nginx is a real nginx, as a reverse proxy before a real server.
type nginx struct {
	addr    string
	cmd     *exec.Cmd
	backend *backend
}

// startNginx starts a proxy that gives up on a backend that is silent for some seconds. It may
// take a moment to listen, which a Conn does not mind.
func startNginx(t *testing.T, readTimeout int) *nginx {
	t.Helper()
	// Find nginx.
	path, err := exec.LookPath("nginx")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Skip("no nginx on this machine")
		}
	}
	// Choose a free port for it, and start the backend.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := &nginx{addr: l.Addr().String(), backend: &backend{}}
	require.NoError(t, l.Close())
	n.backend.start(t)
	t.Cleanup(n.backend.stop)

	// Start it with a configuration of its own.
	dir := t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, nginxConfig, n.addr, n.backend.addr, readTimeout), 0o600))
	var log bytes.Buffer
	n.cmd = exec.Command(path, "-c", file, "-p", dir, "-e", "stderr")
	n.cmd.Stdout, n.cmd.Stderr = &log, &log
	require.NoError(t, n.cmd.Start())
	// Stop it when the test ends.
	t.Cleanup(func() {
		n.cmd.Process.Signal(syscall.SIGTERM)
		n.cmd.Wait() // until its workers have closed the log as well
		if t.Failed() {
			t.Logf("nginx says:\n%s", log.Bytes())
		}
	})
	return n
}

// backend is a WebSocket server that echoes, and can be killed and started again.
type backend struct {
	addr string
	hang atomic.Bool // it answers no handshake

	server *http.Server
	serve  sync.WaitGroup
	end    context.CancelFunc
}

func (b *backend) start(t *testing.T) {
	t.Helper()
	addr := b.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	b.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	b.end = cancel
	b.server = &http.Server{Handler: b, BaseContext: func(net.Listener) context.Context { return ctx }}
	b.serve.Go(func() { b.server.Serve(l) }) // waited for in stop
}

// stop kills the server, without close frames.
func (b *backend) stop() {
	b.server.Close()
	b.end() // of the handlers, which net/http started
	b.serve.Wait()
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if b.hang.Load() {
		<-r.Context().Done()
		return
	}
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		kind, data, err := c.Read(r.Context())
		if err != nil || c.Write(r.Context(), kind, data) != nil {
			return
		}
	}
}

// client is a Conn through nginx, and the errors of its dials.
type client struct {
	t   *testing.T
	ctx context.Context
	*reconnect.Conn
	failures chan error // when it is full, further ones are dropped
}

func (n *nginx) dial(t *testing.T, o reconnect.Options) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := &client{t: t, ctx: ctx, failures: make(chan error, 100)}
	o.Run.Policy = every(20 * time.Millisecond)
	o.Run.Trace = &reconnect.Trace{DialDone: func(d reconnect.DialDone) {
		select {
		case c.failures <- d.Err:
		default:
		}
	}}
	var err error
	c.Conn, err = reconnect.New(&dialer.WebSocket{URL: "ws://" + n.addr}, &o)
	require.NoError(t, err)
	t.Cleanup(func() { closeAndWait(c.Conn) })
	return c
}

// echo writes a message, and requires it back by this session.
func (c *client) echo(session uint64) {
	c.t.Helper()
	said := fmt.Sprint("hello ", session)
	require.NoError(c.t, c.Await(c.ctx, reconnect.StateReady))
	require.NoError(c.t, c.Write(c.ctx, conn.Message{Type: conn.Text, Data: []byte(said)}))
	m, err := c.Read(c.ctx, nil)
	require.NoError(c.t, err, "a seam too many")
	require.Equal(c.t, said, string(m.Data))
	require.Equal(c.t, session, m.Session)
}

// seam waits for the loss of this session. A client of nginx always sees a hang-up without a
// close frame.
func (c *client) seam(session uint64) {
	c.t.Helper()
	_, err := c.Read(c.ctx, nil)
	var seam *reconnect.Seam
	require.ErrorAs(c.t, err, &seam)
	require.Equal(c.t, session, seam.Session)
	require.Equal(c.t, 1, seam.Lost)
	require.ErrorIs(c.t, seam.Cause, io.EOF)
}

// refused waits for a dial that is answered with this status.
func (c *client) refused(code int) {
	c.t.Helper()
	for {
		select {
		case err := <-c.failures:
			if hasStatus(code)(err) {
				return
			}
		case <-c.ctx.Done():
			require.FailNow(c.t, "no answer", code)
		}
	}
}

// Promise 5: the client sees EOF, then 502, and then a new session.
func TestNginxWithABackendThatIsKilled(t *testing.T) {
	t.Parallel()
	n := startNginx(t, 60)
	c := n.dial(t, reconnect.Options{})
	for session := uint64(1); session <= 3; session++ {
		c.echo(session)
		n.backend.stop()
		c.seam(session)
		c.refused(http.StatusBadGateway)
		n.backend.start(t)
	}
	c.echo(4)
}

// Promise 5: the old worker hangs up when its time is over.
func TestNginxThatIsReloaded(t *testing.T) {
	t.Parallel()
	n := startNginx(t, 60)
	c := n.dial(t, reconnect.Options{})
	for session := uint64(1); session <= 3; session++ {
		c.echo(session)
		require.NoError(t, n.cmd.Process.Signal(syscall.SIGHUP))
		c.seam(session)
	}
	c.echo(4)
}

// Promise 5: nginx hangs up on an idle connection without a close frame.
func TestNginxHangsUpOnAnIdleConnection(t *testing.T) {
	t.Parallel()
	n := startNginx(t, 3)
	c := n.dial(t, reconnect.Options{Liveness: reconnect.Liveness{Limit: -1}})
	c.echo(1)
	c.seam(1)
	c.echo(2)
}

// Promise 8: a connection that is probed is not idle. Without the probes nginx hangs up, as the
// test above shows.
func TestNginxKeepsAConnectionThatPings(t *testing.T) {
	t.Parallel()
	n := startNginx(t, 3)
	c := n.dial(t, reconnect.Options{Liveness: reconnect.Liveness{Limit: 3 * time.Second}})
	c.echo(1)
	for c.Stats().Probes < 6 { // of 1 s of silence each
		require.NoError(t, c.ctx.Err())
		time.Sleep(50 * time.Millisecond)
	}
	c.echo(1)
}

// Promise 9: a handshake that hangs behind nginx is a 504 for the client.
func TestNginxWithABackendThatHangs(t *testing.T) {
	t.Parallel()
	n := startNginx(t, 2)
	c := n.dial(t, reconnect.Options{})
	c.echo(1)
	n.backend.stop()
	c.seam(1)
	n.backend.hang.Store(true)
	n.backend.start(t)
	c.refused(http.StatusGatewayTimeout)
	n.backend.stop()
	n.backend.hang.Store(false)
	n.backend.start(t)
	c.echo(2)
}

// Promise 11: the goodbye passes through a proxy.
func TestNginxPassesOurGoodbye(t *testing.T) {
	t.Parallel()
	c := startNginx(t, 60).dial(t, reconnect.Options{})
	c.echo(1)
	require.NoError(t, c.Shutdown(c.ctx))
	require.Equal(t, net.ErrClosed, c.Err())
}
