package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// writing writes one message of n bytes in the background.
func (l *link) writing(n int) (wait func() error) {
	return background(func() error { return l.Write(Message{Binary, make([]byte, n)}) })
}

// client returns the client's end of the raw connection.
func (l *link) client() *end { return &end{in: l.raw.out, out: l.raw.in} }

// broken is a stream that can no longer be written.
type broken struct{ io.ReadWriteCloser }

func (*broken) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestWriteSendsTextAndBinary(t *testing.T) {
	for _, mode := range []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionContextTakeover} {
		l := dial(t, nil, mode)
		for _, sent := range []Message{{Text, []byte("héllo")}, {Binary, make([]byte, 5000)}, {Text, []byte{}}} {
			require.NoError(t, l.Write(sent))
			kind, data, err := l.peer.Read(t.Context())
			require.NoError(t, err)
			require.Equal(t, sent, Message{Type(kind), data})
		}
	}
}

func TestWriteOfUnknownTypeHarmsNothing(t *testing.T) {
	l := plain(t, nil)
	for _, kind := range []Type{0, 3} {
		err := l.Write(Message{Type: kind})
		require.ErrorIs(t, err, ErrNotWritten)
	}
	require.EqualError(t, l.Write(Message{}), "write: not written: bad message: type 0 is neither Text nor Binary")
	require.NoError(t, l.Write(Message{Type: Text}))
}

// Promise 8. Its fate is unknown: some of it is with the kernel.
func TestStuckWriteIsCutAtItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		read := l.reading()
		require.NoError(t, l.Write(Message{Text, nil}))
		sleep(t, 4*second) // the timer is running
		l.client().fill(10)
		takes(t, defaultWriteTimeout, func() {
			err := l.writing(100)()
			require.EqualError(t, err, "write: a message was not written within 10s")
			require.NotErrorIs(t, err, ErrNotWritten)
			require.NotErrorIs(t, err, net.ErrClosed)
			require.ErrorAs(t, err, new(*StuckError))
		})
		err := read()
		require.EqualError(t, err, "read: a message was not written within 10s")
		require.NotErrorIs(t, err, net.ErrClosed)
	})
}

// Promise 8: many who wait for a slow connection are not taken for stuck.
func TestWriteTimeoutIsOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{WriteTimeout: 10 * second})
		l.client().fill(0)
		var writers sync.WaitGroup
		for range 5 {
			writers.Go(func() { require.NoError(t, l.Write(Message{Binary, make([]byte, 94)})) }) // 100 on the wire
		}
		for range 5 {
			sleep(t, 9*second)
			l.client().fill(100)
		}
		takes(t, 0, writers.Wait)
	})
}

func TestNegativeWriteTimeoutIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{WriteTimeout: -1})
		l.client().fill(0)
		wait := l.writing(1)
		sleep(t, 1000*second)
		l.client().fill(100)
		require.NoError(t, wait())
	})
}

// Reliability fact 7 and promise 7 rest on it: no context is ours to end.
func TestQuietConnectionOutlivesEveryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		read := l.reading()
		for range 10 {
			require.NoError(t, l.Write(Message{Text, nil}))
			sleep(t, 1000*second)
		}
		l.send(frame(fin|text, ""))
		require.NoError(t, read())
	})
}

func TestWriteAfterTheEndIsNotWritten(t *testing.T) {
	l := plain(t, nil)
	require.NoError(t, l.CloseNow())
	err := l.Write(Message{Text, nil})
	require.ErrorIs(t, err, ErrNotWritten)
	require.ErrorIs(t, err, net.ErrClosed)
	require.EqualError(t, err, "write: not written: use of closed network connection")
}

// The writer behind a stuck one has handed nothing over.
func TestWriteThatNeverHadItsTurnIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(0)
		first := l.writing(1)
		synctest.Wait()
		second := l.writing(1)
		require.NotErrorIs(t, first(), ErrNotWritten)
		err := second()
		require.ErrorIs(t, err, ErrNotWritten)
		require.ErrorAs(t, err, new(*StuckError))
	})
}

func TestFailedWriteIsOfUnknownFate(t *testing.T) {
	l := plain(t, nil)
	l.wire.stream.body = &broken{l.wire.stream.body}
	err := l.Write(Message{Text, nil})
	require.NotErrorIs(t, err, ErrNotWritten)
	require.ErrorIs(t, err, syscall.EPIPE)
	require.EqualError(t, err, "write: broken pipe")
	err = l.Write(Message{Text, nil}) // coder/websocket's buffer stays broken
	require.ErrorIs(t, err, ErrNotWritten)
	require.ErrorIs(t, err, syscall.EPIPE)
}

// A pong that cannot be written is an error of Read, and no deadline.
func TestPongBehindAStuckWriteIsNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(0)
		write := l.writing(1)
		read := l.reading()
		l.send(frame(fin|ping, ""))
		takes(t, 5*second, func() {
			err := read()
			require.EqualError(t, err, "read: a control frame was stuck for 5s")
			require.False(t, errors.Is(err, context.DeadlineExceeded))
		})
		require.NoError(t, l.CloseNow())
		require.Error(t, write())
	})
}

func TestManyMayWriteAtOnce(t *testing.T) {
	l := plain(t, nil)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 100 {
				require.NoError(t, l.Write(Message{Text, make([]byte, 10)}))
			}
		})
	}
	for range 800 {
		_, data, err := l.peer.Read(t.Context())
		require.NoError(t, err)
		require.Len(t, data, 10)
	}
	writers.Wait()
}

func TestReadAndWriteAllocateNothing(t *testing.T) {
	l := plain(t, nil)
	buf := make([]byte, 200)
	l.send(strings.Repeat(frame(fin|text, strings.Repeat("x", 100)), 1000))
	require.Zero(t, testing.AllocsPerRun(500, func() {
		if _, err := l.Read(buf); err != nil {
			t.Error(err)
		}
	}))
	l.wire.stream.body = &swallow{l.wire.stream.body}
	require.Zero(t, testing.AllocsPerRun(500, func() {
		if err := l.Write(Message{Text, buf}); err != nil {
			t.Error(err)
		}
	}))
}

// swallow is a stream that takes all that is written.
type swallow struct{ io.ReadWriteCloser }

func (*swallow) Write(p []byte) (int, error) { return len(p), nil }
