package dialer

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// Error is why a dial failed. It prints as
//
//	dial wss://host/path: 503 Service Unavailable (retry after 7s)
//
// and never holds a secret: the user and the query of a URL are left out when
// it is made, and what a server wrote is quoted and cut at 256 bytes.
//
// An error with a StatusCode unwraps to one with the methods StatusCode() int
// and RetryAfter() (time.Duration, bool), which unwraps to Err; by these
// methods package backoff knows what the server answered.
type Error struct {
	Endpoint   string        // scheme, host and path of the URL; of a TCP: tcp://host:port or tls://host:port
	StatusCode int           // of the answer to the handshake of HTTP; 0: there was none
	RetryAfter time.Duration // how long the server asked us to stay away; 0: it did not
	Err        error         // the cause

	// Round is what each endpoint said, in the order in which they were asked,
	// when more than one was. The fields above are then those of the error that
	// decides: see [WebSocket.Dial], [TCP.Dial].
	Round []*Error
}

func (e *Error) Error() string {
	if len(e.Round) == 0 {
		return "dial " + e.text()
	}
	texts := make([]string, len(e.Round))
	for i, r := range e.Round {
		texts[i] = r.text()
	}
	return fmt.Sprintf("dial %d endpoints: %s", len(texts), strings.Join(texts, "; "))
}

// Unwrap returns the cause, beneath what the server answered.
func (e *Error) Unwrap() error {
	if e.StatusCode == 0 {
		return e.Err
	}
	return &answer{e}
}

// text is the error without its operation.
func (e *Error) text() string {
	text := e.Endpoint + ": "
	if e.Err != nil {
		text += e.Err.Error()
	} else {
		text += statusText(e.StatusCode)
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf(" (retry after %v)", e.RetryAfter)
	}
	return text
}

// answer is what the server said, for those who look for its methods: the
// fields of Error have their names.
type answer struct{ e *Error }

func (a *answer) Error() string   { return a.e.text() }
func (a *answer) Unwrap() error   { return a.e.Err }
func (a *answer) StatusCode() int { return a.e.StatusCode }

func (a *answer) RetryAfter() (time.Duration, bool) { return a.e.RetryAfter, a.e.RetryAfter > 0 }

// cause is an error with a text that is fit for a log.
type cause struct {
	text string
	err  error
}

func (c *cause) Error() string { return c.text }
func (c *cause) Unwrap() error { return c.err }

// limitError is the end of a stage that took too long.
type limitError struct{ text string }

func (e *limitError) Error() string        { return e.text }
func (e *limitError) Timeout() bool        { return true }
func (e *limitError) Is(target error) bool { return target == context.DeadlineExceeded }

// statusText is a status as the standard names it, not as the server does.
func statusText(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// maxText is how many bytes of a text that others wrote are kept.
const maxText = 256

// printable returns s on one line, cut at maxText bytes, with everything
// escaped that a terminal might obey.
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
