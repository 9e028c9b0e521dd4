package conn

import (
	"encoding/binary"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAFrameIsMaskedBehindTheShortestHeader(t *testing.T) {
	key := []byte{1, 2, 3, 0xff}
	for _, size := range []int{0, 1, 7, 31, 32, 33, 64, 71, 125, 126, 0xffff, 0x10000} {
		payload := make([]byte, size)
		for i := range payload {
			payload[i] = byte(i * 7)
		}
		b := appendFrame([]byte("before"), fin|text, key, payload)
		require.Equal(t, "before", string(b[:6]), size)
		h, ok := parseHeader(b[6:])
		require.True(t, ok, size)
		require.EqualValues(t, size, h.length)
		require.EqualValues(t, fin|text, h.first, size)
		require.True(t, h.masked && h.short, size)
		require.Len(t, b, 6+h.whole())
		require.Equal(t, key, b[6+int(h.size):][:keySize], size)
		for i, c := range b[len(b)-size:] {
			require.Equal(t, payload[i], c^key[i%keySize], "%d of %d", i, size)
		}
	}
}

func TestAHeaderIsKnownAtItsLastByte(t *testing.T) {
	for _, size := range []int{0, 125, 126, 0xffff, 0x10000} {
		b := appendFrame(nil, fin|text, make([]byte, keySize), make([]byte, size))
		head := len(b) - size - keySize
		_, ok := parseHeader(b[:head-1])
		require.False(t, ok, size)
		h, ok := parseHeader(b[:head])
		require.True(t, ok, size)
		require.EqualValues(t, size, h.length)
	}
}

// RFC 6455, section 5.2: the shortest form, and the first bit of the longest is 0.
func TestALengthInALongerFormIsKnown(t *testing.T) {
	for _, b := range []string{
		"\x82\x7e\x00\x00", "\x82\x7e\x00\x7d", "\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x00",
		"\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff",
	} {
		h, ok := parseHeader([]byte(b))
		require.True(t, ok)
		require.False(t, h.short, "%x", b)
	}
}

// RFC 6455, section 5.3.
func TestEachFrameHasAKeyOfItsOwn(t *testing.T) {
	l := plain(t, nil)
	body := &recorder{}
	l.wire.stream.body = writeOnly{Writer: body}
	const frames = batch + 1 + 4
	_, err := l.WriteBatch(make64(TextMessage("the same")))
	require.NoError(t, err)
	require.NoError(t, l.Write(TextMessage("the same")))
	require.NoError(t, l.Write(BinaryMessage(make([]byte, 4*fragment))))
	const controls = 3
	for range controls {
		require.NoError(t, l.wire.stream.out.control(opPong, []byte("the same")))
	}
	l.wire.stream.out.settle(time.Minute)
	keys := map[uint32]bool{0: true}
	for stream := []byte(strings.Join(body.writes, "")); len(stream) > 0; {
		h, _ := parseHeader(stream)
		keys[binary.BigEndian.Uint32(stream[h.size:])] = true
		stream = stream[h.whole():]
	}
	require.Len(t, keys, 1+frames+controls)
}

func make64(m Message) (ms []Message) {
	for range batch {
		ms = append(ms, m)
	}
	return ms
}

// RFC 6455, section 5.5.1. The peer has begun the closing handshake, and its close frame is
// answered, but the answer is still on its way when we write.
func TestNoMessageFollowsACloseFrame(t *testing.T) {
	for name, m := range map[string]Message{"small": TextMessage("too late"), "in fragments": BinaryMessage(make([]byte, 2*fragment))} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := plain(t, nil)
				l.client().fill(0)
				read := l.reading()
				l.send(frame(fin|close8, "\x03\xe8"))
				synctest.Wait()
				wait := background(func() error { return l.Write(m) })
				synctest.Wait()
				l.client().fill(1 << 30)
				require.ErrorIs(t, wait(), ErrNotWritten)
				require.ErrorAs(t, read(), new(*CloseError))
				h, size := sentFrame(l.raw.in.data)
				require.EqualValues(t, fin|close8, h)
				require.Len(t, l.raw.in.data, size)
			})
		})
	}
}

// Promise 2: 256 frames, with payloads of 3 KiB together, and the last of the others.
func TestBacklogIsBoundedToTheByte(t *testing.T) {
	for _, last := range []int{71, 72, 73} {
		var o outgoing
		var b backlog
		for range 2 { // the second time after the frames were taken for a write
			for range 24 {
				require.True(t, b.admit(make([]byte, 125)))
			}
			require.Equal(t, 24*125+last <= 3<<10, b.admit(make([]byte, last)))
			if last == 73 {
				require.False(t, b.admit(make([]byte, 5)), "behind a frame that waits longer")
				o.appendLate(opPong, &b)
				require.Len(t, o.buf, 2+keySize+5)
				require.Equal(t, backlog{count: 1, size: 5, late: b.late}, b)
			}
			o = outgoing{}
			o.appendLate(opPong, &b)
			require.Empty(t, o.buf)
		}
	}
	var b backlog
	for range 256 {
		require.True(t, b.admit(nil))
	}
	require.False(t, b.admit(nil))
}
