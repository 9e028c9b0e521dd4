package dialer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
)

// foreign is the index of an endpoint at a host that no endpoint has.
const foreign = -1

// advised returns the address in ctx, and the index of an endpoint at its host or foreign. It
// returns nil if there is no address that may be followed. It tells the supervisor which.
func (d *WebSocket) advised(ctx context.Context, e *endpoints) (to *url.URL, endpoint int) {
	t := backoff.AttemptFrom(ctx)
	if t.URL == "" {
		return nil, 0
	}
	to, endpoint, err := d.follow(t.URL, e)
	if t.Followed != nil {
		t.Followed(err)
	}
	return to, endpoint
}

// follow decides whether raw may be followed. Its error holds no part of it but the scheme and the host.
func (d *WebSocket) follow(raw string, e *endpoints) (to *url.URL, endpoint int, err error) {
	u, err := parseURL(raw)
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("advised address: %w", err)
	case u.User != nil:
		return nil, 0, errors.New("advised address: has a user")
	}
	endpoint = slices.IndexFunc(e.urls, func(to *url.URL) bool { return endpointPlace(to) == endpointPlace(u) })
	if endpoint >= 0 {
		return u, endpoint, nil
	}
	if d.FollowHint != nil {
		seen := *u
		allowed, err := call(func() (bool, error) { return d.FollowHint(&seen), nil })
		if raise(err); allowed {
			return u, foreign, nil
		}
	}
	shown := d.secrets.print(u.Scheme + "://" + u.Host)
	return nil, 0, fmt.Errorf("advised address: %s is none of the endpoints", shown)
}

// dialAdvised makes one attempt at u, in the place of a round.
func (d *WebSocket) dialAdvised(ctx context.Context, e *endpoints, u *url.URL, endpoint int) (conn.Conn, error) {
	var c conn.Conn
	var err *Error
	if endpoint == foreign {
		c, err = d.dialWith(ctx, u, false, true)
	} else {
		c, err = e.dialOne(ctx, endpoint, func(ctx context.Context, _ *url.URL, refresh bool) (conn.Conn, *Error) {
			return d.dialWith(ctx, u, refresh, false)
		})
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// anonymous returns a copy of c without what tells a foreign host who the client is: its
// certificates, and the sessions that were made with them.
func anonymous(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.Certificates, c.GetClientCertificate, c.ClientSessionCache = nil, nil, nil
	return c
}
