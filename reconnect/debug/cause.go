package debug

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

	code   int  // of the server's answer, or of the peer's close frame; 0: neither
	status bool // it is that of an answer
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
	text := ""
	switch reason {
	case backoff.ReasonShutdown, backoff.ReasonRedial, backoff.ReasonRotated:
		text = reasonTexts[reason] // whatever the peer has done last
	default:
		text = describe(err, reason)
	}
	c := &causeInfo{Time: at, Reason: reason.String(), Text: clean(text)}
	c.code, c.status = codeOf(err, reason)
	return c
}

// codeOf returns the code of a server's answer, or of a peer's close frame, and which of both it is. It returns 0
// if the session ended for another reason.
func codeOf(err error, reason backoff.Reason) (code int, status bool) {
	var answer interface{ StatusCode() int }
	var closed interface{ CloseCode() int }
	switch reason {
	case backoff.ReasonShutdown, backoff.ReasonRedial, backoff.ReasonRotated, backoff.ReasonLogins, backoff.ReasonProtocol:
		return 0, false
	}
	switch {
	case errors.As(err, &answer) && answer.StatusCode() != 0:
		return answer.StatusCode(), true
	case errors.As(err, &closed) && closed.CloseCode() > 0:
		return closed.CloseCode(), false
	}
	return 0, false
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

// describe returns the text that is shown for err. It uses types and codes of err, and no text that it does
// not know.
func describe(err error, reason backoff.Reason) string {
	var login *budget.LoginError
	var tooBig *conn.TooBigError
	var slow *conn.SlowMessageError
	var status interface{ StatusCode() int }
	var closed interface{ CloseCode() int }
	var errno syscall.Errno
	switch {
	case errors.As(err, &login):
		return loginText(login)
	case errors.As(err, &tooBig):
		return tooBig.Error() // it holds only a number
	case errors.As(err, &slow):
		return slow.Error() // likewise
	case has[*conn.ProtocolError](err): // whose close code is not the peer's
	case errors.Is(err, backoff.ErrGaveUp):
		return "the policy gave up"
	case errors.As(err, &status) && status.StatusCode() != 0:
		return strings.TrimSpace(fmt.Sprintf("the server answered %d %s", status.StatusCode(), http.StatusText(status.StatusCode())))
	case errors.As(err, &closed) && closed.CloseCode() > 0:
		return closeText(closed.CloseCode())
	case reason == backoff.ReasonOther && errors.Is(err, context.Canceled):
		return "canceled"
	case (reason == backoff.ReasonRefused || reason == backoff.ReasonLocal || reason == backoff.ReasonNetwork) && errors.As(err, &errno):
		return errno.Error() // the text of the operating system
	}
	return reasonTexts[reason]
}

// loginText describes why there is no login, without the cause of the loss before, which may be a peer's text.
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
