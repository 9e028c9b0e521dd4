//go:build unix

package conn

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
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

// compare runs ours and coder's in turns, and reports the CPU of an operation and how ours stands
// to coder's. Ours runs b.N times, because package testing times nothing else. In each of its turns
// coder's gets twice the time that ours took, or it would run for an hour where it is much slower.
func compare(b *testing.B, ours, coders func() error) {
	const round = 20_000
	var used [2]time.Duration
	var times [2]int
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += round {
		var took time.Duration
		for i, op := range []func() error{ours, coders} {
			if i == 1 {
				b.StopTimer() // time and allocations are ours
			}
			runtime.GC() // so that each pays for its own garbage
			start, began := cpu(), time.Now()
			for n := range min(round, b.N-done) {
				if i == 1 && n >= 10 && n%10 == 0 && time.Since(began) > 2*took {
					break
				}
				if err := op(); err != nil {
					b.Fatal(err)
				}
				times[i]++
			}
			used[i] += cpu() - start
			took = time.Since(began)
			b.StartTimer()
		}
	}
	each := func(i int) float64 { return float64(used[i]) / float64(times[i]) }
	b.ReportMetric(each(0), "cpu-ns/op")
	b.ReportMetric(each(1), "coder-cpu-ns/op")
	b.ReportMetric(each(0)/each(1), "ratio")
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

// BenchmarkPing compares a ping and its answer, for which a Read waits.
func BenchmarkPing(b *testing.B) {
	ours, coders := dialPusher(b, startPusher(b)+"/pings")
	oursRead := background(func() error { _, err := ours.Read(nil); return err })
	codersRead := background(func() error { _, _, err := coders.Read(context.Background()); return err })
	ctx := context.Background()
	compare(b, func() error { return ours.Ping(ctx) }, func() error { return coders.Ping(ctx) })
	ours.CloseNow()
	coders.CloseNow()
	require.Error(b, oursRead())
	require.Error(b, codersRead())
}

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

// BenchmarkIdleTakeover compares what a connection holds between messages, once it has sent and received
// 80 KiB of text with context takeover. An operation is a connection.
func BenchmarkIdleTakeover(b *testing.B) {
	message := prose(4<<10, 1)
	comes := frame(fin|rsv1|text, compressed(message))
	open := func(wire *Wire) (*websocket.Conn, *end) { // wire is nil for coder's connection
		client, server := pipe()
		var transport http.RoundTripper
		if wire == nil {
			transport = agreeing(&sink{*client})
		} else {
			transport = wire.Transport(agreeing(wire.Tap(&sink{*client}).(io.ReadCloser)))
		}
		ws, _, err := websocket.Dial(context.Background(), "ws://test", &websocket.DialOptions{
			HTTPClient:      &http.Client{Transport: transport},
			CompressionMode: websocket.CompressionContextTakeover,
		})
		require.NoError(b, err)
		return ws, server
	}
	ours := func() any {
		var wire Wire
		ws, peer := open(&wire)
		c, err := NewWebSocket(ws, &wire, nil)
		require.NoError(b, err)
		for range 20 {
			require.NoError(b, c.Write(TextMessage(message)))
			_, _ = peer.Write([]byte(comes))
			m, err := c.Read(nil)
			require.NoError(b, err)
			require.Equal(b, message, string(m.Data))
		}
		return c
	}
	coders := func() any {
		c, peer := open(nil)
		for range 20 {
			require.NoError(b, c.Write(context.Background(), websocket.MessageText, []byte(message)))
			_, _ = peer.Write([]byte(comes))
			_, data, err := c.Read(context.Background())
			require.NoError(b, err)
			require.Equal(b, message, string(data))
		}
		return c
	}
	var holds [2]float64
	for i, connect := range []func() any{ours, coders} {
		before := live()
		conns := make([]any, b.N)
		for n := range conns {
			conns[n] = connect()
		}
		holds[i] = float64(live()-before) / float64(b.N)
		runtime.KeepAlive(conns)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(holds[0], "B/conn")
	b.ReportMetric(holds[1], "coder-B/conn")
	b.ReportMetric(holds[0]/holds[1], "ratio")
}

// live returns the live heap and the stacks, without what pools hold.
func live() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// agreeing returns a server that agrees on compression, and answers with body.
func agreeing(body io.ReadCloser) http.RoundTripper {
	return handshake(func(r *http.Request) (*http.Response, error) {
		key := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		h := http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}
		h.Set("Sec-WebSocket-Accept", base64.StdEncoding.EncodeToString(key[:]))
		h.Set("Sec-WebSocket-Extensions", "permessage-deflate")
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: h, Body: body}, nil
	})
}
