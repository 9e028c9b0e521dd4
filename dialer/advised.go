package dialer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff/schedule"
)

// advised is an address that a server has advised, and that may be followed.
type advised struct {
	url      *url.URL
	endpoint int // the index of an endpoint at the same host; -1: a foreign host, which the user has allowed
}

// advised returns the address in ctx, or nil if there is none, or none that may be followed.
// It tells the supervisor which.
func (d *WebSocket) advised(ctx context.Context, e *endpoints) *advised {
	t := schedule.AttemptFrom(ctx)
	if t.URL == "" {
		return nil
	}
	a, err := d.follow(t.URL, e)
	if t.Followed != nil {
		t.Followed(err)
	}
	return a
}

// follow decides whether raw may be followed. Its error holds no part of it but the host.
func (d *WebSocket) follow(raw string, e *endpoints) (*advised, error) {
	u, err := parseURL(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("advised address: %w", err)
	case u.User != nil:
		return nil, errors.New("advised address: has a user")
	}
	same := func(to *url.URL) bool { return to.Scheme == u.Scheme && hostPort(to) == hostPort(u) }
	a := &advised{u, slices.IndexFunc(e.urls, same)}
	if a.endpoint >= 0 {
		return a, nil
	}
	if d.FollowHint != nil {
		seen := *u
		allowed, err := call(func() (bool, error) { return d.FollowHint(&seen), nil })
		if raise(err); allowed {
			return a, nil
		}
	}
	return nil, fmt.Errorf("advised address: %s is none of the endpoints", printable(u.Scheme+"://"+u.Host))
}

// dialAdvised makes one attempt at a, in the place of a round.
func (d *WebSocket) dialAdvised(ctx context.Context, e *endpoints, a *advised) (conn.Conn, error) {
	if a.endpoint < 0 {
		return orError(d.dialWith(ctx, a.url, http.Header{}, false, true))
	}
	c, err := d.dialWith(ctx, a.url, d.Header, e.refused(a.endpoint), false)
	if err == nil || ctx.Err() == nil { // otherwise ctx ended it, not the endpoint
		e.note(a.endpoint, err)
	}
	return orError(c, err)
}

// orError returns its arguments, without an error that is a nil pointer.
func orError(c conn.Conn, err *Error) (conn.Conn, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// anonymous returns c without what could tell a foreign host who the client is: its
// certificates, and the sessions that were made with them.
func anonymous(c *tls.Config) *tls.Config {
	if c == nil {
		return nil
	}
	c = c.Clone()
	c.Certificates, c.GetClientCertificate, c.ClientSessionCache = nil, nil, nil
	return c
}
