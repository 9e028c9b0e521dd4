package conn

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// FuzzRead has a server that sends anything after the handshake. Whatever it is,
// Read ends with a typed error, and holds little more than the limit.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"", "\x81", frame(fin|text, "hello"), frame(text, "a") + frame(fin|ping, "p") + frame(fin, "b"),
		frame(fin|rsv1|text, "\xf2\x48\xcd\xc9\xc9\x07\x00"), frame(fin|close8, "\x03\xe8bye"),
		"\x82\x7f\x00\x00\x01\x00\x00\x00\x00\x00abc", "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", "\x81\x81mask1",
		frame(fin|bin, strings.Repeat("x", 3000)), strings.Repeat(frame(0, ""), 100), strings.Repeat(frame(fin|ping, ""), 100),
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	const limit = 2000
	f.Fuzz(func(t *testing.T, data []byte, compressed bool) {
		mode := websocket.CompressionDisabled
		if compressed {
			mode = websocket.CompressionContextTakeover
		}
		l := dial(t, &WebSocketOptions{Limits: Limits{ReadLimit: limit}}, mode)
		l.send(string(data))
		l.raw.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var err error
		for m := (Message{}); err == nil; {
			m, err = l.Read(m.Data)
			if len(m.Data) > limit || cap(m.Data) > 2*limit {
				t.Fatalf("a message of %d bytes in %d", len(m.Data), cap(m.Data))
			}
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20+200*uint64(len(data)) {
			t.Fatalf("%d bytes allocated for %d", used, len(data))
		}
		if !typed(err) {
			t.Fatalf("%T: %v", errors.Unwrap(err), err)
		}
	})
}

// typed tells whether Read's documentation names err. Once the peer is gone the
// answer to its pings may fail as well.
func typed(err error) bool {
	var closed *CloseError
	var big *TooBigError
	var broken *ProtocolError
	return errors.As(err, &closed) || errors.As(err, &big) || errors.As(err, &broken) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe)
}
