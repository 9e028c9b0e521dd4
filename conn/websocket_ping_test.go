package conn

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// The peer answers while it reads, and we get the answer while we read.
func TestPingIsAnsweredWhileBothRead(t *testing.T) {
	l := plain(t, nil)
	read := l.reading()
	peer := background(func() error { _, _, err := l.peer.Read(context.Background()); return err })
	for range 3 {
		require.NoError(t, l.Ping(t.Context()))
	}
	require.NoError(t, l.CloseNow())
	require.ErrorIs(t, read(), net.ErrClosed)
	require.Error(t, peer())
}

// Promise 5.
func TestPingWithoutAnswerCostsNotTheConnection(t *testing.T) {
	cause := errors.New("no pong")
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		read := l.reading()
		for range 3 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), second, cause)
			takes(t, second, func() { require.ErrorIs(t, l.Ping(ctx), cause) })
			cancel()
		}
		sleep(t, 100*second)
		l.send(frame(fin|text, ""))
		require.NoError(t, read())
	})
}

// Promise 5: even when the context ends while the ping is being written.
func TestPingEndedWhileItIsWrittenCostsNotTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(0)
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		wait := background(func() error { return l.Ping(ctx) })
		sleep(t, 2*second)
		l.client().fill(100)
		require.ErrorIs(t, wait(), context.DeadlineExceeded)
		require.NoError(t, l.Write(Message{Text, nil}))
		require.NoError(t, l.wire.ended())
	})
}

func TestPingWithAContextThatIsDoneSendsNothing(t *testing.T) {
	l := plain(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, l.Ping(ctx), context.Canceled)
	require.NoError(t, l.Write(TextMessage("only this")))
	first, size := sentFrame(l.raw.in.data)
	require.EqualValues(t, fin|text, first)
	require.Len(t, l.raw.in.data, size)
}

// A context may end at any instant of the call.
func TestPingCanBeCancelledAtAnyMoment(t *testing.T) {
	l := plain(t, nil)
	for range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		wait := background(func() error { return l.Ping(ctx) })
		cancel()
		require.ErrorIs(t, wait(), context.Canceled)
	}
	require.NoError(t, l.Write(Message{Text, nil}))
}

// WriteTimeout is the only limit on a full window.
func TestStuckPingIsCutAtTheWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: 30 * second}})
		l.client().fill(0)
		read := l.reading()
		takes(t, 30*second, func() {
			err := l.Ping(t.Context())
			require.EqualError(t, err, "ping: a message was not written within 30s")
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.EqualError(t, read(), "read: a message was not written within 30s")
		})
	})
}

func TestPingAfterTheEndSaysWhy(t *testing.T) {
	l := plain(t, nil)
	require.NoError(t, l.CloseNow())
	require.ErrorIs(t, l.Ping(t.Context()), net.ErrClosed)
}

func TestPingEndsWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		wait := background(func() error { return l.Ping(context.Background()) })
		synctest.Wait()
		require.NoError(t, l.CloseNow())
		require.ErrorIs(t, wait(), net.ErrClosed)
	})
}
