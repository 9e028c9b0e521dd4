package conn

import (
	"bytes"
	"compress/flate"
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

func TestReadReturnsTextAndBinary(t *testing.T) {
	l := plain(t, nil)
	for _, sent := range []Message{{Text, []byte("héllo")}, {Binary, []byte{0, 255}}, {Text, nil}} {
		require.NoError(t, l.peer.Write(t.Context(), websocket.MessageType(sent.Type), sent.Data))
		got, err := l.Read(nil)
		require.NoError(t, err)
		require.Equal(t, sent.Type, got.Type)
		require.True(t, bytes.Equal(sent.Data, got.Data))
	}
}

func TestReadUsesTheCallersBufferToTheBrim(t *testing.T) {
	l := plain(t, nil)
	buf := make([]byte, 3, 5)
	l.send(frame(fin|text, "12345"))
	m, err := l.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "12345", string(m.Data))
	require.Same(t, &buf[0], &m.Data[0])
}

func TestReadGrowsTheBufferAsDataComes(t *testing.T) {
	for _, size := range []int{0, 1, 511, 512, 513, 4095, 4096, 4097, 65535, 1 << 20} {
		l := plain(t, nil)
		sent := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
		wait := background(func() error { return l.peer.Write(t.Context(), websocket.MessageBinary, sent) })
		m, err := l.Read(nil)
		require.NoError(t, err)
		require.NoError(t, wait())
		require.True(t, bytes.Equal(sent, m.Data), size)
	}
}

// Promise 2.
func TestReadGrowsNoFurtherThanTheLimit(t *testing.T) {
	l := plain(t, &WebSocketOptions{Limits: Limits{ReadLimit: 1000}})
	l.send(frame(fin|bin, strings.Repeat("x", 600)))
	m, err := l.Read(nil)
	require.NoError(t, err)
	require.LessOrEqual(t, cap(m.Data), 1001)
	l.send(frame(bin, strings.Repeat("x", 600)), frame(fin, strings.Repeat("x", 400)))
	m, err = l.Read(nil)
	require.NoError(t, err)
	require.LessOrEqual(t, cap(m.Data), 1001)
}

// An honest looking length buys no memory: 1 GiB is announced, 3 bytes come.
func TestReadTrustsNoLength(t *testing.T) {
	l := plain(t, &WebSocketOptions{Limits: Limits{ReadLimit: 1 << 50}}) // more than a 32-bit system can read
	l.send("\x82\x7f\x00\x00\x00\x00\x40\x00\x00\x00abc")
	l.raw.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := l.Read(nil)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestReadJoinsFragmentsAroundControlFrames(t *testing.T) {
	l := plain(t, nil)
	l.send(frame(text, "a"), frame(0, ""), frame(fin|ping, "p"), frame(0, "b"), frame(fin|pong, ""), frame(fin, "c"))
	m, err := l.Read(nil)
	require.NoError(t, err)
	require.Equal(t, "abc", string(m.Data))
}

// Promise 2.
func TestReadLimitIsExact(t *testing.T) {
	for _, buf := range [][]byte{nil, make([]byte, 9), make([]byte, 10), make([]byte, 100)} {
		l := plain(t, &WebSocketOptions{Limits: Limits{ReadLimit: 10}})
		l.send(frame(fin|text, "0123456789"), frame(text, "0123456789"), frame(fin, "X"))
		m, err := l.Read(buf)
		require.NoError(t, err)
		require.Equal(t, "0123456789", string(m.Data))
		_, err = l.Read(buf)
		var big *TooBigError
		require.ErrorAs(t, err, &big)
		require.EqualValues(t, 10, big.Limit)
		require.EqualError(t, err, "read: message larger than the read limit of 10 bytes")
	}
}

// Promise 2: the limit is after decompression.
func TestDecompressionBombStopsAtTheLimit(t *testing.T) {
	l := dial(t, &WebSocketOptions{Limits: Limits{ReadLimit: 1 << 20}}, websocket.CompressionContextTakeover)
	wait := background(func() error {
		return l.peer.Write(t.Context(), websocket.MessageBinary, make([]byte, 30<<20))
	})
	_, err := l.Read(nil)
	require.ErrorAs(t, err, new(*TooBigError))
	require.NoError(t, l.CloseNow())
	_ = wait()
}

// compressed returns a message as permessage-deflate has it, RFC 7692 7.2.1.
func compressed(s string) string {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestSpeed)
	_, _ = io.WriteString(w, s)
	_ = w.Flush()
	return strings.TrimSuffix(b.String(), "\x00\x00\xff\xff")
}

// Promise 1: coder/websocket returns the half of it, and no error.
func TestCompressedMessageCutByFINIsNoMessage(t *testing.T) {
	whole := frame(fin|rsv1|text, compressed(strings.Repeat("All work and no play. ", 9)+"Fin."))
	for _, mode := range []websocket.CompressionMode{websocket.CompressionContextTakeover, websocket.CompressionNoContextTakeover} {
		for cut := range len(whole) {
			l := dial(t, nil, mode)
			l.send(whole, whole[:cut])
			l.raw.Close()
			_, err := l.Read(nil)
			require.NoError(t, err)
			_, err = l.Read(nil)
			if cut == 0 {
				require.ErrorIs(t, err, io.EOF, cut)
			} else {
				require.ErrorIs(t, err, io.ErrUnexpectedEOF, cut)
			}
		}
	}
}

// Promise 1, without compression: coder/websocket takes an EOF between two
// fragments for the end of the message.
func TestFragmentedMessageCutByFINIsNoMessage(t *testing.T) {
	l := plain(t, nil)
	l.send(frame(text, "only a part"))
	l.raw.Close()
	_, err := l.Read(nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.EqualError(t, err, "read: the peer hung up inside a message: unexpected EOF")
}

func TestFINBetweenMessagesIsEOF(t *testing.T) {
	l := plain(t, nil)
	l.send(frame(fin|text, "last"))
	l.raw.Close()
	_, err := l.Read(nil)
	require.NoError(t, err)
	_, err = l.Read(nil)
	require.ErrorIs(t, err, io.EOF)
	require.EqualError(t, err, "read: the peer hung up without a close frame: EOF")
}

// A lost session is no timeout, even if the kernel calls it one.
func TestLostSessionIsNoTimeout(t *testing.T) {
	l := plain(t, nil)
	l.raw.reset(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ETIMEDOUT})
	_, err := l.Read(nil)
	require.ErrorIs(t, err, syscall.ETIMEDOUT)
	require.EqualError(t, err, "read tcp: connection timed out")
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.False(t, timeout.Timeout())
	require.False(t, timeout.(interface{ Temporary() bool }).Temporary(), "old programs ask that")
}

func TestErrorOfReadStays(t *testing.T) {
	l := plain(t, nil)
	l.send(frame(fin|close8, "\x03\xf4restart\x1b"))
	_, first := l.Read(nil)
	_, second := l.Read(nil)
	require.Equal(t, first, second)
	require.EqualError(t, first, `read: closed by the peer: 1012 "restart\x1b"`) // promise 7: quoted
	var closed *CloseError
	require.ErrorAs(t, first, &closed)
	require.Equal(t, 1012, closed.CloseCode())
	err := l.Write(Message{Text, nil})
	require.ErrorIs(t, err, ErrNotWritten)
	require.ErrorAs(t, err, &closed)
}

// A bit flipped in a header, and worse.
func TestBrokenRulesAreAProtocolError(t *testing.T) {
	for name, c := range map[string]struct {
		frames string
		want   error
	}{
		"rsv bits":              {frame(fin|0x20|text, "x"), errReserved},
		"compressed unasked":    {frame(fin|rsv1|text, "x"), errReserved},
		"unknown opcode":        {frame(fin|0x3, "x"), errOpcode},
		"masked":                {"\x82\x81keysx", errMasked},
		"negative length":       {"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", errHugeLength},
		"long length":           {"\x82\x7e\x00\x01x", errLongLength},
		"continuation":          {frame(fin, "x"), errContinuation},
		"new in old":            {frame(text, "a") + frame(fin|text, "b"), errNewMessage},
		"fragmented ping":       {frame(ping, "x"), errControlFrame},
		"long ping":             {frame(fin|ping, strings.Repeat("x", 126)), errControlFrame},
		"close payload of 1":    {frame(fin|close8, "x"), errCloseCode},
		"close code of nothing": {frame(fin|close8, "\x00\x00"), errCloseCode},
	} {
		l := plain(t, nil)
		l.send(c.frames)
		_, err := l.Read(nil)
		var broken *ProtocolError
		require.ErrorAs(t, err, &broken, name)
		require.Equal(t, c.want, broken.Err, name)
		require.Equal(t, 1002, broken.CloseCode())
	}
}

func TestCorruptCompressionIsAProtocolError(t *testing.T) {
	l := dial(t, nil, websocket.CompressionContextTakeover)
	l.send(frame(fin|rsv1|text, "\xff\xff\xff\xff"))
	_, err := l.Read(nil)
	require.ErrorAs(t, err, new(*ProtocolError))
	require.ErrorAs(t, err, new(flate.CorruptInputError))
}

// Promise 3: pings are answered, but the message never ends.
func TestUnfinishedMessageIsCutAtItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		wait := l.reading()
		sleep(t, defaultMessageTimeout) // no message, no limit
		l.send(frame(text, "begun"), frame(fin|ping, ""), frame(0, ""), "\x00")
		takes(t, defaultMessageTimeout, func() {
			err := wait()
			var stuck *SlowMessageError
			require.ErrorAs(t, err, &stuck)
			require.EqualError(t, err, "read: a part of a message did not arrive within 1m0s")
			require.NotErrorIs(t, err, context.DeadlineExceeded)
		})
	})
}

func TestMessageTimeoutCountsEachMessageAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{MessageTimeout: 10 * second}})
		for range 5 {
			wait := l.reading()
			l.send(frame(text, "a"))
			sleep(t, 9*second)
			l.send(frame(fin, "b"))
			require.NoError(t, wait())
		}
		wait := l.reading()
		sleep(t, 3*second)
		l.send(frame(text, "a"))
		takes(t, 10*second, func() { require.ErrorAs(t, wait(), new(*SlowMessageError)) })
	})
}

func TestNegativeMessageTimeoutIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{MessageTimeout: -1}})
		wait := l.reading()
		l.send(frame(text, "a"))
		sleep(t, 1000*second)
		l.send(frame(fin, "b"))
		require.NoError(t, wait())
	})
}

func TestHalfAHeaderIsTheBeginningOfAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		wait := l.reading()
		l.send("\x81")
		takes(t, defaultMessageTimeout, func() { require.ErrorAs(t, wait(), new(*SlowMessageError)) })
	})
}

// The time of a message does not run while the application is busy.
func TestMessageTimeoutRunsOnlyWhileRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, &WebSocketOptions{Limits: Limits{MessageTimeout: 10 * second}})
		l.send(frame(fin|text, "whole"), frame(text, "half"))
		_, err := l.Read(nil)
		require.NoError(t, err)
		sleep(t, 1000*second)
		wait := l.reading()
		takes(t, 10*second, func() { require.ErrorAs(t, wait(), new(*SlowMessageError)) })
	})
}

// A control frame has the time of a message, and gives none to the message around it.
func TestATrickledPingIsCutAtTheMessageTimeout(t *testing.T) {
	for name, before := range map[string]string{"alone": "", "inside a message": frame(text, "half")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := plain(t, &WebSocketOptions{Limits: Limits{MessageTimeout: 10 * second}})
				wait := l.reading()
				sleep(t, 100*second)
				l.send(before)
				sleep(t, 4*second)
				l.send("\x89\x05abc")
				limit := 10 * second
				if before != "" {
					limit -= 4 * second
				}
				takes(t, limit, func() {
					err := wait()
					require.EqualError(t, err, "read: a part of a message did not arrive within 10s")
					require.NotErrorIs(t, err, context.DeadlineExceeded)
				})
			})
		})
	}
}

func TestAWebSocketNeedsItsWire(t *testing.T) {
	l, ws := coders(t, websocket.CompressionDisabled, untapped)
	tapped, shaken := new(Wire), new(Wire)
	tapped.Tap(l.raw)
	shaken.stream = newStream(shaken, l.raw)
	for _, w := range []*Wire{nil, new(Wire), tapped, shaken} {
		_, err := NewWebSocket(ws, w, nil)
		require.EqualError(t, err, "conn: the WebSocket was not dialed through Tap and Transport of the Wire")
	}
	used := plain(t, nil)
	_, err := NewWebSocket(used.ws, used.wire, &WebSocketOptions{Limits: Limits{ReadLimit: -1}})
	require.ErrorContains(t, err, "conn: option ReadLimit is -1")
}

func TestSubprotocolIsTheOneAgreedOn(t *testing.T) {
	require.Equal(t, "v1", plain(t, nil).Subprotocol())
}
