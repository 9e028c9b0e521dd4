package backoff

// Reason is why an attempt failed or a session ended. It never derives from a peer's text, so that it is safe as a
// metric label.
type Reason uint8

// The reasons.
const (
	ReasonOther         Reason = iota // none of the following
	ReasonShutdown                    // we ended it for good
	ReasonRotated                     // replaced by another session
	ReasonRedial                      // the application asked for another session
	ReasonSilent                      // the peer was silent for too long
	ReasonStalled                     // no message came for too long
	ReasonSlowReader                  // the application read too slowly
	ReasonOpen                        // the session was not ready in time
	ReasonProtocol                    // the peer broke the protocol, as by a bad 101, or sent too large a message
	ReasonHangup                      // the peer ended the stream without a close frame
	ReasonCloseNormal                 // closed by the peer: 1000 or 1001, or without a code
	ReasonCloseRestart                // closed by the peer: 1012, service restart
	ReasonCloseOverload               // closed by the peer: 1013, try again later
	ReasonCloseOther                  // closed by the peer with another code
	ReasonHTTP4xx                     // the handshake was answered with such a status
	ReasonHTTP5xx                     // likewise
	ReasonHTTPOther                   // likewise, with any other status but 101
	ReasonDNS                         // the host name was not resolved
	ReasonTLS                         // a certificate or an alert
	ReasonRefused                     // the connection was refused or reset
	ReasonTimeout                     // a limit was exceeded
	ReasonLocal                       // the local machine failed: too many open files, no network, not permitted
	ReasonNetwork                     // any other network error
	ReasonLogins                      // a budget of logins allows no login now
)

var reasons = [...]string{
	"other", "shutdown", "rotated", "redial", "silent", "stalled", "slow_reader", "open", "protocol", "hangup", "close_normal",
	"close_restart", "close_overload", "close_other", "http_4xx", "http_5xx", "http_other", "dns", "tls", "refused", "timeout", "local", "network", "logins",
}

// String returns the reason in lower case, such as "close_restart".
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return reasons[ReasonOther]
}

// ReasonOf returns the reason of err. Like [Classify] it looks only at types, of err and of what it wraps.
// The first of these decides: a method Reason() Reason; a method StatusCode() int of a refused handshake; a
// method CloseCode() int of a close frame; an error of TLS, of DNS, of the local machine; a refused or reset
// connection; a timeout; the end of a stream; any other [net.Error]. All else, nil included, is ReasonOther.
func ReasonOf(err error) Reason {
	s := signsOf(err)
	switch k := s.kinds; {
	case s.hasReason:
		return s.reason
	case s.status != 0:
		return statusReason(s.status)
	case s.closeCode != 0:
		return closeReason(s.closeCode)
	case k&isTLS != 0:
		return ReasonTLS
	case k&isDNS != 0:
		return ReasonDNS
	case k&(isLocal|isDenied) != 0:
		return ReasonLocal
	case k&isRefused != 0:
		return ReasonRefused
	case k&isTimeout != 0:
		return ReasonTimeout
	case k&isEOF != 0:
		return ReasonHangup
	case k&(isNetwork|isBreak) != 0:
		return ReasonNetwork
	}
	return ReasonOther
}

func statusReason(status int) Reason {
	switch {
	case status == 101:
		return ReasonProtocol // such as a wrong Sec-WebSocket-Accept
	case status/100 == 4:
		return ReasonHTTP4xx
	case status/100 == 5:
		return ReasonHTTP5xx
	}
	return ReasonHTTPOther
}

func closeReason(code int) Reason {
	switch code {
	case 1000, 1001, 1005:
		return ReasonCloseNormal
	case 1012:
		return ReasonCloseRestart
	case 1013:
		return ReasonCloseOverload
	}
	return ReasonCloseOther
}
