package backoff_test

import (
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// A port on which nobody listens refuses, by the number that Windows has for that.
func TestARealRefusalIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = net.Dial("tcp", l.Addr().String())
	require.True(t, backoff.Classify(err).Refused, "%v", err)
}

func TestNumbersOfWindowsAreClassified(t *testing.T) {
	call := func(n syscall.Errno) error { return &net.OpError{Op: "dial", Err: os.NewSyscallError("connectex", n)} }
	for _, n := range []syscall.Errno{10024, 10049, 10055, 10051} {
		require.Equal(t, backoff.Verdict{Class: backoff.ClassRetry, Local: true}, backoff.Classify(call(n)), "%d", n)
	}
	require.Equal(t, backoff.Verdict{Class: backoff.ClassSlow, Lenient: true, Local: true}, backoff.Classify(call(10013)))
	require.Equal(t, backoff.ClassOverload, backoff.Classify(call(10060)).Class)
	for _, n := range []syscall.Errno{10061, 10054} {
		require.Equal(t, backoff.Verdict{Class: backoff.ClassRetry, Refused: true}, backoff.Classify(call(n)), "%d", n)
	}
}
