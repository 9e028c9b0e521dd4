package conn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// CloseError is the peer's close frame, wrapped in the error of Read.
//
// Its text quotes the reason, truncated at 123 bytes and as [WebSocketOptions].Redact leaves it. If
// the reason is an advice (see reconnect.ReadAdvice), the text also omits the hint, and the user
// and query of the URL.
type CloseError struct {
	Code   int    // see RFC 6455, section 7.4; 1005 if the frame has no code
	Reason string // as received, perhaps not UTF-8 and with a secret of ours: do not log it

	redacted *string // the result of Redact, if that differs from Reason
}

// newCloseError returns the error for a close frame. redact is [WebSocketOptions].Redact.
func newCloseError(code int, reason string, redact func(string) string) *CloseError {
	e := &CloseError{Code: code, Reason: reason}
	if redact != nil {
		if shown := redact(reason); shown != reason {
			e.redacted = &shown
		}
	}
	return e
}

func (e *CloseError) Error() string {
	reason := e.Reason
	if e.redacted != nil {
		reason = *e.redacted
	}
	switch {
	case e.Code == noStatus:
		return "closed by the peer, without a code"
	case reason == "":
		return fmt.Sprintf("closed by the peer: %d", e.Code)
	}
	return fmt.Sprintf("closed by the peer: %d %q", e.Code, cutReason(redactAdvice(reason)))
}

// redactAdvice returns reason without the hint, and without the user and the query of the URL, if it
// is an advice.
func redactAdvice(reason string) string {
	fields := strings.Fields(reason)
	if len(fields) == 0 || fields[0] != "redial/1" {
		return reason
	}
	for i, f := range fields {
		switch name, value, _ := strings.Cut(f, "="); name {
		case "hint":
			fields[i] = "hint=..."
		case "url":
			fields[i] = "url=..."
			if u, err := url.Parse(value); err == nil {
				fields[i] = "url=" + u.Scheme + "://" + u.Host + u.EscapedPath()
			}
		}
	}
	return strings.Join(fields, " ")
}

// CloseCode returns e.Code.
func (e *CloseError) CloseCode() int { return e.Code }

// ProtocolError is the error of Read when the peer has violated the protocol. It is also the error
// of a handshake in which the server has accepted an extension that was not offered.
type ProtocolError struct {
	Err  error // what was wrong
	code int   // for CloseCode; 0: 1002
}

func (e *ProtocolError) Error() string { return "protocol error: " + e.Err.Error() }

// Unwrap returns e.Err.
func (e *ProtocolError) Unwrap() error { return e.Err }

// CloseCode returns the code of the close frame sent to the peer: 1007 for invalid UTF-8 or
// compression, otherwise 1002.
func (e *ProtocolError) CloseCode() int {
	if e.code == 0 {
		return codeProtocol
	}
	return e.code
}

// TooBigError is the error of Read when a message is larger than ReadLimit.
type TooBigError struct {
	Limit int64 // in bytes
}

func (e *TooBigError) Error() string {
	return fmt.Sprintf("message larger than the read limit of %d bytes", e.Limit)
}

// CloseCode returns 1009, the code of the close frame sent to the peer of a WebSocket.
func (e *TooBigError) CloseCode() int { return codeTooBig }

// SlowMessageError reports that the connection was closed because a part of a message took
// longer than its limit.
type SlowMessageError struct {
	Op    string        // "write": WriteTimeout was exceeded; "read": MessageTimeout
	Limit time.Duration // the exceeded limit
}

func (e *SlowMessageError) Error() string {
	if e.Op == "write" {
		return fmt.Sprintf("a part of a message was not written within %v", e.Limit)
	}
	return fmt.Sprintf("a part of a message did not arrive within %v", e.Limit)
}

var (
	errControl          = errors.New("the peer did not take our close frame in time")
	errSlowMessage      = errors.New("a message under way was stuck for 5s")
	errClosedUnderneath = errors.New("the connection below was closed by its owner")
	errNoAnswer         = errors.New("no close frame in answer within 5s")
	errEnded            = errors.New("the connection has ended") // Read returns why
	errAbandoned        = errors.New("a Read did not return, because a function that it called panicked")
)

// lostError is an error of op. It is no timeout, whatever is below it, because an ETIMEDOUT
// of the kernel means a lost session too: see [SlowMessageError].
type lostError struct {
	op  string
	err error
}

func (e *lostError) Error() string {
	text := e.err.Error()
	if below, ok := e.err.(*net.OpError); ok && below.Op == e.op {
		return text // "read tcp ...": it has the operation already
	}
	switch e.err {
	case io.EOF:
		text = "the peer hung up without a close frame: EOF"
	case io.ErrUnexpectedEOF:
		text = "the peer hung up inside a message: unexpected EOF"
	}
	return e.op + ": " + text
}

func (e *lostError) Unwrap() error   { return e.err }
func (e *lostError) Timeout() bool   { return false }
func (e *lostError) Temporary() bool { return false }

func notWritten(cause error) error {
	return &lostError{"write", fmt.Errorf("%w: %w", ErrNotWritten, cause)}
}

// closeLimit is the limit on writing a close frame, and then on waiting for the answer.
const closeLimit = 5 * time.Second

// Close codes, RFC 6455 7.4.1.
const (
	codeNormal    = 1000
	codeGoingAway = 1001
	codeProtocol  = 1002
	noStatus      = 1005 // a close frame without a code
	codeBadData   = 1007
	codeTooBig    = 1009
)

const maxReason = maxControl - 2 // bytes of a close frame's reason

// checkCode refuses codes that may not be sent, RFC 6455 7.4.
func checkCode(code int) error {
	switch {
	case code >= 1000 && code <= 1003, code >= 1007 && code <= 1014, code >= 3000 && code <= 4999:
		return nil
	}
	return fmt.Errorf("code %d cannot be sent: want 1000 to 1003, 1007 to 1014 or 3000 to 4999", code)
}

// cutReason cuts reason to what fits into a close frame, between two runes.
func cutReason(reason string) string {
	reason = strings.ToValidUTF8(reason, "\uFFFD")
	if len(reason) <= maxReason {
		return reason
	}
	end := maxReason
	for !utf8.RuneStart(reason[end]) {
		end--
	}
	return reason[:end]
}
