package backoff

// Classify returns the default verdict on how an attempt or a session ended. It judges by type, never by text.
// The first of these that err, or anything it wraps, is or has decides:
//
//  1. nil: OK.
//  2. A method Verdict() Verdict, as of [Permanent], [Slow], [Refresh] and errors of your own: its result.
//  3. A method StatusCode() int, other than 0, the HTTP status of a refused handshake. 410: Stop. 429, 503, 504:
//     Overload. 408, 425 and other 5xx: Retry. 401, 403: Slow. Others: Slow, but Lenient.
//  4. A method CloseCode() int, above 0, of a WebSocket close frame or an error such as conn.TooBigError
//     (1009). 1013: Overload. 1002, 1003, 1007 to 1010, 1015: Slow, but Lenient. Others: Retry.
//  5. A certificate that does not verify, a response that is not TLS, a TLS alert of the peer: Slow, but
//     Lenient.
//  6. *[net.DNSError]: Retry. If it is final that there is no such host (IsNotFound): Slow, but Lenient, and
//     Local.
//  7. An error of the local machine (too many open files, no local address or port, no buffer space, no route
//     to any network): Retry, and Local. If forbidden (EACCES, EPERM, as by a firewall rule): Slow, but
//     Lenient, and Local.
//  8. A method Timeout() bool that returns true, as of [context.DeadlineExceeded], [os.ErrDeadlineExceeded],
//     syscall.ETIMEDOUT or any [net.Error]: Overload.
//  9. Anything else (refused, reset, unreachable, EOF, [net.ErrClosed]): Retry; and Refused, if it was refused
//     or reset.
//
// In addition, a method RetryAfter() (time.Duration, bool), such as that of the mark [RetryAfter], returns the
// time that the server asked to wait. It is capped at [MaxRetryAfter], and ignored with Stop. 429, or another
// 4xx with a RetryAfter, sets Caller, also beside a method Verdict.
//
// No response is Refresh, except 401 and 403 for a dialer.WebSocket with Prepare. To change that, mark the error
// where it is made, or wrap Classify:
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
	return verdictOf(signsOf(err))
}

// ClassifyRefusals is like [Classify], but knows the close codes with which some servers refuse a login. Use it
// only with these:
//
//	reconnect.RunOptions{Classify: backoff.ClassifyRefusals}
//
// Marks such as [Permanent], and an HTTP status, come first. Then:
//
//   - 4401 (unauthorized, of graphql-ws): Refresh.
//   - 4403 (forbidden, of graphql-ws), 3500 to 3999 and 4500 to 4999 (of Centrifugo, for clients that should
//     not come back): Slow.
func ClassifyRefusals(err error) Verdict {
	if err == nil {
		return Verdict{}
	}
	s := signsOf(err)
	v := verdictOf(s)
	switch code := s.closeCode; {
	case s.hasVerdict, s.status != 0: // they come first
	case code == 4401:
		v.Class = ClassRefresh
	case code == 4403, code >= 3500 && code <= 3999, code >= 4500 && code <= 4999:
		v.Class = ClassSlow
	}
	return v
}

// verdictOf returns the verdict on an error with the signs s.
func verdictOf(s signs) (v Verdict) {
	switch {
	case s.hasVerdict:
		v = s.verdict
	case s.status != 0:
		v = ofStatus(s.status)
	case s.closeCode != 0:
		v = ofClose(s.closeCode)
	default:
		v = ofNetwork(s.kinds)
	}
	if s.hasRetryAfter {
		v.RetryAfter = s.retryAfter
	}
	if s.status == 429 || s.status >= 400 && s.status <= 499 && v.RetryAfter > 0 {
		v.Caller = true
	}
	return v.Bounded()
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

func ofNetwork(k kinds) Verdict {
	switch {
	case k&isTLS != 0:
		return lenient
	case k&(isNoHost|isDenied) != 0:
		return Verdict{Class: ClassSlow, Lenient: true, Local: true}
	case k&isDNS != 0:
		return Verdict{Class: ClassRetry}
	case k&isLocal != 0:
		return Verdict{Class: ClassRetry, Local: true}
	case k&isTimeout != 0:
		return Verdict{Class: ClassOverload}
	}
	return Verdict{Class: ClassRetry, Refused: k&isRefused != 0}
}
