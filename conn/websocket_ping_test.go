package conn

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
			require.Nil(t, l.wire.pings.newest, "a ping that has ended is forgotten")
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
			require.EqualError(t, err, "ping: a part of a message was not written within 30s")
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.EqualError(t, read(), "read: a part of a message was not written within 30s")
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

// Promise 4, also without a reader.
func TestCutEndsAPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		wait := background(func() error { return l.Ping(context.Background()) })
		synctest.Wait()
		l.wire.Cut()
		require.ErrorIs(t, wait(), errEnded)
		require.ErrorIs(t, l.Ping(context.Background()), errEnded)
	})
}

// A late pong does not answer a later ping.
func TestLatePongAnswersNoLaterPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.reading()
		payload := func() string {
			synctest.Wait() // until the frame is sent
			h, size := sentFrame(l.raw.in.data)
			require.EqualValues(t, fin|ping, h)
			sent := slices.Clone(l.raw.in.data[:size])
			l.raw.in.set(func() { l.raw.in.data = l.raw.in.data[size:] })
			head, _ := parseHeader(sent)
			mask(sent[head.head():], sent[head.size:])
			return string(sent[head.head():])
		}
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		require.ErrorIs(t, l.Ping(ctx), context.DeadlineExceeded)
		first := payload()
		wait := background(func() error { return l.Ping(t.Context()) })
		sleep(t, second)
		secondPayload := payload()
		l.send(frame(fin|pong, first))
		sleep(t, second)
		answered := make(chan error, 1)
		go func() { answered <- wait() }()
		synctest.Wait()
		require.Empty(t, answered)
		l.send(frame(fin|pong, secondPayload))
		require.NoError(t, <-answered)
		require.NoError(t, l.CloseNow())
	})
}

// RFC 6455, section 5.5.3: a peer may answer only the last of several pings.
func TestPongAnswersPingsBeforeOneThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		read := l.reading()
		wait := background(func() error { return l.Ping(context.Background()) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		require.ErrorIs(t, l.Ping(ctx), context.DeadlineExceeded)
		l.send(frame(fin|pong, "2"))
		takes(t, 0, func() { require.NoError(t, wait()) })
		require.NoError(t, l.CloseNow())
		require.Error(t, read())
	})
}

func TestPongWithForeignPayloadAnswersNoPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		read := l.reading()
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		wait := background(func() error { return l.Ping(ctx) })
		synctest.Wait()
		for _, payload := range []string{"", "0", "2", "-1", "1.0", "x", "18446744073709551616"} {
			l.send(frame(fin|pong, payload))
		}
		require.ErrorIs(t, wait(), context.DeadlineExceeded)
		require.NoError(t, l.CloseNow())
		require.Error(t, read())
	})
}

// ponger is a body that answers each ping, and allocates nothing.
type ponger struct {
	pongs  chan [32]byte // the frame, behind its size
	closed chan struct{}
	close  sync.Once
}

func (p *ponger) Write(frame []byte) (int, error) {
	var pong [32]byte
	size := copy(pong[3:], frame[2+keySize:])
	pong[0], pong[1], pong[2] = byte(2+size), bitFIN|opPong, byte(size)
	mask(pong[3:3+size], frame[2:2+keySize])
	p.pongs <- pong
	return len(frame), nil
}

func (p *ponger) Read(buf []byte) (int, error) {
	select {
	case pong := <-p.pongs:
		return copy(buf, pong[1:1+pong[0]]), nil
	case <-p.closed:
		return 0, net.ErrClosed
	}
}

func (p *ponger) Close() error {
	p.close.Do(func() { close(p.closed) })
	return nil
}

// The wait and its channel, and the goroutine that sends it. The timer for WriteTimeout has 5 more, because an idle
// connection keeps none.
func TestPingAllocatesLittle(t *testing.T) {
	if RaceEnabled() {
		return
	}
	for limit, want := range map[time.Duration]float64{-1: 3, time.Minute: 8} {
		l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: limit}})
		l.wire.stream.body = &ponger{pongs: make(chan [32]byte, 1), closed: make(chan struct{})}
		read := l.reading()
		ctx := t.Context()
		require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
			if err := l.Ping(ctx); err != nil {
				t.Error(err)
			}
		}), want, limit)
		require.NoError(t, l.CloseNow())
		require.Error(t, read())
	}
}

// The peer has sent its close frame, and Read waits until the answer is sent: every other call
// fails with that cause.
func TestPingBehindTheGoodbyeSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(fragment)
		write := l.writing(3 * fragment)
		synctest.Wait()
		read := l.reading()
		l.send(frame(fin|close8, "\x0f\xa1bye"))
		synctest.Wait()
		takes(t, 0, func() {
			require.Equal(t, &CloseError{Code: 4001, Reason: "bye"}, innermost(l.Ping(t.Context())))
		})
		require.ErrorAs(t, write(), new(*CloseError))
		require.ErrorAs(t, read(), new(*CloseError))
	})
}
