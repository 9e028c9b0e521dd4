//go:build unix

package rotate_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// The tests of conn.go behind a real nginx.

const nginxConfig = `
daemon off;
worker_processes 1;
worker_shutdown_timeout %dms;
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
			proxy_set_header X-Process $pid;
			proxy_read_timeout %ds;
		}
	}
}
`

// nginx is a real nginx, as a reverse proxy before a server that echoes.
type nginx struct {
	*proxy
	backend *backend
}

// startNginx starts a proxy that gives up on a backend that is silent for some seconds.
func startNginx(t *testing.T, readTimeout int) *nginx {
	t.Helper()
	n := &nginx{backend: &backend{}}
	n.backend.start(t)
	t.Cleanup(n.backend.Stop)
	n.proxy = startNginxBefore(t, n.backend.addr, time.Second, readTimeout)
	return n
}

// startNginxBefore starts an nginx before a backend. When it is reloaded, the old worker cuts
// what it still has after this time.
func startNginxBefore(t *testing.T, backend string, shutdown time.Duration, readTimeout int) *proxy {
	t.Helper()
	addr := freeAddr(t)
	config := fmt.Sprintf(nginxConfig, shutdown.Milliseconds(), addr, backend, readTimeout)
	return startProxy(t, "nginx", addr, config, func(dir, file string) []string {
		return []string{"-c", file, "-p", dir, "-e", "stderr"}
	})
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

// Stop kills the server, without close frames.
func (b *backend) Stop() {
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
	require.False(c.t, seam.Planned)
}

// refused waits for a dial that is answered with this status.
func (c *client) refused(code int) {
	c.t.Helper()
	for {
		select {
		case err := <-c.failures:
			if scene.HasStatus(code)(err) {
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
		n.backend.Stop()
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
	n := startNginx(t, 6)
	c := n.dial(t, reconnect.Options{Liveness: reconnect.Liveness{Limit: 6 * time.Second}})
	c.echo(1)
	for c.Stats().Probes < 6 { // of 2 s of silence each
		require.NoError(t, c.ctx.Err())
		time.Sleep(50 * time.Millisecond)
	}
	c.echo(1)
}

// An nginx that is reloaded ends its old worker as soon as no client is there: one that is
// replaced by After in time has no gap. One that is not is cut, as TestNginxThatIsReloaded shows.
func TestNginxEndsItsOldWorkerWhenSessionsAreReplacedByAge(t *testing.T) {
	t.Parallel()
	backend := startNumbers(t)
	p := startNginxBefore(t, backend, time.Minute, 60)
	c := p.dialNumbers(t, reconnect.Rotation{After: 2 * time.Second, Drain: 100 * time.Millisecond})
	old := c.read()
	p.reload(t, syscall.SIGHUP)
	for c.read() == old {
	}
	awaitExit(t, old)
	c.requireSeamless()
}

// Promise 9: a handshake that hangs behind nginx is a 504 for the client.
func TestNginxWithABackendThatHangs(t *testing.T) {
	t.Parallel()
	n := startNginx(t, 2)
	c := n.dial(t, reconnect.Options{})
	c.echo(1)
	n.backend.Stop()
	c.seam(1)
	n.backend.hang.Store(true)
	n.backend.start(t)
	c.refused(http.StatusGatewayTimeout)
	n.backend.Stop()
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
