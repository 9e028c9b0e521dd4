package dialer

import (
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
	"unicode"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Error reports why a dial failed. It prints as
//
//	dial wss://host/path: 503 Service Unavailable (retry after 7s)
//
// Text from a server is truncated at 256 bytes. The first line of a short text or JSON from a
// rejecting server is included, such as "401 Unauthorized: "token expired"".
//
// An Error with a StatusCode or a RetryAfter unwraps to an error with the methods StatusCode() int
// and RetryAfter() (time.Duration, bool), for package backoff, which unwraps to Err.
type Error struct {
	Endpoint   string        // scheme, host and path of the URL; of a Framed tcp://host:port or tls://host:port
	StatusCode int           // of the handshake response, 101 if that was invalid, or 0 without a response
	RetryAfter time.Duration // how long the server or a proxy asked us to stay away, or 0
	Header     http.Header   // of the server's response, up to 64 KiB, or nil; may hold secrets, and is never printed
	Err        error         // the cause, a *ProxyError if a proxy failed; what it wraps may show a secret

	// Endpoints has the errors of several endpoints, in the order of the attempts. The other fields
	// are then those of the error that decides: see [WebSocket.Dial].
	Endpoints []*Error

	refused bool // the server refused our credentials, and Prepare can make new ones
	unasked bool // the endpoint was not dialed, because the supervisor has to wait at its gate first
}

func (e *Error) Error() string {
	if len(e.Endpoints) == 0 {
		return "dial " + e.text()
	}
	texts := make([]string, len(e.Endpoints))
	for i, r := range e.Endpoints {
		texts[i] = r.text()
	}
	return fmt.Sprintf("dial %d endpoints: %s", len(texts), strings.Join(texts, "; "))
}

// Unwrap returns Err, or an error that unwraps to it.
func (e *Error) Unwrap() error {
	switch {
	case e.StatusCode == 0 && e.RetryAfter == 0:
		return e.Err
	case e.refused:
		return &refusedCredentials{answered{e}}
	}
	return &answered{e}
}

// text returns the error without its operation.
func (e *Error) text() string {
	text := e.Endpoint + ": " + statusText(e.StatusCode)
	if e.Err != nil {
		text = e.Endpoint + ": " + e.Err.Error()
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf(" (retry after %v)", e.RetryAfter)
	}
	return text
}

// answered has the methods that package backoff looks for; Error cannot have them,
// because its fields have their names.
type answered struct{ e *Error }

func (a *answered) Error() string   { return a.e.text() }
func (a *answered) Unwrap() error   { return a.e.Err }
func (a *answered) StatusCode() int { return a.e.StatusCode }

func (a *answered) RetryAfter() (time.Duration, bool) { return a.e.RetryAfter, a.e.RetryAfter > 0 }

// refusedCredentials is an answer to credentials that Prepare can make anew.
type refusedCredentials struct{ answered }

// Verdict implements the method that [backoff.Classify] looks for.
func (r *refusedCredentials) Verdict() backoff.Verdict {
	return backoff.Verdict{Class: backoff.ClassRefresh}
}

// failure returns the Error of an attempt at r, which ended with err. ended is why the
// context of the attempt ended, or nil. If there was an answer, the answer decides.
func failure(r *request, ended, err error) *Error {
	e := &Error{Endpoint: r.endpoint()}
	answer, answered := err.(*answerError)
	proxy, proxied := err.(*ProxyError)
	switch {
	case answered:
		e.StatusCode, e.RetryAfter, e.Header, e.Err = answer.code, answer.wait, answer.header, answer
	case proxied && proxy.StatusCode != 0:
		e.Err = proxy
		if answer, ok := proxy.Err.(*answerError); ok {
			e.RetryAfter = answer.wait
		}
	case ended != nil && proxied:
		e.Err = &ProxyError{Err: ended, proxy: proxy.proxy}
	case ended != nil:
		e.Err = ended
	case proxied:
		e.Err = proxy
	default:
		e.Err = explain(r.url, r.secrets, err)
	}
	return e
}

// explain returns an error whose text explains err, of a dial to u, to a person, without the secrets and
// without the URL that the layers below put into it.
func explain(u *url.URL, s *secrets, err error) error {
	outer, wrapped := errors.AsType[*url.Error](err)
	switch {
	case explained(err): // which may wrap a url.Error
		return err
	case wrapped && explained(outer.Err):
		return outer.Err
	case wrapped:
		err = outer.Err
	}
	text := withoutURLs(err)
	switch plain, secure := withoutTLS[u.Scheme], withTLS[u.Scheme]; {
	case is[tls.RecordHeaderError](err) && plain != "":
		return &slowError{cause{"answered without TLS: is this " + plain + "?", err}, true}
	case secure != "" && strings.Contains(text, `malformed HTTP response "\x15\x03`): // an alert
		return &slowError{cause{"answered with TLS: is this " + secure + "?", err}, true}
	case is[textproto.ProtocolError](err), strings.Contains(text, "malformed HTTP"): // which has no type of its own
		return &slowError{cause{s.print(text), err}, true}
	}
	if c, ok := errors.AsType[x509.CertificateInvalidError](err); ok && c.Reason == x509.Expired && c.Cert != nil {
		// The text of package x509 has the present time in it and never repeats.
		text = fmt.Sprintf("certificate is valid only from %s to %s", c.Cert.NotBefore.UTC().Format(time.RFC3339), c.Cert.NotAfter.UTC().Format(time.RFC3339))
	} else if text = s.print(text); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		text = "connection closed during the handshake: " + text
	}
	return &cause{text, err}
}

// explained reports whether the text of err is one of ours already.
func explained(err error) bool {
	switch err.(type) {
	case *cause, *slowError:
		return true
	}
	return false
}

// is reports whether err is, or wraps, an error of type E.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// withoutURLs returns the text of err with the URLs redacted that are known to be in
// it, because net/http prints the query in its errors, and net/url the password.
func withoutURLs(err error) string {
	text := err.Error()
	for _, u := range urlErrors(err) {
		safe := strings.ToLower(u.Op) + ": malformed URL"
		if parsed, err := url.Parse(u.URL); err == nil && u.Op != "parse" {
			safe = strings.ToLower(u.Op) + " " + withoutQuery(parsed) + ": " + withoutURLs(u.Err)
		}
		text = strings.ReplaceAll(text, u.Error(), safe)
		if strings.Contains(text, u.URL) {
			return safe
		}
	}
	return text
}

// urlErrors finds the outermost [url.Error] on each branch of err.
func urlErrors(err error) []*url.Error {
	if u, ok := err.(*url.Error); ok {
		return []*url.Error{u}
	}
	var found []*url.Error
	switch w := err.(type) {
	case interface{ Unwrap() error }:
		found = urlErrors(w.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range w.Unwrap() {
			found = append(found, urlErrors(inner)...)
		}
	}
	return found
}

// By the scheme of a URL, what probably answers there without TLS, or with it.
var (
	withoutTLS = map[string]string{"wss": "a ws server", "tls": "a server without TLS", "https": "an http proxy"}
	withTLS    = map[string]string{"ws": "a wss server", "http": "an https proxy"}
)

// cause is an error with a text that is fit for a log.
type cause struct {
	text string
	err  error
}

func (c *cause) Error() string { return c.text }
func (c *cause) Unwrap() error { return c.err }

// slowError is an error that a person must mend. If it is lenient, it may pass by itself:
// an answer in another protocol, for example, may come from a deploy.
type slowError struct {
	cause
	lenient bool
}

// Verdict implements the method that [backoff.Classify] looks for.
func (e *slowError) Verdict() backoff.Verdict {
	return backoff.Verdict{Class: backoff.ClassSlow, Lenient: e.lenient}
}

func newSlowError(text string) error { return &slowError{cause{text, nil}, false} }

// statusText returns a status as the standard names it, not as the server does.
func statusText(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// maxText is how many bytes are kept of a text that others wrote.
const maxText = 256

// printable returns s on one line, cut at maxText bytes, with everything escaped that
// a terminal might obey.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		c := string(r)
		if !unicode.IsPrint(r) {
			c = strings.Trim(fmt.Sprintf("%+q", r), "'")
		}
		if b.Len()+len(c) > maxText {
			b.WriteString("...")
			break
		}
		b.WriteString(c)
	}
	return b.String()
}
