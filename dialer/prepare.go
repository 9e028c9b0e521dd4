package dialer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/redial-go/redial/reconnect/backoff"
)

// request is one handshake, checked.
type request struct {
	url     *url.URL    // need not be one of the endpoints, because Prepare may change it
	header  http.Header // never nil; its Host, if it has one, replaces that of the URL
	secrets *secrets
	advised bool // a server has chosen the URL
}

// endpoint returns the URL as it may be printed.
func (r *request) endpoint() string {
	if r.advised {
		return r.secrets.print(withoutQuery(r.url))
	}
	return redacted(r.url)
}

// prepareError is an error of Prepare. It ends a round: Prepare is not called for the next
// endpoint.
type prepareError struct{ cause }

// newRequest returns the handshake for u with the header h, before Prepare.
func (d *WebSocket) newRequest(u *url.URL, h http.Header) *request {
	if slices.Contains(d.endpoints.urls, u) {
		return &request{u, h, d.secrets, false}
	}
	s := newSecrets(d.secrets, d.Conn.Redact)
	s.addURL(u)
	return &request{u, h, s.orBase(), true}
}

// prepare lets Prepare change r.
func (d *WebSocket) prepare(ctx context.Context, r *request, refresh bool) error {
	if d.Prepare == nil {
		return nil
	}
	if try := backoff.AttemptFrom(ctx); refresh && !try.Refresh {
		try.Refresh = true
		ctx = backoff.WithAttempt(ctx, try)
	}
	_, limit := d.endpoints.limits(backoff.AttemptFrom(ctx))
	limited, cancel := context.WithTimeoutCause(ctx, limit, &limitError{"not prepared", limit})
	defer cancel()
	given := r.url.String()
	p := &Request{URL: given, Header: r.header}
	_, err := call(func() (struct{}, error) { return struct{}{}, d.Prepare(limited, p) })
	raise(err)
	u, wrong := parseURL(p.URL)
	s := newSecrets(r.secrets, d.Conn.Redact)
	if s.addHeader(p.Header); u != nil {
		s.addURL(u)
	} else {
		s.add(p.URL)
	}
	r.secrets = s.orBase()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && limited.Err() != nil:
		err = context.Cause(limited)
		return &prepareError{cause{err.Error(), err}}
	case err != nil:
		return &prepareError{cause{"prepare: " + r.secrets.print(withoutURLs(err)), err}}
	case wrong != nil:
		return &prepareError{cause{"prepare: Request.URL: " + wrong.Error(), wrong}}
	}
	if err := validateHeader(p.Header, r.secrets); err != nil {
		return &prepareError{cause{"prepare: Request.Header: " + err.Error(), err}}
	}
	if p.URL != given {
		r.url = u
	}
	if r.header = p.Header; r.header == nil {
		r.header = http.Header{}
	}
	return nil
}

// announce passes the host of r to the supervisor, or "" if the host is that of an endpoint. An error
// ends the round.
func (d *WebSocket) announce(ctx context.Context, r *request) error {
	t := backoff.AttemptFrom(ctx)
	if t.Host == nil {
		return nil
	}
	host := hostPort(r.url)
	if slices.ContainsFunc(d.endpoints.urls, func(u *url.URL) bool { return hostPort(u) == host }) {
		host = ""
	}
	if err := t.Host(host); err != nil {
		return &prepareError{cause{r.secrets.print(err.Error()), err}}
	}
	return nil
}

// handshakeHeaders are the headers that the handshake sets itself.
var handshakeHeaders = []string{
	"Connection", "Upgrade", "Sec-Websocket-Accept", "Sec-Websocket-Extensions",
	"Sec-Websocket-Key", "Sec-Websocket-Protocol", "Sec-Websocket-Version",
}

// validateHeader returns an error if a header of h is wrong, with its name and without its value. The secrets
// are left out of the name. A name that is wrong is not in the error, because it may be a whole line.
func validateHeader(h http.Header, s *secrets) error {
	for name, values := range h {
		if err := checkToken(name); err != nil {
			return fmt.Errorf("the name of a header %w", err)
		}
		for _, v := range values {
			if !validValue(v) {
				return fmt.Errorf("%s: a value has a line break or another control character", s.print(name))
			}
		}
		for _, own := range handshakeHeaders {
			if strings.EqualFold(name, own) {
				return fmt.Errorf("%s is set by the handshake", own)
			}
		}
		if strings.EqualFold(name, "Host") && (name != "Host" || len(values) != 1 || !validHost(values[0])) {
			return errors.New("Host: want one host, by that name")
		}
	}
	return nil
}
