package conn

import (
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// prose returns n bytes that compress well, from seed.
func prose(n int, seed uint64) string {
	random := rand.New(rand.NewPCG(seed, 3))
	words := strings.Fields("the price of a thing is what a buyer gives for it and seller takes 17 42.5 99")
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[random.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

// inPieces returns said compressed with a flush behind each piece of that size, and
// which lengths of it end where a piece does.
func inPieces(said string, level, size int) (payload string, ends map[int]string) {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, level)
	ends = map[int]string{}
	for at := 0; at < len(said); at += size {
		_, _ = io.WriteString(w, said[at:min(at+size, len(said))])
		_ = w.Flush()
		ends[b.Len()-4] = said[:min(at+size, len(said))]
	}
	return b.String()[:b.Len()-4], ends
}

// However package flate has written it, and wherever it is cut under FIN: no byte is
// invented, and a message is whole only where a block ends. This holds because of how
// package flate reads; should that change, it is seen here.
func TestNoByteOfACompressedMessageIsInvented(t *testing.T) {
	said := prose(700, 1) + string([]byte{0, 0, 255, 255, 0, 0, 255, 255})
	for level := flate.HuffmanOnly; level <= flate.BestCompression; level++ {
		payload, ends := inPieces(said, level, 300)
		whole := 0
		for cut := 1; cut <= len(payload); cut++ {
			l := dial(t, nil, websocket.CompressionNoContextTakeover)
			l.send(frame(fin|rsv1|text, payload[:cut]))
			m, err := l.Read(nil)
			if err != nil {
				require.Equal(t, "protocol", kindOf(err), "%d of level %d: %v", cut, level, err)
				require.NotContains(t, ends, cut)
				continue
			}
			whole++
			require.True(t, strings.HasPrefix(said, string(m.Data)), "%d of level %d: %q", cut, level, m.Data)
			if want, ok := ends[cut]; ok {
				require.Equal(t, want, string(m.Data))
			}
		}
		require.LessOrEqual(t, whole, 2*len(ends)+1, "level %d", level)
	}
}

func TestMessagesReferToThoseBeforeThem(t *testing.T) {
	l := dial(t, nil, websocket.CompressionContextTakeover)
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	require.NoError(t, err)
	total := 0
	for i := range 200 {
		said := prose(i*i/4, uint64(i%5))
		b.Reset()
		_, _ = io.WriteString(w, said)
		require.NoError(t, w.Flush())
		payload := strings.TrimSuffix(b.String(), "\x00\x00\xff\xff")
		total += len(payload)
		half := len(payload) / 2
		l.send(frame(rsv1|text, payload[:half]), frame(fin|ping, ""), frame(fin, payload[half:]))
		l.send(frame(fin|text, "plain"))
		m, err := l.Read(nil)
		require.NoError(t, err)
		require.Equal(t, said, string(m.Data), i)
		_, err = l.Read(nil)
		require.NoError(t, err)
	}
	require.Equal(t, windowSize, cap(l.wire.stream.inflate.window))
}

// Promise 2: the memory of an idle connection.
func TestWithoutTakeoverNoWindowIsHeld(t *testing.T) {
	l := dial(t, nil, websocket.CompressionNoContextTakeover)
	l.send(hello)
	_, err := l.Read(nil)
	require.NoError(t, err)
	require.Nil(t, l.wire.stream.inflate.window)
}

// Promise 2: the buffer for a compressed message goes back to its pool, or to the garbage collector.
func TestSentCompressedMessageLeavesNoBuffer(t *testing.T) {
	for _, mode := range []websocket.CompressionMode{
		websocket.CompressionNoContextTakeover, websocket.CompressionContextTakeover,
	} {
		l := dial(t, nil, mode)
		require.NoError(t, l.Write(TextMessage(prose(1<<20, 1))))
		c := l.wire.stream.inflate
		require.Nil(t, c.out.buf, "mode %v", mode)
		require.Equal(t, mode == websocket.CompressionContextTakeover, c.writer != nil)
	}
}

func TestSmallMessageIsNotCompressed(t *testing.T) {
	for mode, least := range map[websocket.CompressionMode]int{
		websocket.CompressionContextTakeover: 128, websocket.CompressionNoContextTakeover: 512,
	} {
		l := dial(t, nil, mode)
		require.NoError(t, l.Write(TextMessage(prose(least-1, 1))))
		require.NoError(t, l.Write(TextMessage(prose(least, 1))))
		require.Equal(t, []byte{fin | text, fin | rsv1 | text}, sentFrames(l.raw.in.data), "mode %v", mode)
	}
}

// Promise 2: the limit counts what comes out, to the byte.
func TestTheLimitOfACompressedMessageIsExact(t *testing.T) {
	for _, buf := range [][]byte{nil, make([]byte, 999), make([]byte, 1000), make([]byte, 5000)} {
		l := dial(t, &WebSocketOptions{Limits: Limits{ReadLimit: 1000}}, websocket.CompressionNoContextTakeover)
		l.send(frame(fin|rsv1|text, compressed(prose(1000, 1))), frame(fin|rsv1|text, compressed(prose(1001, 1))))
		m, err := l.Read(buf)
		require.NoError(t, err)
		require.Equal(t, prose(1000, 1), string(m.Data))
		require.LessOrEqual(t, cap(m.Data), max(1001, cap(buf)))
		_, err = l.Read(buf)
		require.EqualError(t, err, "read: message larger than the read limit of 1000 bytes")
	}
}

// A sender that flushes often writes empty blocks. They count for nothing, unless no sender needs so many.
func TestAMessageMayHaveManyEmptyBlocks(t *testing.T) {
	l := dial(t, &WebSocketOptions{Limits: Limits{ReadLimit: 1000}}, websocket.CompressionNoContextTakeover)
	blocks := strings.Repeat("\x00\x00\x00\xff\xff", 3000)
	l.send(frame(rsv1|text, blocks), frame(0, blocks), frame(0, ""), frame(0, blocks), frame(fin, compressed(prose(1000, 1))))
	m, err := l.Read(nil)
	require.NoError(t, err)
	require.Equal(t, prose(1000, 1), string(m.Data))
}

// No sender needs more for a message of the limit than twice the limit and 64 KiB.
func TestCompressedSizeIsBounded(t *testing.T) {
	const limit = 1000
	const bound = 2*limit + 64<<10
	empty := strings.Repeat("\x00\x00\x00\xff\xff", (bound-1)/5) // stored blocks, and then the header of the last one
	for n, want := range map[int]string{
		bound: "", bound + 1: "read: message larger than the read limit of 1000 bytes",
	} {
		rest := n - len(empty) - 1 // bytes of a stored block
		blocks := empty[5:] + string([]byte{0, byte(rest), 0, byte(^rest), 0xff}) + strings.Repeat("x", rest) + "\x00"
		require.Len(t, blocks, n)
		for _, last := range []int{n, 1} { // bytes in the last of one or two frames
			l := dial(t, &WebSocketOptions{Limits: Limits{ReadLimit: limit}}, websocket.CompressionNoContextTakeover)
			if last == n {
				l.send(large(fin|rsv1|text, blocks))
			} else {
				l.send(large(rsv1|text, blocks[:n-last]), frame(fin, blocks[n-last:]))
			}
			m, err := l.Read(nil)
			if want != "" {
				require.EqualError(t, err, want)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, strings.Repeat("x", rest), string(m.Data))
		}
	}
}

// A block may say that it is the last of its stream, whatever its size. Those behind it begin a new one (RFC
// 7692, section 7.2.3.4).
func TestBlocksBehindAFinalBlockAreRead(t *testing.T) {
	for _, size := range []int{0, 1, 2, 300} {
		first := strings.Repeat("a", size)
		final := string([]byte{1, byte(size), byte(size >> 8), byte(^size), byte(^size >> 8)}) + first
		l := dial(t, nil, websocket.CompressionNoContextTakeover)
		l.send(frame(fin|rsv1|text, final+"\x00\x01\x00\xfe\xffb"+"\x00"))
		m, err := l.Read(nil)
		require.NoError(t, err)
		require.Equal(t, first+"b", string(m.Data))
	}
}

// The rest of the message is in a frame that does not come.
func TestFinalBlockOfTruncatedMessageIsNoEnd(t *testing.T) {
	l := dial(t, nil, websocket.CompressionNoContextTakeover)
	l.send(frame(rsv1|text, "\x01\x01\x00\xfe\xffa"))
	require.NoError(t, l.raw.Close())
	_, err := l.Read(nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// The reader of package flate is kept in a pool.
func TestReadingCompressedMessagesAllocatesNothing(t *testing.T) {
	if RaceEnabled() {
		return
	}
	l := dial(t, nil, websocket.CompressionContextTakeover)
	l.send(strings.Repeat(hello, 1000))
	buf := make([]byte, 100)
	require.Zero(t, testing.AllocsPerRun(500, func() {
		if _, err := l.Read(buf); err != nil {
			t.Error(err)
		}
	}))
}

func extensionsOf(lines ...string) http.Header { return http.Header{extensionsHeader: lines} }

func TestCompressionIsAsAgreed(t *testing.T) {
	const all = windowSize
	plain := []string{"permessage-deflate"}
	for _, c := range []struct {
		offer, answer []string
		want          *compression
	}{
		{plain, nil, nil},
		{plain, []string{","}, nil},
		{plain, []string{"", " \t,"}, nil},
		{nil, nil, nil},
		{plain, plain, &compression{takeover: true, keeps: true, reach: all}},
		{plain, []string{"", " permessage-deflate\t,"}, &compression{takeover: true, keeps: true, reach: all}},
		{append(plain, "x"), plain, &compression{takeover: true, keeps: true, reach: all}},
		{
			plain, []string{"permessage-deflate; client_no_context_takeover"},
			&compression{takeover: true, reach: all},
		},
		{
			plain, []string{"permessage-deflate ;server_no_context_takeover"},
			&compression{keeps: true, reach: all},
		},
		{[]string{"permessage-deflate; client_no_context_takeover"}, plain, &compression{takeover: true, reach: all}},
		{
			plain, []string{"permessage-deflate; server_max_window_bits=10; client_no_context_takeover"},
			&compression{takeover: true, reach: 1 << 10},
		},
	} {
		got, err := agreed(extensionsOf(c.offer...), extensionsOf(c.answer...))
		require.NoError(t, err, "%q", c.answer)
		require.Equal(t, c.want, got, "%q", c.answer)
	}
}

// RFC 7692, section 7.1.2.1.
func TestWindowOfServerIsAsAgreed(t *testing.T) {
	offer := extensionsOf("permessage-deflate")
	for bits, want := range map[string]int{
		"8": 512, `"9"`: 512, "10": 1024, `"11"`: 2048, "14": 16384, `"15"`: windowSize,
	} {
		c, err := agreed(offer, extensionsOf("permessage-deflate; server_max_window_bits="+bits))
		require.NoError(t, err, bits)
		require.Equal(t, want, c.reach, bits)
	}
	for _, bits := range []string{"16", "7", "", "x", "08", "+9", "-9", `"9`, `9"`, `""`, `"`, "9.0"} {
		_, err := agreed(offer, extensionsOf("permessage-deflate; server_max_window_bits="+bits))
		require.ErrorContains(t, err, "a parameter of permessage-deflate with an invalid value: ", bits)
		require.ErrorAs(t, err, new(*ProtocolError))
	}
}

// RFC 6455, section 4.1, and RFC 7692, section 7.1.
func TestAnswerThatWasNotOfferedIsRefused(t *testing.T) {
	const offer = "permessage-deflate"
	for _, c := range []struct{ offer, answer, want string }{
		{"", offer, `an extension that was not offered: "permessage-deflate"`},
		{"x", offer, `an extension that was not offered: "permessage-deflate"`},
		{offer, ";", `an extension that was not offered: ";"`},
		{offer, "x", `an extension that was not offered: "x"`},
		{offer, "\u00a0", `an extension that was not offered: "\u00a0"`},
		{offer, "Permessage-Deflate", `an extension that was not offered: "Permessage-Deflate"`},
		{offer, offer + ", x", `an extension that was not offered: "permessage-deflate, x"`},
		{offer, "x; permessage-deflate", `an extension that was not offered: "x; permessage-deflate"`},
		{offer, offer + "," + offer, `an extension that was not offered: "permessage-deflate,permessage-deflate"`},
		{offer, offer + ";", `a parameter of permessage-deflate that was not offered: ""`},
		{offer, offer + "; x=1", `a parameter of permessage-deflate that was not offered: "x=1"`},
		{
			offer, offer + "; client_max_window_bits=15",
			`a parameter of permessage-deflate that was not offered: "client_max_window_bits=15"`,
		},
		{
			offer, offer + "; server_no_context_takeover; server_no_context_takeover",
			`a parameter of permessage-deflate that comes twice: "server_no_context_takeover"`,
		},
		{
			offer, offer + "; server_max_window_bits=9; client_no_context_takeover; server_max_window_bits=10",
			`a parameter of permessage-deflate that comes twice: "server_max_window_bits=10"`,
		},
		{
			offer, offer + "; client_no_context_takeover=1",
			`a parameter of permessage-deflate with an invalid value: "client_no_context_takeover=1"`,
		},
		{
			offer, offer + "; server_no_context_takeover=",
			`a parameter of permessage-deflate with an invalid value: "server_no_context_takeover="`,
		},
		{
			offer, offer + "; server_max_window_bits",
			`a parameter of permessage-deflate with an invalid value: "server_max_window_bits"`,
		},
	} {
		_, err := agreed(extensionsOf(c.offer), extensionsOf(c.answer))
		require.EqualError(t, err, "protocol error: "+c.want)
	}
	_, err := agreed(extensionsOf(offer), extensionsOf(strings.Repeat("x", 1000)))
	require.Less(t, len(err.Error()), 200)
}

// closeCounter is the body of a response that notes whether it is closed.
type closeCounter struct {
	end
	closed int
}

func (c *closeCounter) Close() error { c.closed++; return nil }

func TestTransportClosesBodyOfWrongAnswer(t *testing.T) {
	body := new(closeCounter)
	rt := new(Wire).Transport(handshake(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 101, Header: extensionsOf("x"), Body: body}, nil
	}))
	r, err := http.NewRequest(http.MethodGet, "http://test", nil)
	require.NoError(t, err)
	resp, err := rt.RoundTrip(r)
	require.ErrorAs(t, err, new(*ProtocolError))
	require.Nil(t, resp)
	require.Equal(t, 1, body.closed)
}

// coder/websocket would check it by rules of its own.
func TestTransportHidesExtension(t *testing.T) {
	wire := new(Wire)
	rt := wire.Transport(handshake(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 101, Header: extensionsOf("permessage-deflate"), Body: new(end)}, nil
	}))
	r, err := http.NewRequest(http.MethodGet, "http://test", nil)
	require.NoError(t, err)
	r.Header = extensionsOf("permessage-deflate")
	resp, err := rt.RoundTrip(r)
	require.NoError(t, err)
	require.Empty(t, resp.Header)
	require.NotNil(t, wire.stream.inflate)
}

// A connection keeps no more received data than the server may refer to.
func TestWindowIsAsLargeAsAgreed(t *testing.T) {
	const reach = 1024
	for _, sizes := range [][]int{
		{300, 300, 300, 300, 1000},
		{reach},
		{reach - 1, 1, 1},
		{reach + 1},
		{5 * reach},
		{300, 5 * reach, 300},
		{0, 100, reach, 0},
	} {
		c := &compression{takeover: true, reach: reach}
		all := ""
		for i, size := range sizes {
			part := strings.Repeat(string(rune('a'+i)), size)
			c.remember([]byte(part))
			all += part
			require.Equal(t, all[max(0, len(all)-reach):], string(c.window), "%v", sizes)
			require.LessOrEqual(t, cap(c.window), reach, "%v", sizes)
		}
	}
}

func TestWindowOfReceivedMessageIsAsLargeAsAgreed(t *testing.T) {
	l := dial(t, nil, websocket.CompressionContextTakeover)
	l.wire.stream.inflate.reach = 1024
	said := prose(20_000, 1)
	for range 3 {
		l.send(frame(fin|rsv1|text, compressed(said)))
		m, err := l.Read(nil)
		require.NoError(t, err)
		require.Equal(t, said, string(m.Data))
		require.Equal(t, said[len(said)-1024:], string(l.wire.stream.inflate.window))
		require.Equal(t, 1024, cap(l.wire.stream.inflate.window))
	}
}

// RFC 7692, section 7.1.1.2.
func TestSentMessageRefersToThoseBeforeOnlyWithTakeover(t *testing.T) {
	for mode, refers := range map[websocket.CompressionMode]bool{
		websocket.CompressionContextTakeover: true, websocket.CompressionNoContextTakeover: false,
	} {
		l := dial(t, nil, mode)
		said := make([]byte, 600) // random, so that only repetition makes it smaller
		random := rand.New(rand.NewPCG(1, 2))
		for i := range said {
			said[i] = byte(random.Uint32())
		}
		var sizes []int
		for range 3 {
			before := len(l.raw.in.data)
			require.NoError(t, l.Write(BinaryMessage(said)))
			sizes = append(sizes, len(l.raw.in.data)-before)
		}
		if !refers {
			require.Equal(t, []int{sizes[0], sizes[0], sizes[0]}, sizes)
			continue
		}
		require.Less(t, sizes[1], sizes[0]/5)
		require.Less(t, sizes[2], sizes[0]/5)
	}
}

// Promise 9: the compressor and its buffer are kept, or in a pool.
func TestWritingCompressedMessagesAllocatesNothing(t *testing.T) {
	if RaceEnabled() {
		return
	}
	for _, mode := range []websocket.CompressionMode{
		websocket.CompressionNoContextTakeover, websocket.CompressionContextTakeover,
	} {
		l := dial(t, nil, mode)
		l.wire.stream.body = writeOnly{Writer: &swallow{}}
		m := TextMessage(prose(4000, 1))
		require.NoError(t, l.Write(m))
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if err := l.Write(m); err != nil {
				t.Error(err)
			}
		}), "mode %v", mode)
	}
}
