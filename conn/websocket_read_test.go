package conn

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// buffers notes the sizes that it was asked for, and returns a buffer of another size.
type buffers struct {
	sizes []int
	give  []byte
}

func (b *buffers) buffer(size int) []byte {
	b.sizes = append(b.sizes, size)
	return b.give
}

func TestReadBufferAsksWhenAMessageHasBegun(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	for name, c := range map[string]struct {
		sends []string
		want  string
		size  int
		mode  websocket.CompressionMode
	}{
		"small":      {sends: []string{frame(fin|text, "small")}, want: "small", size: 5},
		"empty":      {sends: []string{frame(fin|text, "")}},
		"medium":     {sends: []string{frame(fin|bin, long[:1000])}, want: long[:1000], size: 1000},
		"large":      {sends: []string{"\x82\x7f\x00\x00\x00\x00\x00\x01\x11\x70", long}, want: long, size: 70_000},
		"fragments":  {sends: []string{frame(text, "frag"), frame(fin|ping, "p"), frame(fin, "ments")}, want: "fragments"},
		"compressed": {sends: []string{hello}, want: "Hello", mode: websocket.CompressionNoContextTakeover},
	} {
		for room := range map[int]bool{0: true, 3: true, 2048: true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := dial(t, nil, c.mode)
					b := buffers{give: make([]byte, 0, room)}
					type result struct {
						m   Message
						err error
					}
					read := background(func() result { m, err := l.ReadBuffer(b.buffer); return result{m, err} })
					l.send(frame(fin|ping, "nobody needs a buffer for it"))
					sleep(t, second)
					require.Empty(t, b.sizes)
					l.send(c.sends...)
					r := read()
					require.NoError(t, r.err)
					require.Equal(t, c.want, string(r.m.Data))
					require.Equal(t, []int{c.size}, b.sizes)
					if room >= max(len(c.want), 1) && len(c.want) > 0 {
						require.Same(t, &b.give[:1][0], &r.m.Data[0], "the buffer was used")
					}
				})
			})
		}
	}
}

func TestReadBufferAnnouncesNoMoreThanTheLimit(t *testing.T) {
	l := plain(t, &WebSocketOptions{Limits: Limits{ReadLimit: 100}})
	var b buffers
	l.send("\x82\x7f\x00\x00\x01\x00\x00\x00\x00\x00")
	_, err := l.ReadBuffer(b.buffer)
	var big *TooBigError
	require.ErrorAs(t, err, &big)
	require.LessOrEqual(t, slices.Max(append(b.sizes, 0)), 100)
}

func TestCheckUTF8HoldsForEveryWayToRead(t *testing.T) {
	o := &WebSocketOptions{CheckUTF8: true}
	for name, read := range map[string]func(c *WebSocket) (Message, error){
		"without a buffer":    func(c *WebSocket) (Message, error) { return c.Read(nil) },
		"into a short buffer": func(c *WebSocket) (Message, error) { return c.Read(make([]byte, 2)) },
		"into a large buffer": func(c *WebSocket) (Message, error) { return c.Read(make([]byte, 4096)) },
		"into a buffer that is asked for": func(c *WebSocket) (Message, error) {
			return c.ReadBuffer(func(size int) []byte { return make([]byte, size) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := plain(t, o)
				l.send(frame(fin|text, "\xe1\xbd\xb9"), frame(text, "a\xe1"), frame(fin, "\xbd"), tail)
				m, err := read(l.WebSocket)
				require.NoError(t, err)
				require.Equal(t, TextMessage("\xe1\xbd\xb9"), m)
				m, err = read(l.WebSocket)
				require.Zero(t, m, "no byte of it is delivered")
				require.EqualError(t, err, "read: protocol error: text that is not UTF-8")
				var broken *ProtocolError
				require.ErrorAs(t, err, &broken)
				require.Equal(t, 1007, broken.CloseCode())
				require.Equal(t, 1007, closeCode(l.raw.in.data))
				_, again := read(l.WebSocket)
				require.Equal(t, err, again)
			})
		})
	}
}

// A message without a buffer gets a slice of its size, in however many pieces it comes.
func TestAMessageWithoutABufferGetsItsSize(t *testing.T) {
	for _, size := range []int{1, 100, 126, 4096, 5000, 30_000, 65_535} {
		for _, first := range []int{1, 3, 50, 4000, size + 4} {
			l := plain(t, nil)
			f := frame(fin|bin, strings.Repeat("x", size))
			l.send(frame(fin|text, "one before") + f[:min(first, len(f))])
			_, err := l.Read(nil)
			require.NoError(t, err)
			l.send(f[min(first, len(f)):])
			m, err := l.Read(nil)
			require.NoError(t, err)
			require.Equal(t, f[len(f)-size:], string(m.Data))
			require.Equal(t, size, cap(m.Data))
		}
	}
}

// A Write may fail before Read returns why the connection ends.
func TestAFailedWriteDoesNotHideWhyReadEnds(t *testing.T) {
	failed := errors.New("a write has failed")
	for sends, want := range map[string]string{
		frame(fin|3, ""): "read: protocol error: an opcode that is not known",
		frame(fin|ping, strings.Repeat("x", 126)): "read: protocol error: " +
			"a control frame that is too long or in fragments",
		frame(fin|close8, "\x03\xe8bye"): `read: closed by the peer: 1000 "bye"`,
		frame(fin|ping, ""):              "read: a ping could not be answered: a write has failed", // the answer
	} {
		l := plain(t, nil)
		l.wire.stream.out.stop(failed)
		l.send(sends)
		_, err := l.Read(nil)
		require.EqualError(t, err, want)
	}
}

// An answer may have to wait until the peer takes it.
func TestBeforeBlockIsCalledBeforeAnAnswer(t *testing.T) {
	for name, answered := range map[string]string{
		"ping": frame(fin|ping, "p"), "close": frame(fin|close8, "\x03\xe8"), "broken rule": frame(fin|text|rsv1, "x"),
		"too big": frame(fin|bin, strings.Repeat("x", 200)), "no UTF-8": frame(fin|text, "\xff"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := plain(t, &WebSocketOptions{Limits: Limits{ReadLimit: 150}, CheckUTF8: true})
				got := func() (n int) {
					l.raw.in.set(func() { n = len(l.raw.in.data) })
					return n
				}
				var waits []int // how many bytes the peer had got before each
				l.BeforeBlock(func() { waits = append(waits, got()) })
				l.send(frame(fin|text, "one before") + answered)
				_, err := l.Read(nil)
				require.NoError(t, err)
				require.Len(t, waits, 1)
				before := got()
				l.reading()
				synctest.Wait()
				require.Greater(t, got(), before, "there was an answer")
				require.Greater(t, len(waits), 1)
				require.Equal(t, before, waits[1])
			})
		})
	}
}

// A ping that cannot be answered does not end Read: what the peer has sent may still come.
func TestAPingDoesNotHideWhatIsBehindIt(t *testing.T) {
	l := plain(t, nil)
	l.send(frame(fin|ping, "x"), frame(fin|text, "last"), frame(fin|close8, "\x0f\xa1go away"))
	l.raw.Close()
	require.Error(t, l.Write(TextMessage("hello")))
	m, err := l.Read(nil)
	require.NoError(t, err)
	require.Equal(t, "last", string(m.Data))
	_, err = l.Read(nil)
	var closed *CloseError
	require.ErrorAs(t, err, &closed)
	require.Equal(t, 4001, closed.Code)
}

// But then Read does not wait for long.
func TestAPingWithoutAnAnswerEndsASilentRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		failed := errors.New("a write has failed")
		l.wire.stream.out.stop(failed)
		l.send(frame(fin|ping, ""))
		for range 3 {
			time.Sleep(lastWords - 1)
			l.send(tail)
			_, err := l.Read(nil)
			require.NoError(t, err)
		}
		takes(t, lastWords, func() {
			_, err := l.Read(nil)
			require.ErrorIs(t, err, failed)
		})
	})
}
