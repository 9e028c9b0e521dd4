package conntest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

func TestDialWithoutListenerIsRefused(t *testing.T) {
	var n conntest.Network
	_, err := n.DialContext(t.Context(), "tcp", addr)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, "dial tcp feed.test:80: connect: connection refused", err.Error())
}

func TestDialWantsTCP(t *testing.T) {
	var n conntest.Network
	_, err := n.DialContext(t.Context(), "unix", addr)
	require.ErrorIs(t, err, net.UnknownNetworkError("unix"))
	require.Empty(t, n.Dials(""))
}

func TestListenRefusesAnAddressInUseOrMalformed(t *testing.T) {
	var n conntest.Network
	l, err := n.Listen(addr)
	require.NoError(t, err)
	_, err = n.Listen(addr)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NoError(t, l.Close())
	require.ErrorIs(t, l.Close(), net.ErrClosed)
	again, err := n.Listen(addr)
	require.NoError(t, err)
	require.Equal(t, addr, again.Addr().String())
	_, err = n.Listen("no port")
	require.Error(t, err)
}

func TestListenerCloseEndsAcceptAndResetsTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		l, err := n.Listen(addr)
		require.NoError(t, err)
		waiting, err := n.DialContext(t.Context(), "tcp", addr)
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.ErrorIs(t, readErr(t, waiting), syscall.ECONNRESET)
		waiting.Close()
		require.Empty(t, n.Unclosed())

		l, err = n.Listen(addr)
		require.NoError(t, err)
		accepted := make(chan error, 1)
		go func() { _, err := l.Accept(); accepted <- err }()
		synctest.Wait()
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-accepted, net.ErrClosed)
	})
}

func TestHangingDialEndsWithItsContextOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		start := time.Now()
		_, err := n.Listen(addr)
		require.NoError(t, err)
		n.Fault(addr, conntest.Fault{Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		time.AfterFunc(time.Minute, func() { n.Fault(addr) }) // too late for this one
		_, err = n.DialContext(ctx, "tcp", addr)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(start))
		var timeout net.Error
		require.True(t, errors.As(err, &timeout) && timeout.Timeout())
	})
}

func TestDialWithAnEndedContextReachesNobody(t *testing.T) {
	var n conntest.Network
	l, err := n.Listen(addr)
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = n.DialContext(ctx, "tcp", addr)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, n.Unclosed())
}

func TestFaultsAreTakenInTurnAndTheLastStays(t *testing.T) {
	var n conntest.Network
	l, err := n.Listen(addr)
	require.NoError(t, err)
	defer l.Close()
	unreachable := conntest.Fault{Err: syscall.EHOSTUNREACH}
	n.Fault("", conntest.Fault{Err: syscall.ECONNREFUSED})
	n.Fault(addr, conntest.Fault{Err: syscall.ECONNREFUSED}, conntest.Fault{}, unreachable)

	for _, want := range []error{syscall.ECONNREFUSED, nil, syscall.EHOSTUNREACH, syscall.EHOSTUNREACH} {
		c, err := n.DialContext(t.Context(), "tcp", addr)
		require.ErrorIs(t, err, want)
		if err == nil {
			c.Close()
		}
	}
	n.Fault(addr)
	_, err = n.DialContext(t.Context(), "tcp", addr)
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "the fault of every address")
	n.Fault("")
	c, err := n.DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	c.Close()
}

func TestDroppedConnectionIsClosedWithoutAListener(t *testing.T) {
	var n conntest.Network
	n.Fault(addr, conntest.Fault{Drop: true})
	c, err := n.DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	require.Equal(t, io.EOF, readErr(t, c))
	require.ErrorIs(t, writeErr(c), syscall.EPIPE)
	require.Empty(t, n.Conns(addr))
	require.Equal(t, 1, n.Count("").Open, "its dialer has not closed it")
	require.NoError(t, c.Close())
	require.Zero(t, n.Count("").Open)
}

func TestLateDialAnswersAtItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		l, err := n.Listen(addr)
		require.NoError(t, err)
		defer l.Close()
		start := time.Now()
		n.Fault(addr, conntest.Fault{Delay: 3 * time.Second},
			conntest.Fault{Delay: 2 * time.Second, Err: syscall.ECONNREFUSED})
		c, err := n.DialContext(t.Context(), "tcp", addr)
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, time.Since(start))
		c.Close()
		_, err = n.DialContext(t.Context(), "tcp", addr)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Equal(t, 5*time.Second, time.Since(start))
	})
}

func TestLateDialEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		l, err := n.Listen(addr)
		require.NoError(t, err)
		defer l.Close()
		n.Fault(addr, conntest.Fault{Delay: 3 * time.Second})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = n.DialContext(ctx, "tcp", addr)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		time.Sleep(time.Minute)
		require.Empty(t, n.Unclosed(), "nobody came")
	})
}

func TestADialThatIgnoresItsContextAnswersAfterItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		l, err := n.Listen(addr)
		require.NoError(t, err)
		defer l.Close()
		n.Fault(addr, conntest.Fault{Delay: 3 * time.Second, IgnoresContext: true})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c, err := n.DialContext(ctx, "tcp", addr)
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, time.Since(start))
		require.Len(t, n.Conns(addr), 1)
		c.Close()
	})
}

// A real kernel may still answer a dial that the client gave up.
func TestADialThatWasGivenUpCompletesAnyway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		l, err := n.Listen(addr)
		require.NoError(t, err)
		defer l.Close()
		n.Fault(addr, conntest.Fault{Delay: 3 * time.Second, CompletesAnyway: true})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = n.DialContext(ctx, "tcp", addr)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		late, err := l.Accept()
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, time.Since(start))
		require.Equal(t, io.EOF, readErr(t, late))
		late.Close()
		require.Empty(t, n.Unclosed())
		require.Len(t, n.Dials(addr), 1)
		require.Equal(t, conntest.Count{MaxDialing: 1, MaxHeld: 1}, n.Count(addr))
	})
}

func TestLateAcceptKeepsWhatWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		l, err := n.Listen(addr)
		require.NoError(t, err)
		defer l.Close()
		n.Fault(addr, conntest.Fault{AcceptDelay: time.Minute})
		start := time.Now()
		client, err := n.DialContext(t.Context(), "tcp", addr)
		require.NoError(t, err)
		defer client.Close()
		require.Zero(t, time.Since(start))
		write(t, client, "early")
		server, err := l.Accept()
		require.NoError(t, err)
		defer server.Close()
		require.Equal(t, time.Minute, time.Since(start))
		read(t, server, "early")
	})
}

func TestOnConnArmsFaultsBeforeTheFirstByte(t *testing.T) {
	var n conntest.Network
	l, err := n.Listen(addr)
	require.NoError(t, err)
	defer l.Close()
	n.Fault(addr, conntest.Fault{OnConn: func(p *conntest.Pipe) { p.Cut(conntest.ToServer, 3) }})
	client, err := n.DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	defer client.Close()
	write(t, client, "hello")
	server, err := l.Accept()
	require.NoError(t, err)
	defer server.Close()
	read(t, server, "hel")
	require.Equal(t, io.EOF, readErr(t, server))
}
