package reconnect_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

const idle = 10_000

var idleProfile = flag.String("idleprofile", "", "BenchmarkIdle writes a heap profile of its connections to this file, and does not wait for pings")

// BenchmarkIdle measures live heap plus stack of a ready idle connection: when it
// has just been opened, and after its first ping. Plain is coder/websocket, which makes a map for a ping.
// Run it with -benchtime 1x; compare push and pull with plain.
func BenchmarkIdle(b *testing.B) {
	b.Run("plain", func(b *testing.B) { measureIdle(b, openPlain) })
	for name, o := range map[string]*reconnect.Options{
		"push": {OnMessage: func(context.Context, reconnect.Message) {}},
		"pull": {},
	} {
		o.Liveness.Limit = 3 * time.Minute // the first ping after one
		b.Run(name, func(b *testing.B) {
			var d *dialer.WebSocket // one for all, as a gateway has it
			measureIdle(b, func(b *testing.B, url string) (ping, end func()) {
				if d == nil {
					d = &dialer.WebSocket{URL: url}
				}
				c, err := reconnect.New(d, o)
				require.NoError(b, err)
				require.NoError(b, c.Await(b.Context(), reconnect.StateReady))
				pinged := func() {
					for c.Stats().Probes == 0 {
						time.Sleep(100 * time.Millisecond)
					}
				}
				return pinged, func() { scene.CloseAndWait(c) }
			})
		})
	}
}

func openPlain(b *testing.B, url string) (ping, end func()) {
	c, _, err := websocket.Dial(context.Background(), url, nil)
	require.NoError(b, err)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			_, r, err := c.Reader(context.Background())
			if err != nil {
				return
			}
			io.Copy(io.Discard, r)
		}
	})
	return func() { c.Ping(context.Background()) }, func() { c.CloseNow(); done.Wait() }
}

func measureIdle(b *testing.B, open func(*testing.B, string) (ping, end func())) {
	url := startPeer(b)
	pings, ends := make([]func(), idle), make([]func(), idle)
	openAll := func() {
		for i := range ends {
			pings[i], ends[i] = open(b, url)
		}
	}
	closeAll := func() {
		for i, end := range ends {
			end()
			pings[i], ends[i] = nil, nil
		}
	}
	openAll() // because the runtime keeps some of what the first goroutines of a process have needed
	closeAll()
	before, stack := held()
	openAll()
	opened, stackOpened := held()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(opened-before)/idle, "B/conn")
	b.ReportMetric(float64(stackOpened-stack)/idle, "stack-B/conn")
	defer closeAll()
	if *idleProfile != "" {
		writeHeap(b, *idleProfile)
		return
	}
	for _, ping := range pings {
		ping()
	}
	time.Sleep(time.Second)
	pinged, stackPinged := held()
	b.ReportMetric(float64(pinged-before)/idle, "pinged-B/conn")
	b.ReportMetric(float64(stackPinged-stack)/idle, "pinged-stack-B/conn")
	b.ReportMetric(float64(runtime.NumGoroutine())/idle, "goroutines/conn")
}

// writeHeap writes a heap profile.
func writeHeap(b *testing.B, name string) {
	f, err := os.Create(name)
	require.NoError(b, err)
	require.NoError(b, pprof.Lookup("heap").WriteTo(f, 0))
	require.NoError(b, f.Close())
}

// held returns the live heap plus stacks, and the stacks alone.
func held() (all, stack int64) {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), int64(m.StackInuse)
}

// BenchmarkReceive receives messages over loopback from another process:
// plain is coder's Reader into a reused buffer, read its Read, push our OnMessage,
// pull our Read into a reused buffer, fresh our Read into new ones.
func BenchmarkReceive(b *testing.B) {
	for _, size := range []int{128, 4096} {
		for _, kind := range []struct {
			name    string
			receive func(*testing.B, string)
		}{
			{"plain", receivePlain}, {"push", receivePush}, {"read", receiveRead},
			{"pull", receivePull(make([]byte, 8192))}, {"fresh", receivePull(nil)},
		} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, size), func(b *testing.B) {
				url := fmt.Sprintf("%s?size=%d&count=%d", startPeer(b), size, b.N)
				b.ReportAllocs()
				start := cpu()
				kind.receive(b, url)
				b.ReportMetric(float64(cpu()-start)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

func receivePlain(b *testing.B, url string) {
	c, _, err := websocket.Dial(context.Background(), url, nil)
	require.NoError(b, err)
	defer c.CloseNow()
	c.SetReadLimit(1 << 20)
	buf := make([]byte, 8192)
	b.ResetTimer()
	for range b.N {
		_, r, err := c.Reader(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		for n := 0; err == nil; {
			var k int
			k, err = r.Read(buf[n:])
			n += k
		}
	}
}

func receiveRead(b *testing.B, url string) {
	c, _, err := websocket.Dial(context.Background(), url, nil)
	require.NoError(b, err)
	defer c.CloseNow()
	b.ResetTimer()
	for range b.N {
		if _, _, err := c.Read(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

func receivePush(b *testing.B, url string) {
	n, done := 0, make(chan struct{})
	b.ResetTimer()
	c, err := reconnect.New(&dialer.WebSocket{URL: url}, &reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {
		if n++; n == b.N {
			close(done)
		}
	}})
	require.NoError(b, err)
	<-done
	b.StopTimer()
	c.Close()
}

func receivePull(buf []byte) func(*testing.B, string) {
	return func(b *testing.B, url string) {
		b.ResetTimer()
		c, err := reconnect.New(&dialer.WebSocket{URL: url}, nil)
		require.NoError(b, err)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for range b.N {
			if _, err := c.Read(ctx, buf); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		c.Close()
	}
}

// BenchmarkWrite writes 128 B over an in-memory connection: coder's Write, ours
// with a context that never ends, and with one that can.
func BenchmarkWrite(b *testing.B) {
	m := conn.Message{Type: conn.Binary, Data: make([]byte, 128)}
	b.Run("plain", func(b *testing.B) {
		c, _, err := websocket.Dial(b.Context(), "ws://h:1", &websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{DialContext: dialSink}}})
		require.NoError(b, err)
		defer c.CloseNow()
		b.ReportAllocs()
		for b.Loop() {
			if err := c.Write(context.Background(), websocket.MessageBinary, m.Data); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, ctx := range map[string]context.Context{"conn": context.Background(), "conn, cancellable": b.Context()} {
		b.Run(name, func(b *testing.B) {
			c, err := reconnect.New(&dialer.WebSocket{URL: "ws://h:1", DialContext: dialSink}, nil)
			require.NoError(b, err)
			defer scene.CloseAndWait(c)
			require.NoError(b, c.Await(ctx, reconnect.StateReady))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Write(ctx, m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSend sends 128 B over an in-memory connection and counts until OnReceipt has
// returned: with up to 512 messages on their way, and one by one, which is the price of waking
// the goroutines that write and report. Compare with BenchmarkWrite.
func BenchmarkSend(b *testing.B) {
	for name, most := range map[string]int{"stream": 512, "one by one": 1} {
		b.Run(name, func(b *testing.B) {
			room := make(chan struct{}, most) // one for each message on its way
			c, err := reconnect.New(&dialer.WebSocket{URL: "ws://h:1", DialContext: dialSink}, &reconnect.Options{
				Outbox: reconnect.Outbox{OnReceipt: func(_ context.Context, r reconnect.Receipt) {
					if r.Err != nil {
						b.Error(r.Err)
					}
					<-room
				}},
			})
			require.NoError(b, err)
			defer scene.CloseAndWait(c)
			require.NoError(b, c.Await(b.Context(), reconnect.StateReady))
			m := reconnect.Outgoing{Message: conn.Message{Type: conn.Binary, Data: make([]byte, 128)}}
			b.ReportAllocs()
			for b.Loop() {
				room <- struct{}{}
				if err := c.Send(m); err != nil {
					b.Fatal(err)
				}
			}
			for range most {
				room <- struct{}{} // until OnReceipt has returned for all
			}
		})
	}
}

// BenchmarkBurst sends 64 messages of 128 B at once, over loopback, and waits until all have
// been written: coder's Write, ours, and Send.
func BenchmarkBurst(b *testing.B) {
	const burst = 64
	data := make([]byte, 128)
	// measure reports the processor time of a message.
	measure := func(b *testing.B, send func(), flush func()) {
		b.ReportAllocs()
		start := cpu()
		for b.Loop() {
			for range burst {
				send()
			}
			flush()
		}
		b.ReportMetric(float64(cpu()-start)/float64(b.N*burst), "cpu-ns/message")
	}
	// By coder/websocket alone.
	b.Run("plain", func(b *testing.B) {
		c, _, err := websocket.Dial(b.Context(), startPeer(b), nil)
		require.NoError(b, err)
		defer c.CloseNow()
		measure(b, func() { require.NoError(b, c.Write(context.Background(), websocket.MessageBinary, data)) }, func() {})
	})
	// By a Conn with an outbox: Write, and Send until all receipts have come.
	receipts := make(chan struct{}, burst)
	c, err := reconnect.New(&dialer.WebSocket{URL: startPeer(b)}, &reconnect.Options{
		Outbox: reconnect.Outbox{OnReceipt: func(context.Context, reconnect.Receipt) { receipts <- struct{}{} }},
	})
	require.NoError(b, err)
	defer scene.CloseAndWait(c)
	require.NoError(b, c.Await(b.Context(), reconnect.StateReady))
	m := conn.Message{Type: conn.Binary, Data: data}
	b.Run("write", func(b *testing.B) {
		measure(b, func() { require.NoError(b, c.Write(context.Background(), m)) }, func() {})
	})
	b.Run("send", func(b *testing.B) {
		measure(b, func() { require.NoError(b, c.Send(reconnect.Outgoing{Message: m})) }, func() {
			for range burst {
				<-receipts
			}
		})
	})
}

// BenchmarkFairness reports how long a Write takes, now and then, while four other goroutines
// write in a loop. Beside it is the same with a mutex around a conn.Framed. The figures that
// count are the ratios within one run.
func BenchmarkFairness(b *testing.B) {
	// A peer that reads everything.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer l.Close()
	go func() { // ends with l
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, nc) // ends with its connection
		}
	}()
	dial := func(context.Context) (conn.Conn, error) {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		return conn.NewFramed(nc, conn.LengthPrefix{}, nil)
	}
	// A conn.Framed for the mutex, and a function that opens a Conn.
	plain, err := dial(b.Context())
	require.NoError(b, err)
	defer plain.CloseNow()
	open := func(o *reconnect.Options) func(context.Context, conn.Message) error {
		c, err := reconnect.New(reconnect.DialFunc(dial), o)
		require.NoError(b, err)
		b.Cleanup(func() { scene.CloseAndWait(c) })
		require.NoError(b, c.Await(b.Context(), reconnect.StateReady))
		return c.Write
	}
	var mu sync.Mutex
	// The three ways to write.
	for name, write := range map[string]func(context.Context, conn.Message) error{
		"mutex": func(_ context.Context, m conn.Message) error {
			mu.Lock()
			defer mu.Unlock()
			return plain.Write(m)
		},
		"redial":      open(nil),
		"redial-done": open(&reconnect.Options{Outbox: reconnect.Outbox{OnReceipt: func(context.Context, reconnect.Receipt) {}}}),
	} {
		b.Run(name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			var g sync.WaitGroup
			data := scene.Text(strings.Repeat("x", 1000))
			// Four goroutines write in a loop.
			for range 4 {
				g.Go(func() {
					for ctx.Err() == nil {
						if err := write(context.Background(), data); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			// Now and then one more message is written: how long does it take?
			var took []time.Duration
			for range b.N {
				start := time.Now()
				require.NoError(b, write(b.Context(), scene.Text("tick")))
				took = append(took, time.Since(start))
				time.Sleep(time.Millisecond)
			}
			cancel()
			g.Wait()
			// Report the median, and the longest of all but one in a hundred.
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}

// sink is a connection in memory whose peer answers a handshake, reads everything and sends
// nothing.
type sink struct {
	net.Conn
	answer      io.Reader
	asked       chan struct{}
	closed      chan struct{}
	first, once sync.Once
}

func (s *sink) Write(p []byte) (int, error) {
	if s.answer == nil {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(p)))
		if err != nil {
			return 0, err
		}
		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		s.answer = strings.NewReader("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
			"Sec-WebSocket-Accept: " + base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n")
		s.asked <- struct{}{}
	}
	return len(p), nil
}

func (s *sink) Read(p []byte) (int, error) {
	s.first.Do(func() { <-s.asked })
	if n, err := s.answer.Read(p); err == nil {
		return n, nil
	}
	<-s.closed
	return 0, net.ErrClosed
}

func (s *sink) LocalAddr() net.Addr { return &net.TCPAddr{} }

func (s *sink) RemoteAddr() net.Addr { return &net.TCPAddr{} }

func (s *sink) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func dialSink(context.Context, string, string) (net.Conn, error) {
	return &sink{asked: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}
