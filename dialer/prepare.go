package dialer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/redial-go/redial/reconnect/backoff/schedule"
)

// request is one handshake, checked.
type request struct {
	url    *url.URL
	host   string // for the Host header; empty: the host of url
	header http.Header

	foreign bool // the host is none of the endpoints: see WebSocket.FollowHint
}

// prepareError is an error of Prepare. It ends a round: Prepare is not called for the next
// endpoint.
type prepareError struct{ cause }

// prepare makes the handshake for u with the header h, with the help of Prepare.
func (d *WebSocket) prepare(ctx context.Context, u *url.URL, h http.Header, refresh bool) (*request, error) {
	if d.Prepare == nil {
		return newRequest(u, h), nil
	}
	if try := schedule.AttemptFrom(ctx); refresh && !try.Refresh {
		try.Refresh = true
		ctx = schedule.WithAttempt(ctx, try)
	}
	limit := d.endpoints.limits(ctx).handshake
	limited, cancel := context.WithTimeoutCause(ctx, limit, &limitError{fmt.Sprintf("not prepared within %v", limit)})
	defer cancel()
	r := &Request{URL: u.String(), Header: h.Clone()}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	_, err := call(func() (struct{}, error) { return struct{}{}, d.Prepare(limited, r) })
	raise(err)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && limited.Err() != nil:
		err = context.Cause(limited)
		return nil, &prepareError{cause{err.Error(), err}}
	case err != nil:
		return nil, &prepareError{cause{"prepare: " + withoutURLs(err), err}}
	}
	prepared, err := parseURL(r.URL)
	if err != nil {
		return nil, &prepareError{cause{"prepare: Request.URL: " + err.Error(), err}}
	}
	if err := validateHeader(r.Header); err != nil {
		return nil, &prepareError{cause{"prepare: Request.Header: " + err.Error(), err}}
	}
	return newRequest(prepared, r.Header), nil
}

func newRequest(u *url.URL, h http.Header) *request {
	if h == nil {
		h = http.Header{}
	}
	return &request{url: u, host: h.Get("Host"), header: h}
}

// handshakeHeaders are the headers that the handshake sets itself.
var handshakeHeaders = []string{
	"Connection", "Upgrade", "Sec-Websocket-Accept", "Sec-Websocket-Extensions",
	"Sec-Websocket-Key", "Sec-Websocket-Protocol", "Sec-Websocket-Version",
}

// validateHeader returns an error that names what is wrong with h, without any value.
func validateHeader(h http.Header) error {
	for name, values := range h {
		if !validToken(name) {
			return fmt.Errorf("%q is no name of a header", printable(name))
		}
		for _, v := range values {
			if !validValue(v) {
				return fmt.Errorf("%s: a value has a line break or another control character", printable(name))
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
