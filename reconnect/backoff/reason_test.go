package backoff_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// reasoned is an error that knows its reason.
type reasoned backoff.Reason

func (r reasoned) Error() string          { return "reasoned" }
func (r reasoned) Reason() backoff.Reason { return backoff.Reason(r) }

func TestReasonOfEachKindOfError(t *testing.T) {
	for err, want := range map[error]string{
		reasoned(backoff.ReasonStalled):                                "stalled",
		fmt.Errorf("a: %w", reasoned(backoff.ReasonRotated)):           "rotated",
		errors.Join(answered(503), reasoned(backoff.ReasonSlowReader)): "slow_reader",
		answered(101):                      "protocol",
		answered(401):                      "http_4xx",
		answered(503):                      "http_5xx",
		answered(302):                      "http_other",
		answered(200):                      "http_other",
		closed(1000):                       "close_normal",
		closed(1001):                       "close_normal",
		closed(1005):                       "close_normal",
		closed(1012):                       "close_restart",
		closed(1013):                       "close_overload",
		closed(1008):                       "close_other",
		closed(4000):                       "close_other",
		tls.AlertError(40):                 "tls",
		&net.DNSError{Err: "no such host"}: "dns",
		&net.DNSError{IsTimeout: true}:     "dns",
		&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}: "refused",
		&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}:      "refused",
		os.NewSyscallError("socket", syscall.EMFILE):                                       "local",
		syscall.ENETUNREACH:            "local",
		syscall.ETIMEDOUT:              "timeout",
		context.DeadlineExceeded:       "timeout",
		fmt.Errorf("read: %w", io.EOF): "hangup",
		io.ErrUnexpectedEOF:            "network",
		net.ErrClosed:                  "network",
		&net.OpError{Op: "read", Err: errors.New("no idea")}: "network",
		errors.New("401 Unauthorized"):                       "other",
	} {
		require.Equal(t, want, backoff.ReasonOf(err).String(), "%v", err)
	}
	require.Equal(t, backoff.ReasonOther, backoff.ReasonOf(nil))
}

// A label must never be empty or made up, whatever the number is.
func TestEveryReasonHasANameOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for r := backoff.ReasonOther; r <= backoff.ReasonLogins; r++ {
		require.Regexp(t, "^[a-z0-9_]+$", r.String())
		require.False(t, seen[r.String()], "%v", r)
		seen[r.String()] = true
	}
	require.Equal(t, "other", (backoff.ReasonLogins + 1).String())
}
