package backoff_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// answered is an error with a status, closed one with a close code, judged one
// that judges itself, tardy one with a Retry-After that may be none.
type (
	answered int
	closed   int
	judged   backoff.Class
	tardy    time.Duration
)

func (a answered) Error() string                  { return fmt.Sprint("status ", int(a)) }
func (a answered) StatusCode() int                { return int(a) }
func (c closed) Error() string                    { return fmt.Sprint("close ", int(c)) }
func (c closed) CloseCode() int                   { return int(c) }
func (j judged) Error() string                    { return "judged" }
func (j judged) Verdict() backoff.Verdict         { return backoff.Verdict{Class: backoff.Class(j)} }
func (d tardy) Error() string                     { return "tardy" }
func (d tardy) RetryAfter() (time.Duration, bool) { return time.Duration(d), d != 0 }

// Promise 9: the whole table.
func TestClassOfStatus(t *testing.T) {
	special := map[int]backoff.Class{
		408: backoff.ClassRetry, 425: backoff.ClassRetry,
		410: backoff.ClassStop,
		429: backoff.ClassOverload, 503: backoff.ClassOverload, 504: backoff.ClassOverload,
	}
	for status := -1; status < 1000; status++ {
		want, ok := special[status]
		switch {
		case ok:
		case status == 0 || status >= 500 && status < 600:
			want = backoff.ClassRetry
		default: // 101, 200, 302, 400, 401, 403, 404, 426 ...
			want = backoff.ClassSlow
		}
		got := backoff.Classify(answered(status))
		require.Equal(t, want, got.Class, "status %d", status)
		require.Equal(t, want == backoff.ClassSlow && status != 401 && status != 403, got.Lenient, "status %d", status)
	}
}

// A refusal of the caller is 429, and any other 4xx with a Retry-After.
func TestRefusalOfCallerByStatus(t *testing.T) {
	for status := -1; status < 1000; status++ {
		client := status >= 400 && status < 500 && status != 410
		bare := answered(status)
		require.Equal(t, status == 429, backoff.Classify(bare).Caller, "status %d", status)
		timed := backoff.RetryAfter(bare, time.Minute)
		require.Equal(t, client, backoff.Classify(timed).Caller, "status %d", status)
		require.Equal(t, client, backoff.ClassifyRefusals(timed).Caller, "status %d", status)
		zero := backoff.RetryAfter(bare, 0)
		require.Equal(t, status == 429, backoff.Classify(zero).Caller, "status %d", status)
	}
	for _, err := range []error{closed(4429), closed(1013), context.DeadlineExceeded, judged(backoff.ClassSlow)} {
		require.False(t, backoff.Classify(backoff.RetryAfter(err, time.Minute)).Caller, err)
	}
	// A mark changes the class, and not who was refused.
	refreshed := backoff.Classify(backoff.Refresh(backoff.RetryAfter(answered(401), time.Minute)))
	require.Equal(t, backoff.Verdict{Class: backoff.ClassRefresh, Caller: true, RetryAfter: time.Minute}, refreshed)
	require.Equal(t, refreshed, refreshed.OfServer())
	require.Equal(t, backoff.Verdict{Class: backoff.ClassStop}, backoff.Classify(backoff.Permanent(answered(429))))
}

func TestClassOfCloseCode(t *testing.T) {
	special := map[int]backoff.Class{
		1002: backoff.ClassSlow, 1003: backoff.ClassSlow, 1007: backoff.ClassSlow, 1008: backoff.ClassSlow,
		1009: backoff.ClassSlow, 1010: backoff.ClassSlow, 1015: backoff.ClassSlow, 1013: backoff.ClassOverload,
	}
	for code := -1; code < 5100; code++ {
		want, ok := special[code]
		if !ok { // 1000, 1001, 1005, 1006, 1011, 1012, 1014, 3000 to 4999 ...
			want = backoff.ClassRetry
		}
		got := backoff.Classify(closed(code))
		require.Equal(t, want, got.Class, "code %d", code)
		require.Equal(t, want == backoff.ClassSlow, got.Lenient, "code %d", code)
	}
}

func TestClassOfACloseCodeThatRefuses(t *testing.T) {
	for code := -1; code < 5100; code++ {
		want := backoff.Classify(closed(code))
		switch {
		case code == 4401:
			want = backoff.Verdict{Class: backoff.ClassRefresh}
		case code == 4403, code >= 3500 && code < 4000, code >= 4500 && code < 5000:
			want = backoff.Verdict{Class: backoff.ClassSlow}
		}
		require.Equal(t, want, backoff.ClassifyRefusals(fmt.Errorf("read: %w", closed(code))), "code %d", code)
	}
	for _, err := range []error{nil, errors.New("lost"), backoff.Permanent(closed(4403)), errors.Join(closed(4403), answered(503))} {
		require.Equal(t, backoff.Classify(err), backoff.ClassifyRefusals(err), "%v", err)
	}
	for code, class := range map[int]backoff.Class{4401: backoff.ClassRefresh, 4403: backoff.ClassSlow} {
		told := backoff.ClassifyRefusals(backoff.RetryAfter(closed(code), time.Minute))
		require.Equal(t, backoff.Verdict{Class: class, RetryAfter: time.Minute}, told)
	}
}

// What fails on our own machine says nothing about the server.
func TestErrorsOfOurOwnMachineAreLocal(t *testing.T) {
	local := []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENETUNREACH}
	for _, err := range local {
		dial := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
		v := backoff.Classify(fmt.Errorf("dial wss://h/: %w", dial))
		require.Equal(t, backoff.Verdict{Class: backoff.ClassRetry, Local: true}, v, err)
		require.Equal(t, backoff.Verdict{Class: backoff.ClassStop}, v.OfServer())
	}
	for _, err := range []error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ETIMEDOUT} {
		v := backoff.Classify(os.NewSyscallError("connect", err))
		require.False(t, v.Local, err)
		require.Equal(t, v, v.OfServer())
	}
}

func TestClassOfNetworkErrors(t *testing.T) {
	operation := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }
	call := func(err error) error { return operation("dial", os.NewSyscallError("connect", err)) }
	for want, errs := range map[backoff.Class][]error{
		backoff.ClassSlow: {
			x509.UnknownAuthorityError{}, x509.HostnameError{Certificate: &x509.Certificate{}}, x509.CertificateInvalidError{},
			x509.SystemRootsError{}, x509.ConstraintViolationError{}, x509.InsecureAlgorithmError(0), x509.UnhandledCriticalExtension{},
			&tls.CertificateVerificationError{Err: errors.New("expired")}, tls.RecordHeaderError{}, tls.AlertError(40),
			operation("remote error", errors.New("some alert")),
		},
		backoff.ClassOverload: {
			context.DeadlineExceeded, os.ErrDeadlineExceeded, call(syscall.ETIMEDOUT),
			operation("read", os.ErrDeadlineExceeded),
		},
		backoff.ClassRetry: {
			call(syscall.ECONNREFUSED), call(syscall.ECONNRESET), call(syscall.ENETUNREACH), call(syscall.EHOSTUNREACH),
			io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.Canceled, errors.New("anything: timeout 503"),
			operation("dial", &net.DNSError{IsTimeout: true}), operation("dial", &net.DNSError{IsTemporary: true}),
			operation("local error", errors.New("some alert")),
		},
	} {
		for _, err := range errs {
			require.Equal(t, want, backoff.Classify(err).Class, "%T %v", err, err)
			wrapped := errors.Join(io.EOF, fmt.Errorf("dial: %w", err))
			require.Equal(t, want, backoff.Classify(wrapped).Class, "wrapped %T %v", err, err)
		}
	}
}

// A name that does not exist, and what our own machine forbids, say nothing about the server. They may pass by
// themselves the first time.
func TestNoSuchHostAndWhatIsForbiddenAreSlowFromTheSecondOn(t *testing.T) {
	call := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	want := backoff.Verdict{Class: backoff.ClassSlow, Lenient: true, Local: true}
	for _, err := range []error{
		&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "h", IsNotFound: true}},
		call(syscall.EACCES), call(syscall.EPERM),
	} {
		v := backoff.Classify(fmt.Errorf("dial wss://h/: %w", err))
		require.Equal(t, want, v, err)
		require.Equal(t, backoff.Verdict{Class: backoff.ClassStop}, v.OfServer())
	}
	for _, err := range []*net.DNSError{ // of a server that did not answer, or not for good
		{IsTimeout: true}, {IsTemporary: true}, {IsNotFound: true, IsTimeout: true}, {IsNotFound: true, IsTemporary: true}, {Err: "no such host"},
	} {
		require.Equal(t, backoff.Verdict{Class: backoff.ClassRetry}, backoff.Classify(err), "%+v", err)
	}
}

func TestNilIsOK(t *testing.T) { require.Equal(t, backoff.Verdict{}, backoff.Classify(nil)) }

func TestAnAlertOfARealPeerIsSlow(t *testing.T) {
	client, server := net.Pipe()
	refused := make(chan error, 1) // so that the goroutine does not wait for us
	go func() {
		refused <- tls.Server(server, &tls.Config{MinVersion: tls.VersionTLS13}).Handshake()
		server.Close()
	}()
	err := tls.Client(client, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}).Handshake()
	require.ErrorContains(t, err, "remote error: tls: protocol version not supported")
	require.Equal(t, backoff.ClassSlow, backoff.Classify(err).Class)
	require.Error(t, <-refused)
}

func TestWhatAnErrorSaysOfItselfComesFirst(t *testing.T) {
	err := errors.Join(answered(503), closed(1013), context.DeadlineExceeded, judged(backoff.ClassRefresh))
	require.Equal(t, backoff.ClassRefresh, backoff.Classify(err).Class)
}

func TestAStatusComesBeforeACloseCodeAndThatBeforeTheCause(t *testing.T) {
	require.Equal(t, backoff.ClassSlow, backoff.Classify(errors.Join(context.DeadlineExceeded, closed(1013), answered(404))).Class)
	require.Equal(t, backoff.ClassSlow, backoff.Classify(errors.Join(context.DeadlineExceeded, closed(1002))).Class)
}

func TestNoStatusMeansLookOn(t *testing.T) {
	require.Equal(t, backoff.ClassOverload, backoff.Classify(errors.Join(answered(0), answered(429))).Class)
	require.Equal(t, backoff.ClassOverload, backoff.Classify(errors.Join(answered(0), closed(-1), closed(1013))).Class)
}

func TestFirstStatusAndCloseCodeCount(t *testing.T) {
	for _, err := range []error{
		errors.Join(answered(503), answered(404)), errors.Join(answered(503), answered(0)),
		errors.Join(closed(1013), closed(1002)), errors.Join(closed(1013), closed(-1)),
	} {
		require.Equal(t, backoff.ClassOverload, backoff.Classify(err).Class, "%v", err)
	}
}

// masked shows another error through errors.As only.
type masked struct{ status answered }

func (masked) Error() string { return "masked" }
func (m masked) As(target any) bool {
	to, ok := target.(*interface{ StatusCode() int })
	if ok {
		*to = m.status
	}
	return ok
}

func TestAnErrorMayAnswerThroughAs(t *testing.T) {
	require.Equal(t, backoff.ClassStop, backoff.Classify(fmt.Errorf("dial: %w", masked{410})).Class)
}

// hidden shows another error through errors.As only, as the error of a lost question does.
type hidden struct{ cause error }

func (hidden) Error() string        { return "hidden" }
func (h hidden) As(target any) bool { return errors.As(h.cause, target) }

func TestHiddenErrorCountsAsItself(t *testing.T) {
	operation := func(op string) error { return &net.OpError{Op: op, Net: "tcp", Err: errors.New("no idea")} }
	for _, err := range []error{
		judged(backoff.ClassRefresh), reasoned(backoff.ReasonStalled), answered(503), closed(1013), tardy(time.Minute),
		context.DeadlineExceeded, operation("read"), operation("remote error"), &net.DNSError{IsNotFound: true},
		&tls.CertificateVerificationError{Err: errors.New("expired")}, tls.RecordHeaderError{}, tls.AlertError(40),
		x509.CertificateInvalidError{}, x509.HostnameError{Certificate: &x509.Certificate{}},
		x509.UnknownAuthorityError{}, x509.SystemRootsError{}, x509.ConstraintViolationError{},
		x509.InsecureAlgorithmError(0), x509.UnhandledCriticalExtension{}, &onlyNetwork{}, late(true),
		errors.Join(late(false), &onlyNetwork{}), errors.Join(&onlyNetwork{}, operation("remote error")),
		&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}},
		backoff.RetryAfter(refused{}, time.Second), errors.Join(reasoned(backoff.ReasonOpen), refused{}),
		errors.Join(closed(1013), refused{}), errors.Join(judged(backoff.ClassSlow), refused{}),
	} {
		require.Equal(t, backoff.Classify(err), backoff.Classify(hidden{err}), "%T", err)
		require.Equal(t, backoff.ReasonOf(err), backoff.ReasonOf(fmt.Errorf("asked: %w", hidden{err})), "%T", err)
	}
}

// refused has each method by which an error can provide something.
type refused struct{}

func (refused) Error() string                     { return "refused" }
func (refused) Verdict() backoff.Verdict          { return backoff.Verdict{Class: backoff.ClassRefresh} }
func (refused) Reason() backoff.Reason            { return backoff.ReasonStalled }
func (refused) StatusCode() int                   { return 429 }
func (refused) CloseCode() int                    { return 1002 }
func (refused) RetryAfter() (time.Duration, bool) { return time.Minute, true }

// late is an error with a method Timeout, and no net.Error.
type late bool

func (late) Error() string   { return "late" }
func (l late) Timeout() bool { return bool(l) }

// onlyNetwork is a net.Error of a type of its own.
type onlyNetwork struct{}

func (*onlyNetwork) Error() string   { return "network" }
func (*onlyNetwork) Timeout() bool   { return false }
func (*onlyNetwork) Temporary() bool { return false }

func TestRefusedOrResetConnectionIsRefused(t *testing.T) {
	for _, err := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET} {
		want := backoff.Verdict{Class: backoff.ClassRetry, Refused: true}
		require.Equal(t, want, backoff.Classify(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)}))
	}
	for _, err := range []error{syscall.EHOSTUNREACH, io.EOF, net.ErrClosed, io.ErrUnexpectedEOF} {
		require.Equal(t, backoff.Verdict{Class: backoff.ClassRetry}, backoff.Classify(err), "%v", err)
	}
}

// Promise 9: it is cut at an hour, and means nothing with Stop.
func TestRetryAfterIsFoundAndClamped(t *testing.T) {
	for err, want := range map[error]time.Duration{
		tardy(7 * time.Second):                                  7 * time.Second,
		tardy(25 * time.Hour):                                   time.Hour,
		tardy(-time.Second):                                     0,
		errors.Join(tardy(0), io.EOF, tardy(time.Second)):       time.Second,
		errors.Join(answered(410), tardy(time.Second)):          0,
		fmt.Errorf("%w, %w", answered(404), tardy(time.Second)): time.Second,
	} {
		require.Equal(t, want, backoff.Classify(err).RetryAfter, "%v", err)
	}
}

func TestClassesHaveNames(t *testing.T) {
	require.Equal(t, "overload", backoff.ClassOverload.String())
	require.Equal(t, "stop", backoff.ClassStop.String())
	require.Equal(t, "class 77", backoff.Class(77).String())
}
