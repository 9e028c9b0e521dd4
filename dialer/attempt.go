package dialer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// attempt is one attempt at one endpoint: connect, then TLS if the scheme of url wants it, then
// open. Each stage has its limit.
type attempt struct {
	*request
	foreign bool // the host gets no client certificate

	// connect returns the connection to the endpoint. It taps the connection by w as soon as there is
	// a socket, so that cutting w ends whatever goes on above it.
	connect func(ctx context.Context, w *conn.Wire) (net.Conn, error)

	// open makes the message connection over nc, which is above w.
	open func(ctx context.Context, w *conn.Wire, nc net.Conn) (conn.Conn, error)

	answered func(ended, err error) // set when the handshake begins, and called when it ends
}

// attempt makes an attempt. If it fails, everything of it has ended; if it succeeds, the connection
// keeps nothing of it.
func (e *endpoints) attempt(parent context.Context, a *attempt) (conn.Conn, *Error) {
	ctx, cancel := context.WithCancelCause(noDeadline{parent})
	w, cut := new(conn.Wire), make(chan struct{})
	unhook := context.AfterFunc(ctx, func() { defer close(cut); w.Cut() })

	a.answered = func(error, error) {}
	c, err := call(func() (conn.Conn, error) { return e.connectAndOpen(ctx, cancel, w, a) })
	if err == nil && unhook() {
		cancel(nil)
		a.answered(nil, nil)
		return c, nil
	}

	ended := context.Cause(ctx) // before we end it ourselves
	a.answered(ended, err)
	cancel(nil)
	<-cut
	if err == nil {
		_ = c.CloseNow()
	}
	raise(err)
	return nil, failure(a.request, ended, err)
}

// connectAndOpen makes the connection. It calls end if a stage takes longer than its limit.
func (e *endpoints) connectAndOpen(ctx context.Context, end context.CancelCauseFunc, w *conn.Wire, a *attempt) (conn.Conn, error) {
	_, handshake := e.limits(backoff.AttemptFrom(ctx))
	stop := endAfter(end, e.connectLimit(ctx), "not connected")
	defer func() { stop() }()
	nc, err := a.connect(ctx, w)
	if err != nil {
		ended := context.Cause(ctx)
		if is[*limitError](ended) || ended == nil && timedOut(err) { // not if the caller ended it
			e.hangs.unreachable(endpointPlace(a.url))
		}
		return nil, err
	}
	stop()
	stop = endAfter(end, handshake, "handshake not answered")
	a.answered = e.hangs.begin(places(a.url, nc)...)
	if connected := backoff.AttemptFrom(ctx).Connected; connected != nil {
		connected()
	}
	if a.url.Scheme == "wss" || a.url.Scheme == "tls" {
		config := e.configs().forHost(a.url.Hostname())
		if a.foreign {
			config = anonymous(config)
		}
		if nc, err = handshakeTLS(ctx, nc, config); err != nil {
			return nil, err
		}
	}
	return a.open(ctx, w, nc)
}

// notNil returns the results of a user's dial function, or an error if both are nil.
func notNil(nc net.Conn, err error) (net.Conn, error) {
	if nc == nil && err == nil {
		err = errors.New("the dial function returned neither a connection nor an error")
	}
	return nc, err
}

// endAfter calls end after limit, with a [limitError]. Stop prevents that.
func endAfter(end context.CancelCauseFunc, limit time.Duration, what string) (stop func() bool) {
	return time.AfterFunc(limit, func() { end(&limitError{what, limit}) }).Stop
}

// limitError is the error of a stage that took too long.
type limitError struct {
	what  string // "not connected", for example
	limit time.Duration
}

func (e *limitError) Error() string        { return fmt.Sprintf("%s within %v", e.what, e.limit) }
func (e *limitError) Timeout() bool        { return true }
func (e *limitError) Is(target error) bool { return target == context.DeadlineExceeded }

// timedOut reports whether err is an error of the network, or a [limitError], that says that time ran out.
func timedOut(err error) bool {
	t, ok := errors.AsType[timeout](err)
	return ok && t.Timeout()
}

type timeout interface {
	error
	Timeout() bool
}

// noDeadline is a context that ends at its deadline but does not show it, because
// package net would see the deadline and return "i/o timeout", and we could not tell
// whether the whole dial is over or only this attempt.
type noDeadline struct{ context.Context }

func (noDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }
