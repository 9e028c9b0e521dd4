package debug

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// No text of an error is shown, only what its type and codes say.
func TestACauseIsMadeOfTypesAndCodes(t *testing.T) {
	const s = "planted-secret"
	for want, err := range map[string]error{
		"close_restart: closed by the peer: 1012 (service restart)": &conn.CloseError{Code: 1012, Reason: s},
		"close_other: closed by the peer: 4001":                     fmt.Errorf(s+": %w", &conn.CloseError{Code: 4001, Reason: s}),
		"close_normal: closed by the peer, without a code":          &conn.CloseError{Code: 1005, Reason: s},
		"http_5xx: the server answered 503 Service Unavailable":     &dialer.Error{Endpoint: s, StatusCode: 503, Err: errors.New(s)},
		"http_4xx: the server answered 499":                         &dialer.Error{Endpoint: s, StatusCode: 499, Err: errors.New(s)},
		"refused: connection refused":                               &dialer.Error{Endpoint: s, Err: &net.OpError{Op: s, Err: os.NewSyscallError(s, syscall.ECONNREFUSED)}},
		"dns: the name of the host was not resolved":                &net.DNSError{Err: s, Name: s},
		"tls: TLS: a certificate, or an alert":                      x509.HostnameError{Host: s, Certificate: new(x509.Certificate)},
		"hangup: the peer hung up without a close frame":            fmt.Errorf(s+": %w", io.EOF),
		"protocol: the peer broke the rules of the protocol":        &conn.ProtocolError{Err: errors.New(s)},
		"protocol: message larger than the read limit of 7 bytes":   fmt.Errorf(s+": %w", &conn.TooBigError{Limit: 7}),
		"timeout: a part of a message was not written within 7s":    &conn.SlowMessageError{Op: "write", Limit: 7 * time.Second},
		"timeout: a limit was exceeded":                             fmt.Errorf(s+": %w", context.DeadlineExceeded),
		"silent: the peer was silent for too long":                  reconnect.ErrSilent,
		"slow_reader: the program read too slowly":                  reconnect.ErrInboxFull,
		"other: canceled": fmt.Errorf(s+": %w", context.Canceled),
		"other: another error: the program's log may have its text": errors.New(s),
		"other: the policy gave up":                                 fmt.Errorf(s+": %w", backoff.ErrGaveUp),
	} {
		reason := reasonOf(err)
		require.Equal(t, want, reason.String()+": "+causeFor(err, reason, time.Time{}).Text)
	}
}

func TestEveryReasonHasAText(t *testing.T) {
	for r := backoff.ReasonOther; r <= backoff.ReasonLogins; r++ {
		switch r {
		case backoff.ReasonCloseNormal, backoff.ReasonCloseRestart, backoff.ReasonCloseOverload, backoff.ReasonCloseOther, backoff.ReasonHTTP4xx,
			backoff.ReasonHTTP5xx, backoff.ReasonHTTPOther: // a code makes the text
		default:
			require.NotEmpty(t, reasonTexts[r], r)
		}
	}
}

func TestTextsAreCutAndOnOneLine(t *testing.T) {
	require.Equal(t, "a b", clean("a b"))
	require.Equal(t, "a\uFFFDb\uFFFD", clean("a\nb\u202e"))
	long := clean(strings.Repeat("é", 300))
	require.LessOrEqual(t, len(long), maxText)
	require.True(t, strings.HasSuffix(long, "é…"))
}
