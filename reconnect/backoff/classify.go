package backoff

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/redial-go/redial/internal/errs"
)

// Classify returns the default verdict on how a try or a session ended. It has a verdict for every error,
// and looks at types only, never at texts. The first of these that err, or anything it wraps, is or has,
// decides:
//
//  1. nil: OK.
//  2. A method Verdict() Verdict, such as [Permanent], [Slow] and [Refresh] add: its result. An error of
//     your own may judge itself in this way.
//  3. A method StatusCode() int, other than 0, the HTTP status of a refused handshake. 410: Stop. 429,
//     503, 504: Overload. 408, 425 and other 5xx: Retry. 401, 403: Slow. Others: Slow, but Lenient,
//     because this is no WebSocket endpoint, or expects another request, or is being deployed.
//  4. A method CloseCode() int, above 0, of a WebSocket close frame, or of an error such as a
//     conn.TooBigError (1009). 1013: Overload. 1002, 1003, 1007 to 1010, 1015: Slow, but Lenient.
//     Others: Retry.
//  5. A certificate that does not verify, an answer that is not TLS, a TLS alert of the peer: Slow, but
//     Lenient.
//  6. *[net.DNSError]: Retry, because the server has nothing to do with it. If the answer is final that
//     there is no such host (IsNotFound): Slow, but Lenient, and Local.
//  7. An error of our own machine (too many open files, no local address or port, no buffer space, no
//     route to any network): Retry, and Local. If it forbids what we do (EACCES, EPERM, as by a rule of
//     its firewall): Slow, but Lenient, and Local.
//  8. A method Timeout() bool that returns true, such as context.DeadlineExceeded,
//     [os.ErrDeadlineExceeded], syscall.ETIMEDOUT and any [net.Error] may have: Overload, because the
//     server may have worked in vain.
//  9. Anything else (refused, reset, unreachable, EOF, [net.ErrClosed]): Retry; and Refused, if it was
//     refused or reset.
//
// A Lenient verdict counts as an ordinary loss the first time, and as Slow from the second in a row on.
//
// In addition, a method RetryAfter() (time.Duration, bool), such as the mark [RetryAfter] has, returns the
// time that the server told us to wait. It is cut to [MaxRetryAfter], and dropped with Stop.
//
// No answer of a server is Stop except 410, and none is Refresh. To change that, mark the error where it
// is made, or wrap Classify:
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
	v := verdictOf(err)
	errs.Find(err, func(e interface{ RetryAfter() (time.Duration, bool) }) bool {
		wait, ok := e.RetryAfter()
		if ok {
			v.RetryAfter = wait
		}
		return ok
	})
	return v.Bounded()
}

// ClassifyRefusals is [Classify], but it knows the close codes by which servers refuse a login. Use it where
// the server is one of these, because codes from 3000 on mean something else with each protocol:
//
//		reconnect.RunOptions{Classify: backoff.ClassifyRefusals}
//
//	  - 4401 (unauthorized, of graphql-ws): Refresh, so that one more dial with new credentials comes at once.
//	  - 4403 (forbidden, of graphql-ws), 3500 to 3999 and 4500 to 4999 (of Centrifugo, after which a client
//	    should not come back): Slow.
//
// A mark, such as of [Permanent], and an HTTP status still come first.
func ClassifyRefusals(err error) Verdict {
	v := Classify(err)
	if statusOf(err) != 0 || errs.Find(err, func(interface{ Verdict() Verdict }) bool { return true }) {
		return v
	}
	switch code := closeCodeOf(err); {
	case code == 4401:
		v.Class = ClassRefresh
	case code == 4403, code >= 3500 && code <= 3999, code >= 4500 && code <= 4999:
		v.Class = ClassSlow
	}
	return v
}

func verdictOf(err error) (v Verdict) {
	if errs.Find(err, func(e interface{ Verdict() Verdict }) bool { v = e.Verdict(); return true }) {
		return v
	}
	if code := statusOf(err); code != 0 {
		return ofStatus(code)
	}
	if code := closeCodeOf(err); code != 0 {
		return ofClose(code)
	}
	return ofNetwork(err)
}

// statusOf returns the HTTP status of a refused handshake, 0 if err has none.
func statusOf(err error) (code int) {
	errs.Find(err, func(e interface{ StatusCode() int }) bool { code = e.StatusCode(); return code != 0 })
	return code
}

// closeCodeOf returns the code of a close frame, 0 if err has none.
func closeCodeOf(err error) (code int) {
	errs.Find(err, func(e interface{ CloseCode() int }) bool { code = max(e.CloseCode(), 0); return code > 0 })
	return code
}

// lenient is the verdict on an error that a person may have to mend.
var lenient = Verdict{Class: ClassSlow, Lenient: true}

func ofStatus(code int) Verdict {
	switch code {
	case 410: // gone
		return Verdict{Class: ClassStop}
	case 401, 403: // unauthorized, forbidden
		return Verdict{Class: ClassSlow}
	case 429, 503, 504: // too many requests, service unavailable, gateway timeout
		return Verdict{Class: ClassOverload}
	case 408, 425: // request timeout, too early
		return Verdict{Class: ClassRetry}
	}
	if code >= 500 && code <= 599 {
		return Verdict{Class: ClassRetry}
	}
	return lenient
}

// ofClose returns the verdict on a close code, one of RFC 6455, section 7.4.1, or of
// the IANA registry.
func ofClose(code int) Verdict {
	switch code {
	case 1013: // try again later
		return Verdict{Class: ClassOverload}
	case 1002, 1003, 1007, 1008, 1009, 1010, 1015: // protocol, data type, encoding, policy, size, extension, TLS
		return lenient
	}
	return Verdict{Class: ClassRetry}
}

func ofNetwork(err error) Verdict {
	switch {
	case isTLS(err):
		return lenient
	case isNoSuchHost(err), isOneOf(err, deniedErrors):
		return Verdict{Class: ClassSlow, Lenient: true, Local: true}
	case has[*net.DNSError](err):
		return Verdict{Class: ClassRetry}
	case isOneOf(err, localErrors):
		return Verdict{Class: ClassRetry, Local: true}
	case isTimeout(err):
		return Verdict{Class: ClassOverload}
	}
	return Verdict{Class: ClassRetry, Refused: isOneOf(err, refusedErrors)}
}

// isNoSuchHost reports whether a name server has said that there is no such host. A name server that did not
// answer has said nothing.
func isNoSuchHost(err error) bool {
	return errs.Find(err, func(e *net.DNSError) bool { return e.IsNotFound && !e.IsTemporary && !e.IsTimeout })
}

func isTimeout(err error) bool {
	return isOneOf(err, timeoutErrors) || errs.Find(err, func(e interface{ Timeout() bool }) bool { return e.Timeout() })
}

func isOneOf(err error, errs []error) bool {
	return slices.ContainsFunc(errs, func(e error) bool { return errors.Is(err, e) })
}

var (
	localErrors = append([]error{ // our own machine has failed
		syscall.EMFILE, syscall.ENFILE, // too many open files
		syscall.EADDRNOTAVAIL, // no such local address, or no port left
		syscall.ENOBUFS,       // no buffer space
		syscall.ENETUNREACH,   // no route to the network
	}, wsaLocal...)
	deniedErrors = append([]error{syscall.EACCES, syscall.EPERM}, wsaDenied...) // our own machine forbids it

	timeoutErrors = append([]error{syscall.ETIMEDOUT}, wsaTimeout...)
	refusedErrors = append([]error{syscall.ECONNREFUSED, syscall.ECONNRESET}, wsaRefused...)

	streamBreaks = []error{io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed}
)

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
		errs.Find(err, func(e *net.OpError) bool { return e.Op == "remote error" })
}

func has[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
