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
	header http.Header // never nil; its Host, if it has one, replaces that of the URL
}

// prepareError is an error of Prepare. It ends a round: Prepare is not called for the next
// endpoint.
type prepareError struct{ cause }

// prepare makes the handshake for u with the header h, with the help of Prepare.
func (d *WebSocket) prepare(ctx context.Context, u *url.URL, h http.Header, refresh bool) (*request, error) {
	if d.Prepare == nil {
		return &request{u, h}, nil
	}
	if try := schedule.AttemptFrom(ctx); refresh && !try.Refresh {
		try.Refresh = true
		ctx = schedule.WithAttempt(ctx, try)
	}
	_, limit := d.endpoints.limits(schedule.AttemptFrom(ctx))
	limited, cancel := context.WithTimeoutCause(ctx, limit, &limitError{"not prepared", limit})
	defer cancel()
	r := &Request{URL: u.String(), Header: h}
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
	if r.Header == nil {
		r.Header = http.Header{}
	}
	return &request{prepared, r.Header}, nil
}

// handshakeHeaders are the headers that the handshake sets itself.
var handshakeHeaders = []string{
	"Connection", "Upgrade", "Sec-Websocket-Accept", "Sec-Websocket-Extensions",
	"Sec-Websocket-Key", "Sec-Websocket-Protocol", "Sec-Websocket-Version",
}

// validateHeader returns an error if a header of h is wrong, with its name and without its value.
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
