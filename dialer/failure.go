package dialer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// failure makes an Error of a try that failed. ended is why the try's context
// ended, if it did; err is what the layer below said; of a handshake of HTTP,
// refused is how the server answered, or switched that it had answered 101.
func failure(parent context.Context, u *url.URL, refused *refusal, ended, err error, switched bool) *Error {
	e := &Error{Endpoint: redacted(u)}
	var proxy *refusal
	switch {
	case parent.Err() != nil:
		e.Err = context.Cause(parent)
	case refused != nil:
		e.StatusCode, e.RetryAfter, e.Err = refused.code, refused.wait, refused
	case ended != nil:
		e.Err = ended
	case errors.As(err, &proxy):
		e.StatusCode, e.RetryAfter, e.Err = proxy.code, proxy.wait, proxy
	case switched:
		// Without the words that coder/websocket puts before each error.
		text := "not a WebSocket endpoint: " + strings.TrimPrefix(err.Error(), "failed to WebSocket dial: ")
		e.StatusCode, e.Err = http.StatusSwitchingProtocols, &cause{printable(text), err}
	default:
		e.Err = explain(u, err)
	}
	return e
}

// explain says what a person needs of an error of the layers below, without the
// URL that they put into it.
func explain(u *url.URL, err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	var (
		shown   *cause
		expired x509.CertificateInvalidError
		mime    textproto.ProtocolError
		record  tls.RecordHeaderError
		text    = withoutURLs(err)
	)
	switch {
	case errors.As(err, &shown):
		return shown
	case errors.Is(err, http.ErrSchemeMismatch):
		return &protocolError{cause{"answered without TLS: is this a ws server?", err}}
	case u.Scheme == "tls" && errors.As(err, &record):
		return &protocolError{cause{"answered without TLS: is this a server without TLS?", err}}
	case u.Scheme == "ws" && strings.Contains(text, `malformed HTTP response "\x15\x03`):
		return &protocolError{cause{"answered with TLS: is this a wss server?", err}}
	case errors.As(err, &mime), strings.Contains(text, "malformed HTTP"), strings.Contains(text, "response headers exceeded"):
		// The last two have no type of their own.
		return &protocolError{cause{printable(text), err}}
	case errors.As(err, &expired) && expired.Reason == x509.Expired && expired.Cert != nil:
		// x509's text has the present time in it and never repeats.
		c := expired.Cert
		text = fmt.Sprintf("certificate is valid only from %s to %s", c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339))
	case errors.Is(err, io.EOF):
		text = "connection closed during the handshake: " + text
	}
	return &cause{printable(text), err}
}

// protocolError is an answer in another protocol. Somebody has to mend something.
type protocolError struct{ cause }

func (e *protocolError) Verdict() backoff.Verdict {
	return backoff.Verdict{Class: backoff.ClassSlow}
}

// invalid is the error of a dialer with wrong options, which no further dial
// can mend.
func invalid(dialer string, err error) error {
	return backoff.Permanent(fmt.Errorf("dialer: %s.%w", dialer, err))
}
