//go:build !js

package dialer

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
)

// defaultMaxHeaderBytes is far above any handshake, and far below the 10 MiB of
// net/http.
const defaultMaxHeaderBytes = 64 << 10

// attempt is one try at one endpoint, from the first name lookup to the answer.
// It has a transport of its own, and dials with its own context, because
// http.Transport detaches both dial and TLS handshake from the context of a
// request: abandoned ones would go on. Closing the raw connection ends whatever
// is going on above it, also where coder/websocket does not look at a context.
type attempt struct {
	ctx    context.Context
	wire   *conn.Wire
	stages stages
	tunnel bool // a proxy's CONNECT is part of connecting; set before the dial

	mu    sync.Mutex // guards over and the first Add to dials
	over  bool
	dials sync.WaitGroup
}

// open makes one try at t. When it fails, everything of it has ended; when it
// does not, nothing of it is kept by the connection.
func (d *WebSocket) open(parent context.Context, t *target, l limits) (conn.Conn, *Error) {
	ctx, cancel := context.WithCancelCause(undated{parent})
	a := &attempt{ctx: ctx, wire: new(conn.Wire), stages: stages{limits: l, end: cancel}}
	cut := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() { defer close(cut); a.wire.Cut() })

	transport := a.transport(d)
	up := &upgrade{next: transport}
	a.stages.connecting()
	ws, resp, err := websocket.Dial(ctx, t.url.String(), &websocket.DialOptions{
		HTTPClient:      &http.Client{Transport: a.wire.Transport(up)},
		HTTPHeader:      t.header,
		Host:            t.host,
		Subprotocols:    d.Subprotocols,
		CompressionMode: d.Compression.mode(),
	})
	a.stages.stop()
	if err == nil && unhook() {
		cancel(nil)
		return conn.NewWebSocket(ws, a.wire, &d.Conn), nil
	}

	ended := context.Cause(ctx) // before we end it ourselves
	cancel(nil)
	<-cut
	if err == nil {
		_ = ws.CloseNow()
	}
	a.wait()
	return nil, failure(parent, t.url, up.refused, ended, err, resp != nil)
}

// transport is http.Transport for one connection and no other.
func (a *attempt) transport(d *WebSocket) *http.Transport {
	t := &http.Transport{}
	if d.Transport != nil {
		t = d.Transport.Clone()
	}
	dial, proxy, answered := t.DialContext, t.Proxy, t.OnProxyConnectResponse
	if d.DialContext != nil {
		dial = d.DialContext
	} else if dial == nil {
		dial = d.TCP.forMessages().dialer(d.plan.shuffle)
	}
	if d.Proxy != nil {
		proxy = d.Proxy
	}

	t.DialContext = func(_ context.Context, network, addr string) (net.Conn, error) {
		return a.dial(dial, network, addr)
	}
	t.Proxy = nil
	if proxy != nil {
		t.Proxy = func(r *http.Request) (*url.URL, error) { return a.proxy(proxy, r) }
		t.OnProxyConnectResponse = func(ctx context.Context, u *url.URL, q *http.Request, r *http.Response) error {
			if answered != nil {
				if err := answered(ctx, u, q, r); err != nil {
					return err
				}
			}
			return a.connected(r)
		}
	}
	t.TLSClientConfig = d.plan.tls
	t.MaxResponseHeaderBytes = defaultMaxHeaderBytes
	if d.MaxHeaderBytes > 0 {
		t.MaxResponseHeaderBytes = d.MaxHeaderBytes
	}
	t.DisableKeepAlives, t.DisableCompression = true, true
	t.TLSHandshakeTimeout, t.ResponseHeaderTimeout = 0, 0
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	return t
}

// dial makes the attempt's connection, under the attempt's context. net/http
// runs it in a goroutine of its own and does not wait for it; we do.
func (a *attempt) dial(dial func(context.Context, string, string) (net.Conn, error), network, addr string) (net.Conn, error) {
	a.mu.Lock()
	if a.over {
		a.mu.Unlock()
		return nil, net.ErrClosed
	}
	a.dials.Add(1)
	a.mu.Unlock()
	defer a.dials.Done()

	nc, err := made(dial(a.ctx, network, addr))
	if err != nil {
		return nil, err
	}
	if !a.tunnel {
		a.stages.handshaking()
	}
	return a.wire.Tap(nc), nil
}

// wait returns when no dial is in flight, and lets none begin.
func (a *attempt) wait() {
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	a.dials.Wait()
}

// proxy asks for the proxy. An error from there is not printed: that of
// [http.ProxyFromEnvironment] holds the proxy's password.
func (a *attempt) proxy(choose func(*http.Request) (*url.URL, error), r *http.Request) (*url.URL, error) {
	u, err := choose(r)
	if err != nil {
		return nil, &cause{"no proxy could be chosen (the reason may hold a password and is not printed)", err}
	}
	a.tunnel = u != nil && r.URL.Scheme == "https" && (u.Scheme == "http" || u.Scheme == "https")
	return u, nil
}

// connected is called with the proxy's answer to CONNECT.
func (a *attempt) connected(r *http.Response) error {
	if r.StatusCode != http.StatusOK {
		return newProxyError(r)
	}
	a.stages.handshaking()
	return nil
}
