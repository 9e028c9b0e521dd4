//go:build unix

package conn

import (
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// cpu is what this process has used so far.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// compare runs ours and coder's in turns, b.N times each, and reports the CPU of
// an operation and how ours stands to coder's.
func compare(b *testing.B, ours, coders func() error) {
	const round = 20_000
	var used [2]time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += round {
		for i, op := range []func() error{ours, coders} {
			if i == 1 {
				b.StopTimer() // time and allocations are ours
			}
			runtime.GC() // so that each pays for its own garbage
			start := cpu()
			for range min(round, b.N-done) {
				if err := op(); err != nil {
					b.Fatal(err)
				}
			}
			used[i] += cpu() - start
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(used[0])/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(used[1])/float64(b.N), "coder-cpu-ns/op")
	b.ReportMetric(float64(used[0])/float64(used[1]), "ratio")
}

func benchmarkPush(b *testing.B, path string) {
	ours, coders := dialPusher(b, startPusher(b)+path)
	buf, buf2 := make([]byte, 8<<10), make([]byte, 8<<10)
	compare(b, func() error {
		_, err := ours.Read(buf)
		return err
	}, func() error {
		_, r, err := coders.Reader(context.Background())
		for n := 0; err == nil; {
			var more int
			more, err = r.Read(buf2[n:])
			n += more
		}
		if err == io.EOF {
			return nil
		}
		return err
	})
}

func BenchmarkReadPush128(b *testing.B)  { benchmarkPush(b, "/128") }
func BenchmarkReadPush4096(b *testing.B) { benchmarkPush(b, "/4096") }

// benchmarkRead compares Read into a buffer that is used again to what most programs
// do: coder's Read.
func benchmarkRead(b *testing.B, path string) {
	ours, coders := dialPusher(b, startPusher(b)+path)
	buf := make([]byte, 8<<10)
	compare(b, func() error {
		_, err := ours.Read(buf)
		return err
	}, func() error {
		_, _, err := coders.Read(context.Background())
		return err
	})
}

func BenchmarkRead128(b *testing.B)  { benchmarkRead(b, "/128") }
func BenchmarkRead4096(b *testing.B) { benchmarkRead(b, "/4096") }

// benchmarkFlood compares what a control frame costs: an operation is a message and the
// control frames before it.
func benchmarkFlood(b *testing.B, path string) {
	ours, coders := dialPusher(b, startPusher(b)+path)
	compare(b, func() error {
		_, err := ours.Read(nil)
		return err
	}, func() error {
		_, _, err := coders.Read(context.Background())
		return err
	})
}

func BenchmarkFloodOfEmptyPongs(b *testing.B) { benchmarkFlood(b, "/0?control=10") }
func BenchmarkFloodOfLongPongs(b *testing.B)  { benchmarkFlood(b, "/125?control=10") }
func BenchmarkFloodOfEmptyPings(b *testing.B) { benchmarkFlood(b, "/0?control=9") }

// 1 MB/s or somewhat less, so that the reader often waits.
func BenchmarkSlowFloodOfEmptyPongs(b *testing.B) { benchmarkFlood(b, "/0?control=10&pause=1ms") }

// The caller has no buffer: each message is a new slice, as of coder's Read.
func benchmarkPull(b *testing.B, path string) {
	ours, coders := dialPusher(b, startPusher(b)+path)
	compare(b, func() error {
		_, err := ours.Read(nil)
		return err
	}, func() error {
		_, _, err := coders.Read(context.Background())
		return err
	})
}

func BenchmarkReadPull128(b *testing.B)  { benchmarkPull(b, "/128") }
func BenchmarkReadPull4096(b *testing.B) { benchmarkPull(b, "/4096") }

// sink is a connection in memory that takes everything and sends nothing.
type sink struct{ end }

func (*sink) Write(p []byte) (int, error) { return len(p), nil }

func BenchmarkWrite(b *testing.B) {
	var wire Wire
	connect := func(tap func(net.Conn) net.Conn, around func(http.RoundTripper) http.RoundTripper) *websocket.Conn {
		shake := func(r *http.Request) (*http.Response, error) {
			client, server := pipe()
			h := &hijack{header: http.Header{}, conn: server}
			_, err := websocket.Accept(h, r, nil)
			return &http.Response{StatusCode: 101, Header: h.header, Body: tap(&sink{*client}).(io.ReadCloser)}, err
		}
		ws, _, err := websocket.Dial(context.Background(), "ws://test", &websocket.DialOptions{
			HTTPClient: &http.Client{Transport: around(handshake(shake))},
		})
		require.NoError(b, err)
		return ws
	}
	ours, err := NewWebSocket(connect(wire.Tap, wire.Transport), &wire, nil)
	require.NoError(b, err)
	defer ours.CloseNow()
	coders := connect(untapped, func(rt http.RoundTripper) http.RoundTripper { return rt })
	data := make([]byte, 128)
	compare(b, func() error {
		return ours.Write(Message{Binary, data})
	}, func() error {
		return coders.Write(context.Background(), websocket.MessageBinary, data)
	})
}
