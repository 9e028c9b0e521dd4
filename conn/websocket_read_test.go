package conn

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

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

func TestReadBufferWithoutAWireReadsIntoTheBuffer(t *testing.T) {
	l := wireless(t, nil)
	b := buffers{give: make([]byte, 0, 64)}
	l.send(frame(fin|text, "hello"))
	m, err := l.ReadBuffer(b.buffer)
	require.NoError(t, err)
	require.Equal(t, "hello", string(m.Data))
	require.Equal(t, []int{0}, b.sizes)
	require.Same(t, &b.give[:1][0], &m.Data[0])
}
