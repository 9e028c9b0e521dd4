package backoff

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"syscall"
	"time"
)

// signs are the facts that Classify and ReasonOf need about an error and all that it wraps. If several errors in
// it provide the same fact, the first one counts, in the order of [errors.As].
type signs struct {
	status    int // the HTTP status of a refused handshake, or 0
	closeCode int // the code of a close frame, or 0
	kinds     kinds

	// The results of a method Verdict, Reason and RetryAfter.
	verdict    Verdict
	reason     Reason
	retryAfter time.Duration

	hasVerdict, hasReason, hasRetryAfter bool
}

// kinds is a set of the kinds of errors of the network and of our own machine.
type kinds uint16

const (
	isTLS     kinds = 1 << iota // a certificate that does not verify, an answer that is not TLS, an alert
	isDNS                       // a name was not resolved
	isNoHost                    // a name server has said that there is no such host
	isDenied                    // our own machine forbids it
	isLocal                     // our own machine has failed
	isRefused                   // refused or reset
	isTimeout                   // a limit was exceeded
	isEOF                       // the peer has ended the stream
	isBreak                     // the stream is broken, or closed by us
	isNetwork                   // any other error of the network
)

// values are errors without a type of their own.
var values = append([]value{
	{syscall.EMFILE, isLocal}, {syscall.ENFILE, isLocal}, // too many open files
	{syscall.EADDRNOTAVAIL, isLocal}, // no such local address, or no port left
	{syscall.ENOBUFS, isLocal},       // no buffer space
	{syscall.ENETUNREACH, isLocal},   // no route to the network
	{syscall.EACCES, isDenied}, {syscall.EPERM, isDenied},
	{syscall.ETIMEDOUT, isTimeout},
	{syscall.ECONNREFUSED, isRefused}, {syscall.ECONNRESET, isRefused},
	{io.EOF, isEOF},
	{io.ErrUnexpectedEOF, isBreak}, {io.ErrClosedPipe, isBreak}, {net.ErrClosed, isBreak},
}, ofWindows...)

type value struct {
	error
	kind kinds
}

// signsOf returns the signs of err, or none if err is nil. It calls all the methods that may provide one,
// whichever decides in the end.
func signsOf(err error) (s signs) {
	s.add(err)
	return s
}

// add adds the signs of err, which may be nil, and of what it wraps.
func (s *signs) add(err error) {
	s.note(err)
	is, _ := err.(interface{ Is(error) bool })
	for _, v := range values {
		if err == v.error || is != nil && is.Is(v.error) {
			s.kinds |= v.kind
		}
	}
	if as, ok := err.(interface{ As(any) bool }); ok {
		s.addShown(as)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		s.add(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			s.add(inner)
		}
	}
}

// note records what the methods and the type of err provide.
func (s *signs) note(err error) {
	if e, ok := err.(judge); ok {
		s.addVerdict(e)
	}
	if e, ok := err.(reasoner); ok {
		s.addReason(e)
	}
	if e, ok := err.(statusCoder); ok {
		s.addStatus(e)
	}
	if e, ok := err.(closeCoder); ok {
		s.addCloseCode(e)
	}
	if e, ok := err.(delayer); ok {
		s.addRetryAfter(e)
	}
	if e, ok := err.(timeouter); ok {
		s.addTimeout(e)
	}
	if _, ok := err.(net.Error); ok {
		s.kinds |= isNetwork
	}
	switch e := err.(type) {
	case *tls.CertificateVerificationError, tls.RecordHeaderError, tls.AlertError,
		x509.CertificateInvalidError, x509.HostnameError, x509.UnknownAuthorityError, x509.SystemRootsError,
		x509.ConstraintViolationError, x509.InsecureAlgorithmError, x509.UnhandledCriticalExtension:
		s.kinds |= isTLS
	case *net.OpError:
		s.addOperation(e)
	case *net.DNSError:
		s.addLookup(e)
	}
}

// addShown adds the signs of errors that as hides from errors.Is and shows to [errors.As].
func (s *signs) addShown(as interface{ As(any) bool }) {
	shown(as, s.addVerdict)
	shown(as, s.addReason)
	shown(as, s.addStatus)
	shown(as, s.addCloseCode)
	shown(as, s.addRetryAfter)
	shown(as, s.addTimeout)
	shown(as, s.addOperation)
	shown(as, s.addLookup)
	shown(as, func(net.Error) { s.kinds |= isNetwork })
	shown(as, func(*tls.CertificateVerificationError) { s.kinds |= isTLS })
	shown(as, func(tls.RecordHeaderError) { s.kinds |= isTLS })
	shown(as, func(tls.AlertError) { s.kinds |= isTLS })
	shown(as, func(x509.CertificateInvalidError) { s.kinds |= isTLS })
	shown(as, func(x509.HostnameError) { s.kinds |= isTLS })
	shown(as, func(x509.UnknownAuthorityError) { s.kinds |= isTLS })
	shown(as, func(x509.SystemRootsError) { s.kinds |= isTLS })
	shown(as, func(x509.ConstraintViolationError) { s.kinds |= isTLS })
	shown(as, func(x509.InsecureAlgorithmError) { s.kinds |= isTLS })
	shown(as, func(x509.UnhandledCriticalExtension) { s.kinds |= isTLS })
}

// shown calls add with the T that as shows, if it shows one.
func shown[T any](as interface{ As(any) bool }, add func(T)) {
	var e T
	if as.As(&e) {
		add(e)
	}
}

// These are the methods by which an error of any package can provide a sign. They are aliases, because a method
// As compares types, and gets the interfaces without a name.
type (
	judge       = interface{ Verdict() Verdict }
	reasoner    = interface{ Reason() Reason }
	statusCoder = interface{ StatusCode() int }
	closeCoder  = interface{ CloseCode() int }
	delayer     = interface{ RetryAfter() (time.Duration, bool) }
	timeouter   = interface{ Timeout() bool }
)

func (s *signs) addVerdict(e judge) {
	if !s.hasVerdict {
		s.verdict, s.hasVerdict = e.Verdict(), true
	}
}

func (s *signs) addReason(e reasoner) {
	if !s.hasReason {
		s.reason, s.hasReason = e.Reason(), true
	}
}

func (s *signs) addStatus(e statusCoder) {
	if s.status == 0 {
		s.status = e.StatusCode()
	}
}

func (s *signs) addCloseCode(e closeCoder) {
	if s.closeCode == 0 {
		s.closeCode = max(e.CloseCode(), 0)
	}
}

func (s *signs) addRetryAfter(e delayer) {
	if !s.hasRetryAfter {
		s.retryAfter, s.hasRetryAfter = e.RetryAfter()
	}
}

func (s *signs) addTimeout(e timeouter) {
	if e.Timeout() {
		s.kinds |= isTimeout
	}
}

// addOperation adds the alert of a peer. Its type is not exported, but over TCP crypto/tls wraps it in an
// operation with this name, and nothing else.
func (s *signs) addOperation(e *net.OpError) {
	if e.Op == "remote error" {
		s.kinds |= isTLS
	}
}

// addLookup adds a failed lookup. A name server that did not answer has not said that there is no such host.
func (s *signs) addLookup(e *net.DNSError) {
	s.kinds |= isDNS
	if e.IsNotFound && !e.IsTemporary && !e.IsTimeout {
		s.kinds |= isNoHost
	}
}
