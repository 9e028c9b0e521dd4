package dialer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/schedule"
)

// attempt is one attempt at one endpoint: connect, then TLS if it is wanted, then
// open. Each stage has its limit.
type attempt struct {
	url    *url.URL
	limits limits
	hangs  *hangs

	connect connectFunc
	tls     *tls.Config // nil: no TLS
	open    openFunc
}

// connectFunc returns the connection to an endpoint. It taps the connection by w as soon
// as there is a socket, so that cutting w ends whatever goes on above it.
type connectFunc func(ctx context.Context, w *conn.Wire) (net.Conn, error)

// openFunc makes the message connection over nc, which is above w.
type openFunc func(ctx context.Context, w *conn.Wire, nc net.Conn) (conn.Conn, error)

// attempt makes one attempt at u, which need not be one of the endpoints, because
// Prepare may change the URL. A foreign one gets no client certificate.
func (e *endpoints) attempt(ctx context.Context, u *url.URL, foreign bool, connect connectFunc, open openFunc) (conn.Conn, *Error) {
	a := &attempt{url: u, limits: e.limits(ctx), hangs: &e.hangs, connect: connect, open: open}
	if u.Scheme == "wss" || u.Scheme == "tls" {
		a.tls = e.tlsConfigs().forHost(u.Hostname())
	}
	if foreign {
		a.tls = anonymous(a.tls)
	}
	return a.run(ctx)
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

// connectAndOpen makes the connection. When the handshake begins, it sets answered to the
// function that the caller calls at its end.
func (a *attempt) connectAndOpen(ctx context.Context, w *conn.Wire, s *stages, answered *func(ended, err error)) (conn.Conn, error) {
	s.connecting()
	nc, err := a.connect(ctx, w)
	if err != nil {
		return nil, err
	}
	s.handshaking()
	*answered = a.hangs.begin(places(a.url, nc)...)
	if connected := schedule.AttemptFrom(ctx).Connected; connected != nil {
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

// notNil returns what a dial function of the user has returned, or an error if both were
// nil.
func notNil(nc net.Conn, err error) (net.Conn, error) {
	if nc == nil && err == nil {
		err = errNothingMade
	}
	return nc, err
}

var errNothingMade = errors.New("the dial function returned neither a connection nor an error")

// limits are how long the stages of one attempt may take.
type limits struct{ connect, handshake time.Duration }

// limitsFor takes each limit from the dialer's field, then from t, then from the
// default.
func limitsFor(t schedule.Attempt, connect, handshake time.Duration) limits {
	return limits{
		connect:   firstPositive(connect, t.Connect, backoff.DefaultConnect),
		handshake: firstPositive(handshake, t.Handshake, backoff.DefaultHandshake),
	}
}

// limits returns the limits on the stages of an attempt under ctx.
func (e *endpoints) limits(ctx context.Context) limits {
	return limitsFor(schedule.AttemptFrom(ctx), e.connectTimeout, e.handshakeTimeout)
}

// total returns both limits together, or the longest Duration if that is shorter.
func (l limits) total() time.Duration {
	if l.connect > math.MaxInt64-l.handshake {
		return math.MaxInt64
	}
	return l.connect + l.handshake
}

func firstPositive(durations ...time.Duration) time.Duration {
	for _, d := range durations {
		if d > 0 {
			return d
		}
	}
	return 0
}

// stages ends an attempt if its present stage takes longer than its limit. One goroutine
// at a time uses it.
type stages struct {
	limits
	end   context.CancelCauseFunc
	timer *time.Timer
	limit time.Duration // of the present stage
	text  string        // what its error says
}

// connecting starts the first stage.
func (s *stages) connecting() {
	s.limit, s.text = s.connect, "not connected within %v"
	s.timer = time.AfterFunc(s.limit, func() { s.end(&limitError{fmt.Sprintf(s.text, s.limit)}) })
}

// handshaking starts the second stage, unless the first has taken too long.
func (s *stages) handshaking() {
	if s.timer.Stop() {
		s.limit, s.text = s.handshake, "handshake not answered within %v"
		s.timer.Reset(s.limit)
	}
}

// stop ends the present stage and its timer.
func (s *stages) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// noDeadline is a context that ends at its deadline but does not show it, because
// package net would see the deadline and return "i/o timeout", and we could not tell
// whether the whole dial is over or only this attempt.
type noDeadline struct{ context.Context }

func (noDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }
