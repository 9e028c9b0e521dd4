package dialer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"net/url"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// attempt is one attempt at one endpoint: connect, then TLS if it is wanted, then
// open. Each stage has its limit.
type attempt struct {
	url    *url.URL
	limits limits
	hangs  *hangs

	// connect returns the connection to the endpoint, tapped by w as soon as there is
	// a socket, so that cutting w ends whatever goes on above it.
	connect func(ctx context.Context, w *conn.Wire) (net.Conn, error)
	tls     *tls.Config // nil: no TLS
	open    func(ctx context.Context, w *conn.Wire, nc net.Conn) (conn.Conn, error)
}

// run makes the attempt. If it fails, everything of it has ended; if it succeeds, the
// connection keeps nothing of it.
func (a *attempt) run(parent context.Context) (conn.Conn, *Error) {
	ctx, cancel := context.WithCancelCause(noDeadline{parent})
	w, s := new(conn.Wire), &stages{limits: a.limits, end: cancel}
	cut := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() { defer close(cut); w.Cut() })

	answered := func(error, error) {}
	c, err := call(func() (conn.Conn, error) { return a.connectAndOpen(ctx, w, s, &answered) })
	s.stop()
	if err == nil && unhook() {
		cancel(nil)
		answered(nil, nil)
		return c, nil
	}

	ended := context.Cause(ctx) // before we end it ourselves
	answered(ended, err)
	cancel(nil)
	<-cut
	if err == nil {
		_ = c.CloseNow()
	}
	raise(err)
	return nil, failure(a.url, ended, err)
}

// connectAndOpen sets answered to what is to be called at the end of the handshake, if
// one begins.
func (a *attempt) connectAndOpen(ctx context.Context, w *conn.Wire, s *stages, answered *func(ended, err error)) (conn.Conn, error) {
	s.connecting()
	nc, err := a.connect(ctx, w)
	if err != nil {
		return nil, err
	}
	s.handshaking()
	*answered = a.hangs.begin(places(a.url, nc)...)
	if connected := backoff.TryFrom(ctx).Connected; connected != nil {
		connected()
	}
	if a.tls != nil {
		if nc, err = handshakeTLS(ctx, nc, a.tls); err != nil {
			return nil, err
		}
	}
	return a.open(ctx, w, nc)
}

// dialContext makes a connection, as the method of [net.Dialer] does.
type dialContext func(ctx context.Context, network, addr string) (net.Conn, error)

// connectTo dials addr and taps the connection.
func connectTo(ctx context.Context, w *conn.Wire, dial dialContext, addr string) (net.Conn, error) {
	nc, err := notNil(dial(ctx, "tcp", addr))
	if err != nil {
		return nil, err
	}
	return w.Tap(nc), nil
}

// notNil passes on what a dial function of the user's has returned, and returns an
// error if that was nothing at all.
func notNil(nc net.Conn, err error) (net.Conn, error) {
	if nc == nil && err == nil {
		err = errNothingMade
	}
	return nc, err
}

var errNothingMade = errors.New("the dial function returned neither a connection nor an error")

// handshakeTLS puts TLS on nc. It calls the hooks of httptrace, as net/http does.
func handshakeTLS(ctx context.Context, nc net.Conn, config *tls.Config) (net.Conn, error) {
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.TLSHandshakeStart != nil {
		trace.TLSHandshakeStart()
	}
	c := tls.Client(nc, config)
	err := c.HandshakeContext(ctx)
	if trace != nil && trace.TLSHandshakeDone != nil {
		trace.TLSHandshakeDone(c.ConnectionState(), err)
	}
	return c, err
}
