package promredial_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	promredial "github.com/redial-go/redial/reconnect/prometheus"
)

// patience bounds what a test waits for on real sockets.
const patience = 60 * time.Second

// exposition returns what Prometheus gets, as text.
func exposition(t *testing.T, m *promredial.Metrics) string {
	t.Helper()
	var b strings.Builder
	for _, family := range gather(t, m) {
		_, err := expfmt.MetricFamilyToText(&b, family)
		require.NoError(t, err)
	}
	return b.String()
}

// gather returns all metrics. The registry checks that they are those that were described.
func gather(t *testing.T, m *promredial.Metrics) []*dto.MetricFamily {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(m))
	families, err := r.Gather()
	require.NoError(t, err)
	return families
}

// echo is a real server on loopback that sends every message back. It can be killed, and started
// again at the same address.
type echo struct {
	t    *testing.T
	addr string
	http *http.Server
	life *life // since the last start
}

// life is what ends when the server is killed.
type life struct {
	ctx  context.Context
	stop context.CancelFunc

	mu   sync.Mutex // guards over, and so that nothing is added to wg after that
	over bool
	wg   sync.WaitGroup
}

func newEcho(t *testing.T) *echo {
	e := &echo{t: t, addr: "127.0.0.1:0"}
	e.start()
	t.Cleanup(e.kill)
	return e
}

func (e *echo) url() string { return "ws://" + e.addr }

func (e *echo) start() {
	e.t.Helper()
	var l net.Listener
	require.Eventually(e.t, func() bool {
		var err error
		l, err = net.Listen("tcp", e.addr)
		return err == nil
	}, patience, 10*time.Millisecond)
	now := &life{}
	now.ctx, now.stop = context.WithCancel(context.Background())
	e.life, e.addr, e.http = now, l.Addr().String(), &http.Server{Handler: now}
	server := e.http
	now.wg.Go(func() { _ = server.Serve(l) }) // joined by kill
}

// kill cuts all connections, and accepts no more.
func (e *echo) kill() {
	e.life.mu.Lock()
	e.life.over = true
	e.life.mu.Unlock()
	e.life.stop()
	_ = e.http.Close()
	e.life.wg.Wait()
}

// enter reports whether a handler may run.
func (l *life) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.wg.Add(1)
	}
	return !l.over
}

func (l *life) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !l.enter() {
		return
	}
	defer l.wg.Done()
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		kind, data, err := c.Read(l.ctx)
		if err != nil || c.Write(l.ctx, kind, data) != nil {
			return
		}
	}
}
