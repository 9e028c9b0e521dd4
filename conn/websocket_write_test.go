package conn

import (
	"errors"
	"io"
	"net"
	"slices"
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

// writeOnly is a body that is only written.
type writeOnly struct {
	io.Writer
	io.ReadCloser // nil
}

func (writeOnly) Close() error { return nil }

// narrow is a body that takes a number of bytes and then breaks.
type narrow struct{ room int }

func (n *narrow) Write(p []byte) (int, error) {
	took := min(n.room, len(p))
	if n.room -= took; took < len(p) {
		return took, syscall.EPIPE
	}
	return took, nil
}

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
	for _, mode := range []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionContextTakeover} {
		l := dial(t, nil, mode)
		for _, size := range []int{0, 1000, 2 * fragment} {
			for _, kind := range []Type{0, 3} {
				require.ErrorIs(t, l.Write(Message{kind, make([]byte, size)}), ErrNotWritten)
			}
			require.EqualError(t, l.Write(Message{Data: make([]byte, size)}), "write: not written: bad message: type 0 is neither Text nor Binary")
			require.NoError(t, l.Write(TextMessage("good")))
			_, data, err := l.peer.Read(t.Context())
			require.NoError(t, err)
			require.Equal(t, "good", string(data))
		}
	}
}

// Promise 3. Its fate is unknown, because the kernel has some of it.
func TestStuckWriteIsCutAtItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		read := l.reading()
		require.NoError(t, l.Write(Message{Text, nil}))
		sleep(t, 4*second) // the timer is running
		l.client().fill(10)
		takes(t, defaultWriteTimeout, func() {
			err := l.writing(100)()
			require.EqualError(t, err, "write: a part of a message was not written within 10s")
			require.NotErrorIs(t, err, ErrNotWritten)
			require.NotErrorIs(t, err, net.ErrClosed)
			require.ErrorAs(t, err, new(*SlowMessageError))
		})
		err := read()
		require.EqualError(t, err, "read: a part of a message was not written within 10s")
		require.NotErrorIs(t, err, net.ErrClosed)
	})
}

// Promise 3: the time that a writer waits for its turn does not count.
func TestWriteTimeoutIsOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: 10 * second}})
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

// Promise 3: messages that go to the kernel after others of their batch have a time of their own.
func TestWriteTimeoutIsOfAPartOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: 10 * second}})
		l.client().fill(0)
		ms := slices.Repeat([]Message{BinaryMessage(make([]byte, 94))}, 3*batch) // 100 on the wire
		wait := background(func() error { _, err := l.WriteBatch(ms); return err })
		for range 3 {
			sleep(t, 9*second)
			l.client().fill(100 * batch)
		}
		takes(t, 0, func() { require.NoError(t, wait()) })
	})
}

func TestStuckPartOfABatchIsCutAtItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: 10 * second}})
		l.client().fill(100 * batch)
		ms := slices.Repeat([]Message{BinaryMessage(make([]byte, 94))}, 2*batch) // 100 on the wire
		takes(t, 10*second, func() {
			n, err := l.WriteBatch(ms)
			require.Equal(t, batch, n)
			require.ErrorAs(t, err, new(*SlowMessageError))
		})
	})
}

func TestNegativeWriteTimeoutIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: -1}})
		l.client().fill(0)
		wait := l.writing(1)
		sleep(t, 1000*second)
		l.client().fill(100)
		require.NoError(t, wait())
	})
}

// Promise 3: silence has no limit.
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
		l.client().fill(1)
		first := l.writing(1)
		synctest.Wait()
		second := l.writing(1)
		require.NotErrorIs(t, first(), ErrNotWritten)
		err := second()
		require.ErrorIs(t, err, ErrNotWritten)
		require.ErrorAs(t, err, new(*SlowMessageError))
	})
}

// Promise 6: the fate is known as exactly as the kernel reports it.
func TestFailedWriteIsOfUnknownFateOnlyIfAByteWasTaken(t *testing.T) {
	for took := range 8 { // a frame of 7 bytes
		l := plain(t, nil)
		l.wire.stream.body = writeOnly{Writer: &narrow{room: took}}
		err := l.Write(Message{Text, []byte("x")})
		if took == 7 {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, syscall.EPIPE)
		require.Equal(t, took == 0, errors.Is(err, ErrNotWritten), took)
		err = l.Write(Message{Text, nil})
		require.EqualError(t, err, "write: not written: broken pipe")
		require.ErrorIs(t, err, ErrNotWritten)
	}
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
	if RaceEnabled() {
		return
	}
	l.wire.stream.body = writeOnly{Writer: &swallow{}}
	require.Zero(t, testing.AllocsPerRun(500, func() {
		if err := l.Write(Message{Text, buf}); err != nil {
			t.Error(err)
		}
	}))
	many := slices.Repeat([]Message{{Text, buf}}, 100)
	require.Zero(t, testing.AllocsPerRun(50, func() {
		if _, err := l.WriteBatch(many); err != nil {
			t.Error(err)
		}
	}))
}

// swallow is a body that takes all that is written.
type swallow struct{}

func (*swallow) Write(p []byte) (int, error) { return len(p), nil }
