package backoff

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"time"
)

// Classify is the default judgement on how a try or a session ended. It has a verdict
// for every error, and goes by types only, never by text. The first of these that err,
// or anything it wraps, is or has, decides:
//
//  1. nil: OK.
//  2. A method Verdict() Verdict, such as [Permanent], [Slow] and [Refresh] add: what
//     it returns. An error of your own may judge itself in this way.
//  3. A method StatusCode() int, other than 0, the HTTP status of a refused
//     handshake. 410, 426: Stop. 429, 503, 504: Overload. 408, 425 and
//     other 5xx: Retry. Others: Slow, because this is no WebSocket endpoint, or one
//     that wants something else from us.
//  4. A method CloseCode() int, above 0, of a WebSocket close frame. 1013:
//     Overload. 1002, 1003, 1007 to 1010, 1015: Slow. Others: Retry.
//  5. A certificate that does not verify, an answer that is not TLS, a TLS
//     alert of the peer: Slow.
//  6. *[net.DNSError]: Retry, because the server has nothing to do with it.
//  7. A method Timeout() bool that returns true, such as context.DeadlineExceeded,
//     [os.ErrDeadlineExceeded], syscall.ETIMEDOUT and any [net.Error] may have:
//     Overload, because the server may have worked in vain.
//  8. Anything else (refused, reset, unreachable, EOF, [net.ErrClosed]): Retry.
//
// Beside that, a method RetryAfter() (time.Duration, bool), such as the mark
// [RetryAfter] adds, returns what the server told us to wait. It is cut to
// [MaxRetryAfter], and dropped with Stop.
//
// Nothing a server says is Stop except 410 and 426, and nothing is Refresh. To
// change that, mark the error where it is made, or wrap Classify:
//
//	func classify(err error) backoff.Verdict {
//		if isExpiredToken(err) {
//			err = backoff.Refresh(err)
//		}
//		return backoff.Classify(err)
//	}
func Classify(err error) Verdict {
	if err == nil {
		return Verdict{}
	}
	v := judge(err)
	find(err, func(e interface{ RetryAfter() (time.Duration, bool) }) bool {
		wait, ok := e.RetryAfter()
		if ok {
			v.RetryAfter = wait
		}
		return ok
	})
	return v.clamped()
}

func judge(err error) (v Verdict) {
	switch {
	case find(err, func(e interface{ Verdict() Verdict }) bool { v = e.Verdict(); return true }):
	case find(err, func(e interface{ StatusCode() int }) bool {
		code := e.StatusCode()
		v.Class = classOfStatus(code)
		return code != 0
	}):
	case find(err, func(e interface{ CloseCode() int }) bool {
		code := e.CloseCode()
		v.Class = classOfClose(code)
		return code > 0
	}):
	default:
		v.Class = classOfNetwork(err)
	}
	return v
}

func classOfStatus(code int) Class {
	switch code {
	case 410, 426: // gone, upgrade required
		return ClassStop
	case 429, 503, 504: // too many requests, service unavailable, gateway timeout
		return ClassOverload
	case 408, 425: // request timeout, too early
		return ClassRetry
	}
	if code >= 500 && code <= 599 {
		return ClassRetry
	}
	return ClassSlow
}

// classOfClose returns the class of a close code, one of RFC 6455, section 7.4.1, or of
// the IANA registry.
func classOfClose(code int) Class {
	switch code {
	case 1013: // try again later
		return ClassOverload
	case 1002, 1003, 1007, 1008, 1009, 1010, 1015: // protocol, data type, encoding, policy, size, extension, TLS
		return ClassSlow
	}
	return ClassRetry
}

func classOfNetwork(err error) Class {
	switch {
	case isTLS(err):
		return ClassSlow
	case has[*net.DNSError](err):
		return ClassRetry
	case find(err, func(e interface{ Timeout() bool }) bool { return e.Timeout() }):
		return ClassOverload
	}
	return ClassRetry
}

func isTLS(err error) bool {
	return has[*tls.CertificateVerificationError](err) ||
		has[x509.CertificateInvalidError](err) ||
		has[x509.HostnameError](err) ||
		has[x509.UnknownAuthorityError](err) ||
		has[x509.SystemRootsError](err) ||
		has[x509.ConstraintViolationError](err) ||
		has[x509.InsecureAlgorithmError](err) ||
		has[x509.UnhandledCriticalExtension](err) ||
		has[tls.RecordHeaderError](err) ||
		has[tls.AlertError](err) ||
		// Over TCP crypto/tls wraps an alert of the peer, whose type is not
		// exported, in this operation and nothing else.
		find(err, func(e *net.OpError) bool { return e.Op == "remote error" })
}

func has[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// find reports whether err, or anything it wraps, is a T for which yes returns true. It
// looks in the order of [errors.As].
func find[T any](err error, yes func(T) bool) bool {
	if err == nil {
		return false
	}
	if e, ok := err.(T); ok && yes(e) {
		return true
	}
	if other, ok := err.(interface{ As(any) bool }); ok {
		var e T
		if other.As(&e) && yes(e) {
			return true
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return find(e.Unwrap(), yes)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if find(err, yes) {
				return true
			}
		}
	}
	return false
}
