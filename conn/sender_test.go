package conn

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// recorder is a body that notes each Write.
type recorder struct{ writes []string }

func (r *recorder) Write(p []byte) (int, error) {
	r.writes = append(r.writes, string(p))
	return len(p), nil
}

func TestABatchOfSmallMessagesIsOneWrite(t *testing.T) {
	l := plain(t, nil)
	body := &recorder{}
	l.wire.stream.body = writeOnly{Writer: body}
	n, err := l.WriteBatch(make64(BinaryMessage(make([]byte, 128))))
	require.NoError(t, err)
	require.Equal(t, batch, n)
	require.Len(t, body.writes, 1)
	require.Len(t, body.writes[0], batch*(8+128))
}

// One Write for each fragment and what waits with it, also behind many control frames.
func TestLargeMessageIsOneWritePerFragment(t *testing.T) {
	l := plain(t, nil)
	body := &recorder{}
	l.wire.stream.body = writeOnly{Writer: body}
	out := &l.wire.stream.out
	out.mu.Lock()
	o := out.enter() // as a flush does that has not begun
	o.control = true
	for range 2 * maxWaiting {
		o.append(fin|pong, make([]byte, keySize), make([]byte, maxControl))
	}
	out.mu.Unlock()
	require.NoError(t, l.Write(BinaryMessage(make([]byte, 3*fragment))))
	require.Len(t, body.writes, 3)
	out.flushControl()
	require.Nil(t, out.out)
}

// shortWriter takes one byte less than it gets, and does not say why.
type shortWriter struct{ recorder }

func (w *shortWriter) Write(p []byte) (int, error) {
	_, _ = w.recorder.Write(p[:len(p)-1])
	return len(p) - 1, nil
}

func TestShortWriteEndsWriting(t *testing.T) {
	l := plain(t, nil)
	body := &shortWriter{}
	l.wire.stream.body = writeOnly{Writer: body}
	require.ErrorIs(t, l.Write(TextMessage("one")), io.ErrShortWrite)
	require.ErrorIs(t, l.Write(TextMessage("two")), ErrNotWritten)
	require.Len(t, body.writes, 1)
}

// A control frame waits for no more than the kernel is given together.
func TestMessagesOfABatchThatGoTogetherAreNoLargerThanAFragment(t *testing.T) {
	const half = fragment/2 - 8 // with its header
	for _, c := range []struct{ first, second, writes int }{
		{half, half - 1, 1},
		{half, half, 1},
		{half, half + 1, 2},
		{1, fragment, 2},
		{fragment, 0, 2},
	} {
		l := plain(t, nil)
		body := &recorder{}
		l.wire.stream.body = writeOnly{Writer: body}
		n, err := l.WriteBatch([]Message{BinaryMessage(make([]byte, c.first)), BinaryMessage(make([]byte, c.second))})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Len(t, body.writes, c.writes, "%d and %d bytes", c.first, c.second)
	}
}

func TestABatchArrivesInOrder(t *testing.T) {
	l := plain(t, nil)
	var ms []Message
	for i := range 200 {
		ms = append(ms, TextMessage(strings.Repeat(string(rune('a'+i%26)), i*i)))
	}
	wait := background(func() error { _, err := l.WriteBatch(ms); return err })
	l.peer.SetReadLimit(-1)
	for _, want := range ms {
		kind, data, err := l.peer.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, websocket.MessageText, kind)
		require.True(t, bytes.Equal(want.Data, data))
	}
	require.NoError(t, wait())
}

func TestABadMessageEndsABatchWithoutHarm(t *testing.T) {
	l := plain(t, nil)
	n, err := l.WriteBatch([]Message{TextMessage("a"), TextMessage("b"), {Type: 7}, TextMessage("c")})
	require.Equal(t, 2, n)
	require.ErrorIs(t, err, ErrBadMessage)
	require.ErrorIs(t, err, ErrNotWritten)
	require.NoError(t, l.Write(TextMessage("d")))
	for _, want := range []string{"a", "b", "d"} {
		_, data, err := l.peer.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, string(data))
	}
	n, err = l.WriteBatch(nil)
	require.NoError(t, err)
	require.Zero(t, n)
}

// Wherever the kernel stops taking bytes, the number of whole messages is exact, and
// so is what became of the next.
func TestABatchThatFailsSaysExactlyHowFarItCame(t *testing.T) {
	ms := []Message{TextMessage("1"), TextMessage("22"), TextMessage(""), TextMessage("4444")}
	ends := []int{7, 15, 21, 31}
	for took := range 31 {
		l := plain(t, nil)
		l.wire.stream.body = writeOnly{Writer: &narrow{room: took}}
		n, err := l.WriteBatch(ms)
		whole, begin := 0, 0
		for ends[whole] <= took {
			begin = ends[whole]
			whole++
		}
		require.Equal(t, whole, n, took)
		require.ErrorIs(t, err, syscall.EPIPE)
		require.Equal(t, took == begin, errors.Is(err, ErrNotWritten), took)
	}
}

// Of a message in fragments too.
func TestALargeMessageThatFailsWasBegun(t *testing.T) {
	for _, took := range []int{0, 1, fragment, fragment + 8, 3 * fragment} { // a header has 8 bytes
		l := plain(t, nil)
		l.wire.stream.body = writeOnly{Writer: &narrow{room: took}}
		n, err := l.WriteBatch([]Message{BinaryMessage(make([]byte, 4*fragment)), TextMessage("never")})
		require.Zero(t, n)
		require.ErrorIs(t, err, syscall.EPIPE)
		require.Equal(t, took == 0, errors.Is(err, ErrNotWritten), took)
		require.ErrorIs(t, l.Write(TextMessage("after it")), ErrNotWritten)
	}
}

func TestAPingPassesBetweenTwoFragments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		read := l.reading()
		l.client().fill(0)
		write := l.writing(3 * fragment)
		synctest.Wait() // the first fragment is stuck
		l.send(frame(fin|ping, "now"))
		synctest.Wait()
		l.client().fill(1 << 30)
		require.NoError(t, write())
		require.Equal(t, []byte{bin, fin | pong, 0, fin}, sentFrames(l.raw.in.data))
		require.NoError(t, l.CloseNow())
		require.Error(t, read())
	})
}

// A large message does not travel whole because it stands in a batch, behind a small one.
func TestALargeMessageOfABatchTravelsInFragments(t *testing.T) {
	l := plain(t, nil)
	_, err := l.WriteBatch([]Message{TextMessage("a"), BinaryMessage(make([]byte, 2*fragment+1)), TextMessage("b")})
	require.NoError(t, err)
	require.Equal(t, []byte{fin | text, bin, 0, fin, fin | text}, sentFrames(l.raw.in.data))
}

// sentFrames returns the first byte of each frame of a client in stream.
func sentFrames(stream []byte) (firsts []byte) {
	for len(stream) > 0 {
		first, size := sentFrame(stream)
		firsts = append(firsts, first)
		stream = stream[size:]
	}
	return firsts
}

// sentFrame returns the first byte and the size of the frame of a client with which
// stream begins.
func sentFrame(stream []byte) (first byte, size int) {
	switch n := int(stream[1] & 0x7f); n {
	case 126:
		return stream[0], 4 + 4 + int(stream[2])<<8 + int(stream[3])
	case 127:
		return stream[0], 10 + 4 + int(stream[6])<<24 + int(stream[7])<<16 + int(stream[8])<<8 + int(stream[9])
	default:
		return stream[0], 2 + 4 + n
	}
}

// Promise 3: a peer that reads nothing is cut after the limit, whatever it sends.
func TestAPeerThatReadsNothingIsCutAtTheWriteTimeout(t *testing.T) {
	for name, pings := range map[string]bool{"silent": false, "pings": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: 30 * second}})
				read := l.reading()
				l.client().fill(100)
				peer := background(func() (err error) {
					for pings && l.wire.ended() == nil {
						l.send(frame(fin|ping, "are you there?"))
						sleep(t, 700*second/1000)
					}
					return nil
				})
				takes(t, 30*second, func() {
					require.EqualError(t, l.writing(1<<20)(), "write: a part of a message was not written within 30s")
				})
				require.EqualError(t, read(), "read: a part of a message was not written within 30s")
				require.NoError(t, peer())
			})
		})
	}
}

// The answers are given when there is room for them.
func TestPingsAreAnsweredAfterAFullWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: 100 * second}})
		read := l.reading()
		l.client().fill(0)
		for _, p := range []string{"one", "two", "three"} {
			l.send(frame(fin|ping, p))
			sleep(t, 20*second)
		}
		l.client().fill(1 << 30)
		synctest.Wait()
		pongs := 0
		for stream := l.raw.in.data; len(stream) > 0; pongs++ {
			h, size := sentFrame(stream)
			require.EqualValues(t, fin|pong, h)
			stream = stream[size:]
		}
		require.Equal(t, 3, pongs)
		l.send(frame(fin|text, ""))
		require.NoError(t, read())
	})
}

// Fragments that had to wait are signs of life, because the peer has made room.
func TestOnlyFurtherFragmentsThatWaitedAreSignsOfLife(t *testing.T) {
	const whole = fragment + 8 // with the header
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: 100 * second}})
		sleep(t, 5*second)
		require.NoError(t, l.Write(BinaryMessage(make([]byte, fragment))))
		require.NoError(t, l.Write(BinaryMessage(make([]byte, 3*fragment))))
		require.Equal(t, 5*second, l.Silence(), "there was room for all of it")
		l.client().fill(whole)
		write := l.writing(3 * fragment)
		sleep(t, 5*second)
		require.Equal(t, 10*second, l.Silence(), "its first part only filled the window")
		l.client().fill(whole)
		synctest.Wait()
		require.Zero(t, l.Silence())
		l.client().fill(1 << 30)
		require.NoError(t, write())
		sleep(t, 5*second)
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		require.Error(t, l.Ping(ctx))
		require.Equal(t, 6*second, l.Silence(), "a ping is no fragment")
	})
}

// What only filled the window may lie in the peer's kernel, whose process is stuck.
func TestFirstPartThatWaitedIsNoSignOfLife(t *testing.T) {
	for name, send := range map[string]func(l *link) error{
		"a message": func(l *link) error { return l.Write(TextMessage("hello")) },
		"a ping": func(l *link) error {
			ctx, cancel := context.WithTimeout(context.Background(), 6*second)
			defer cancel()
			if err := l.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return nil
		},
		"a message behind another": func(l *link) error {
			out := &l.wire.stream.out
			out.mu.Lock()
			out.enter() // as a writer does that waits for its turn
			out.mu.Unlock()
			l.client().fill(1 << 10)
			if err := l.Write(TextMessage("hello")); err != nil {
				return err
			}
			l.client().fill(0)
			return l.Write(TextMessage("hello"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: 100 * second}})
				l.client().fill(0)
				wait := background(func() error { return send(l) })
				sleep(t, 5*second)
				l.client().fill(1 << 30)
				sleep(t, second)
				require.NoError(t, wait())
				require.Equal(t, 6*second, l.Silence())
			})
		})
	}
}

func TestSenderKeepsFirstFailure(t *testing.T) {
	l := plain(t, nil)
	out := &l.wire.stream.out
	out.stop(io.ErrClosedPipe)
	out.stop(io.EOF)
	require.Equal(t, io.ErrClosedPipe, out.failure())
}

func TestACloseFrameIsAnsweredBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(0)
		read := l.reading()
		l.send(frame(fin|close8, "\x03\xe8"))
		sleep(t, 4*second)
		l.client().fill(100)
		takes(t, 0, func() { require.ErrorAs(t, read(), new(*CloseError)) })
		require.NoError(t, l.CloseNow())
		h, size := sentFrame(l.raw.in.data)
		require.EqualValues(t, fin|close8, h)
		require.Len(t, l.raw.in.data, size)
	})
}

func TestAnAnswerThatNobodyTakesIsGivenUpAfterFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(0)
		l.send(frame(fin|close8, "\x03\xe8"))
		takes(t, closeLimit, func() {
			_, err := l.Read(nil)
			require.ErrorAs(t, err, new(*CloseError))
		})
	})
}

// A message under way is not cut in two by a Close.
func TestCloseWaitsForTheMessageUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(fragment)
		write := l.writing(3 * fragment)
		synctest.Wait()
		wait := l.closing(t.Context())
		sleep(t, 4*second)
		l.client().fill(1 << 30)
		require.NoError(t, write())
		l.peer.SetReadLimit(-1)
		_, data, err := l.peer.Read(t.Context())
		require.NoError(t, err)
		require.Len(t, data, 3*fragment)
		_, _, err = l.peer.Read(t.Context())
		require.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(err))
		require.NoError(t, wait())
	})
}

func TestCloseBehindAStuckMessageEndsAfterFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(0)
		write := l.writing(1)
		synctest.Wait()
		takes(t, closeLimit, func() {
			require.EqualError(t, l.Close(context.Background(), 1000, ""), "close: a message under way was stuck for 5s")
		})
		require.ErrorIs(t, write(), ErrNotWritten)
	})
}

// A peer that pings and does not read: of many pings only the last is answered (RFC 6455, section 5.5.3), and
// Read goes on.
func TestAFloodOfPingsFillsNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: -1}})
		l.client().fill(0)
		read := l.reading()
		one := frame(fin|ping, strings.Repeat("x", 125))
		l.send(strings.Repeat(one, 5000), frame(fin|ping, "last"), tail)
		require.NoError(t, read())
		l.wire.stream.out.mu.Lock()
		waiting := len(l.wire.stream.out.out.buf)
		l.wire.stream.out.mu.Unlock()
		const kept = 3072 / 125 // as promise 2 says
		require.LessOrEqual(t, waiting, kept*(6+125))
		l.client().fill(1 << 30)
		synctest.Wait()
		firsts := sentFrames(l.raw.in.data)
		require.GreaterOrEqual(t, len(firsts), kept)
		require.LessOrEqual(t, len(firsts), 2*kept+1)
		last := l.raw.in.data[len(l.raw.in.data)-(2+4+4):]
		require.Equal(t, "last", unmasked(slices.Clone(last)))
	})
}

// Promise 2. The answer to the last ping answers all.
func TestPingsToPeerThatDoesNotReadTakeBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: -1}})
		l.client().fill(0)
		read := l.reading()
		ctx, cancel := context.WithCancel(t.Context())
		early := background(func() error { return l.Ping(context.Background()) })
		synctest.Wait()
		var ended []func() error
		for range 10_000 {
			ended = append(ended, background(func() error { return l.Ping(ctx) }))
		}
		synctest.Wait()
		last := background(func() error { return l.Ping(context.Background()) })
		synctest.Wait()
		cancel()
		for _, wait := range ended {
			require.ErrorIs(t, wait(), context.Canceled)
		}
		l.wire.stream.out.mu.Lock()
		waiting := len(l.wire.stream.out.out.buf)
		l.wire.stream.out.mu.Unlock()
		require.LessOrEqual(t, waiting, maxWaiting*(2+keySize+len("10002")))

		l.client().fill(1 << 30)
		synctest.Wait()
		sent := l.raw.in.data
		require.LessOrEqual(t, len(sentFrames(sent)), 2*maxWaiting+1)
		payload := unmasked(slices.Clone(sent[len(sent)-(2+keySize+len("10002")):]))
		require.Equal(t, "10002", payload)
		key := sent[len(sent)-len("10002")-keySize:][:keySize]
		require.NotEqual(t, make([]byte, keySize), key, "RFC 6455, section 5.3")
		l.send(frame(fin|pong, payload))
		require.NoError(t, early())
		require.NoError(t, last())
		require.NoError(t, l.CloseNow())
		require.Error(t, read())
	})
}

// Of pings that goroutines send at the same time the last one on the wire has the largest number.
func TestConcurrentPingsAreAllAnsweredAfterFullWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: -1}})
			l.client().fill(0)
			read := l.reading()
			var waits []func() error
			for range 2 * maxWaiting {
				waits = append(waits, background(func() error { return l.Ping(context.Background()) }))
			}
			synctest.Wait()
			l.client().fill(1 << 30)
			peer := background(func() error { _, _, err := l.peer.Read(context.Background()); return err })
			for _, wait := range waits {
				require.NoError(t, wait())
			}
			require.NoError(t, l.CloseNow())
			require.Error(t, read())
			require.Error(t, peer())
		}
	})
}

// RFC 6455, section 5.5.1.
func TestPingThatWaitsIsNotSentBehindCloseFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: -1}})
		l.client().fill(0)
		var waits []func() error
		for range 2 * (1 + maxWaiting) {
			waits = append(waits, background(func() error { return l.Ping(context.Background()) }))
			synctest.Wait()
		}
		wait := background(func() error { return l.StartClose(1000, "") })
		synctest.Wait()
		l.client().fill(1 << 30)
		require.NoError(t, wait())
		firsts := sentFrames(l.raw.in.data)
		require.EqualValues(t, fin|close8, firsts[len(firsts)-1])
		require.Len(t, firsts, 1+256+1) // 256, as promise 2 says
		require.NoError(t, l.CloseNow())
		for _, wait := range waits {
			require.Error(t, wait())
		}
	})
}

// A peer that reads more slowly than it pings still makes room. A write succeeds, and the connection stays open.
func TestAPeerThatReadsMoreSlowlyThanItPingsIsNotCut(t *testing.T) {
	for name, c := range map[string]struct {
		limit   time.Duration // WriteTimeout, or 0 for the default
		room    int           // bytes that the peer takes every 10 ms
		payload int           // bytes of a ping, of which five come every 10 ms
	}{
		"short pings":             {room: 30, payload: 8}, // two answers and a part of the next
		"long pings":              {room: 30, payload: 125},
		"long pings, more room":   {room: 60, payload: 125},
		"long pings, short limit": {limit: second, room: 300, payload: 125},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := plain(t, &WebSocketOptions{Limits: Limits{WriteTimeout: c.limit}})
				l.client().fill(0)
				read := l.reading()
				minute := time.Now().Add(60 * second)
				peer := background(func() error {
					for ; time.Now().Before(minute); time.Sleep(second / 100) {
						l.send(strings.Repeat(frame(fin|ping, strings.Repeat("x", c.payload)), 5))
						l.client().fill(c.room)
					}
					return nil
				})
				sleep(t, second)
				start := time.Now()
				require.NoError(t, l.Write(TextMessage("hello")))
				require.Less(t, time.Since(start), 3*second)
				require.NoError(t, peer())
				l.send(tail)
				require.NoError(t, read())
			})
		})
	}
}

// held is a Writer that waits before it writes.
type held struct {
	io.Writer
	begins chan struct{}
}

func (h held) Write(p []byte) (int, error) {
	<-h.begins
	return h.Writer.Write(p)
}

func TestPongDoesNotWaitUntilMessageIsCompressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, nil, websocket.CompressionContextTakeover)
		c := l.wire.stream.inflate
		begins := make(chan struct{})
		c.writer, _ = flate.NewWriter(held{&c.out, begins}, flate.BestSpeed) // the error is for an invalid level
		read := l.reading()
		write := background(func() error { return l.Write(TextMessage(prose(2*fragment, 1))) })
		synctest.Wait()
		l.send(frame(fin|ping, ""))
		synctest.Wait()
		require.Equal(t, []byte{fin | pong}, sentFrames(l.raw.in.data))
		close(begins)
		require.NoError(t, write())
		require.EqualValues(t, fin|rsv1|text, sentFrames(l.raw.in.data)[1])
		l.send(tail)
		require.NoError(t, read())
	})
}

// observed is a Writer that calls a function before each Write.
type observed struct {
	io.Writer
	before func()
}

func (o observed) Write(p []byte) (int, error) {
	o.before()
	return o.Writer.Write(p)
}

// Each message of the batch is smaller than a fragment.
func TestPongDoesNotWaitUntilBatchIsCompressed(t *testing.T) {
	l := dial(t, nil, websocket.CompressionContextTakeover)
	c, out := l.wire.stream.inflate, &l.wire.stream.out
	var compressing []bool
	note := func() {
		out.mu.Lock()
		defer out.mu.Unlock()
		compressing = append(compressing, out.out.compressing)
	}
	c.writer, _ = flate.NewWriter(observed{&c.out, note}, flate.BestSpeed) // the error is for an invalid level
	m := TextMessage(prose(fragment/2+1, 1))
	n, err := l.WriteBatch([]Message{m, m, m})
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.False(t, compressing[0])
	require.True(t, compressing[len(compressing)-1])
}

// A pong that came before compression was left to the writer to flush.
func TestPongThatWaitsIsFlushedWhenCompressionBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		out := &l.wire.stream.out
		require.NoError(t, out.begin())
		require.NoError(t, out.control(opPong, nil))
		synctest.Wait()
		require.Empty(t, l.raw.in.data)
		out.setCompressing(true)
		synctest.Wait()
		require.Equal(t, []byte{fin | pong}, sentFrames(l.raw.in.data))
		out.setCompressing(false)
		require.NoError(t, out.control(opPong, nil))
		synctest.Wait()
		require.Len(t, sentFrames(l.raw.in.data), 1)
		out.end()
		synctest.Wait()
		require.Len(t, sentFrames(l.raw.in.data), 2)
	})
}

// What was needed to send is given back.
func TestAnIdleSenderHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		read := l.reading()
		require.NoError(t, l.Write(BinaryMessage(make([]byte, 100_000))))
		l.send(frame(fin|ping, ""))
		synctest.Wait()
		require.Nil(t, l.wire.stream.out.out)
		require.Nil(t, l.wire.stream.ahead)
		require.NoError(t, l.CloseNow())
		require.Error(t, read())
	})
}

// Writers that wait are served in the order in which they came.
func TestTheTurnToWriteIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.client().fill(0)
		var writers []func() error
		for i := range 20 {
			writers = append(writers, background(func() error { return l.Write(TextMessage(string(rune('a' + i)))) }))
			synctest.Wait()
		}
		l.client().fill(1 << 30)
		for i, wait := range writers {
			require.NoError(t, wait())
			_, data, err := l.peer.Read(t.Context())
			require.NoError(t, err)
			require.Equal(t, string(rune('a'+i)), string(data))
		}
	})
}

// A compressed message of more than a fragment travels in fragments too (RFC 7692, section 6.1).
func TestPongPassesBetweenFragmentsOfCompressedMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dial(t, nil, websocket.CompressionContextTakeover)
		l.client().fill(fragment)
		noise := make([]byte, 5*fragment)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		write := background(func() error { return l.Write(BinaryMessage(noise)) })
		l.reading()
		synctest.Wait()
		l.send(frame(fin|ping, "p"))
		synctest.Wait()
		l.client().fill(1 << 30)
		require.NoError(t, write())
		frames := sentFrames(l.raw.in.data)
		require.Contains(t, frames[1:4], byte(fin|pong), "%x", frames)
		l.peer.SetReadLimit(-1)
		_, data, err := l.peer.Read(t.Context())
		require.NoError(t, err)
		require.True(t, bytes.Equal(noise, data))
		require.NoError(t, l.CloseNow())
	})
}
