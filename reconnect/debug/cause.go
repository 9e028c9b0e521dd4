package debug

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// causeInfo is the record cause of the JSON. It does not change.
type causeInfo struct {
	Time   time.Time `json:"time"`
	Reason string    `json:"reason"`
	Text   string    `json:"text,omitempty"`

	code int // of the server's answer or of the peer's close frame, or 0
}

// causeOf returns the cause for err, or nil if err is nil.
func causeOf(err error, at time.Time) *causeInfo {
	if err == nil {
		return nil
	}
	return causeFor(err, reasonOf(err), at)
}

// causeFor is causeOf for an err whose reason is known.
func causeFor(err error, reason backoff.Reason, at time.Time) *causeInfo {
	c := &causeInfo{Time: at, Reason: reason.String(), Text: reasonTexts[reason]}
	switch reason {
	case backoff.ReasonShutdown, backoff.ReasonRedial, backoff.ReasonRotated: // whatever the peer has done last
	default:
		c.describe(err, reason)
	}
	c.Text = clean(c.Text)
	return c
}

// word returns the cause as one word: the code of the server's answer or of the peer's close frame, or the
// reason.
func (c *causeInfo) word() string {
	if c.code != 0 {
		return strconv.Itoa(c.code)
	}
	return c.Reason
}

// reasonOf is [backoff.ReasonOf], which does not know the errors of package conn.
func reasonOf(err error) backoff.Reason {
	switch {
	case has[*conn.ProtocolError](err) || has[*conn.TooBigError](err):
		return backoff.ReasonProtocol
	case has[*conn.SlowMessageError](err):
		return backoff.ReasonTimeout
	}
	return backoff.ReasonOf(err)
}

// has reports whether err is an E or wraps one.
func has[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// describe sets the text for err, and its code. It uses types and codes of err, and no text that it does not
// know.
func (c *causeInfo) describe(err error, reason backoff.Reason) {
	var login *budget.LoginError
	var tooBig *conn.TooBigError
	var slow *conn.SlowMessageError
	var status interface{ StatusCode() int }
	var closed interface{ CloseCode() int }
	var errno syscall.Errno
	switch {
	case errors.As(err, &login):
		c.Text = loginText(login)
	case errors.As(err, &tooBig):
		c.Text = tooBig.Error() // it holds only a number
	case errors.As(err, &slow):
		c.Text = slow.Error() // likewise
	case has[*conn.ProtocolError](err): // whose close code is not the peer's
	case errors.As(err, &status) && status.StatusCode() != 0:
		c.code = status.StatusCode()
		c.Text = strings.TrimSpace(fmt.Sprintf("the server answered %d %s", c.code, http.StatusText(c.code)))
	case errors.As(err, &closed) && closed.CloseCode() > 0:
		c.code = closed.CloseCode()
		c.Text = closeText(c.code)
	case reason == backoff.ReasonOther && errors.Is(err, context.Canceled):
		c.Text = "canceled"
	case (reason == backoff.ReasonRefused || reason == backoff.ReasonLocal || reason == backoff.ReasonNetwork) &&
		errors.As(err, &errno):
		c.Text = errno.Error() // the text of the operating system
	}
	if errors.Is(err, backoff.ErrGaveUp) {
		c.Text = "the policy gave up"
	}
}

// loginText describes why there is no login, without the cause of the loss before, which may be a peer's
// text.
func loginText(e *budget.LoginError) string {
	text := reasonTexts[backoff.ReasonLogins] + ": the next is at " + e.Next.UTC().Format(time.RFC3339)
	for _, known := range []error{budget.ErrDamaged, budget.ErrOtherWriter} {
		if errors.Is(e, known) {
			text += ", because " + known.Error()
		}
	}
	return text
}

// closeText describes a close frame.
func closeText(code int) string {
	if code == 1005 {
		return "closed by the peer, without a code"
	}
	if name := closeNames[code]; name != "" {
		return fmt.Sprintf("closed by the peer: %d (%s)", code, name)
	}
	return fmt.Sprintf("closed by the peer: %d", code)
}

// closeNames are the names of close codes, from the registry of RFC 6455.
var closeNames = map[int]string{
	1000: "normal closure", 1001: "going away", 1002: "protocol error", 1003: "unsupported data", 1007: "invalid data",
	1008: "policy violation", 1009: "message too big", 1010: "missing extension", 1011: "internal error", 1012: "service restart",
	1013: "try again later", 1014: "bad gateway",
}

// reasonTexts describe the reasons for which there is no better text.
var reasonTexts = map[backoff.Reason]string{
	backoff.ReasonOther:      "another error: the program's log may have its text",
	backoff.ReasonShutdown:   "closed by the program",
	backoff.ReasonRotated:    "replaced by the next session",
	backoff.ReasonRedial:     "the program asked for another session",
	backoff.ReasonSilent:     "the peer was silent for too long",
	backoff.ReasonStalled:    "no message came for too long",
	backoff.ReasonSlowReader: "the program read too slowly",
	backoff.ReasonOpen:       "the session was not ready in time",
	backoff.ReasonProtocol:   "the peer broke the rules of the protocol",
	backoff.ReasonHangup:     "the peer hung up without a close frame",
	backoff.ReasonDNS:        "the name of the host was not resolved",
	backoff.ReasonTLS:        "TLS: a certificate, or an alert",
	backoff.ReasonRefused:    "the connection was refused or reset",
	backoff.ReasonTimeout:    "a limit was exceeded",
	backoff.ReasonLocal:      "this machine failed: too many open files, no network, or not permitted",
	backoff.ReasonNetwork:    "an error of the network",
	backoff.ReasonLogins:     "the budget of logins allows no login now",
}

// maxText is how many bytes are kept of any text.
const maxText = 200

// clean returns s on one line, cut at maxText bytes, without characters that a terminal or a
// page could take for more than text.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s)
	if len(s) <= maxText {
		return s
	}
	cut := maxText - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
