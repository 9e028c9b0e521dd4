package reconnect_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// peerEnv makes the test binary a WebSocket server on loopback, in a process of
// its own, so that its work and memory are not counted as ours.
const peerEnv = "REDIAL_BENCH_PEER"

// servePeer sends as many messages of a size as the request's query asks for, and
// then reads until the client leaves; with "echo" in the query it sends back what it
// reads. It ends when its standard input does.
func servePeer() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	type raw struct{}
	s := &http.Server{ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, raw{}, c) }}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		var size, count int
		fmt.Sscan(r.URL.Query().Get("size"), &size)
		fmt.Sscan(r.URL.Query().Get("count"), &count)
		send(r.Context().Value(raw{}).(net.Conn), size, count)
		for err == nil {
			var kind websocket.MessageType
			var data []byte
			if kind, data, err = c.Read(context.Background()); err == nil && r.URL.Query().Has("echo") {
				err = c.Write(context.Background(), kind, data)
			}
		}
	})
	go s.Serve(l)
	io.Copy(io.Discard, os.Stdin)
}

// send writes messages in bursts of up to 64 KiB, as a busy feed does.
func send(c net.Conn, size, count int) {
	frame := conntest.Frame{Head: conntest.Fin | conntest.BinaryFrame, Payload: make([]byte, size)}.Bytes()
	burst := bytes.Repeat(frame, 1+(64<<10)/len(frame))
	for left := count * len(frame); left > 0; left -= len(burst) {
		if _, err := c.Write(burst[:min(left, len(burst))]); err != nil {
			return
		}
	}
}

// startPeer returns the URL of a server process that ends with the test or benchmark.
func startPeer(t testing.TB) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), peerEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	addr, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return "ws://" + strings.TrimSpace(addr)
}

const idle = 10_000

// BenchmarkIdle measures live heap plus stack of a ready idle connection: when it
// has just been opened, and after its first ping, for which coder/websocket makes a map.
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
				return pinged, func() { c.Close() }
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
	_, end := open(b, url) // whatever is made once
	end()
	before, stack := held()
	pings, ends := make([]func(), idle), make([]func(), idle)
	for i := range ends {
		pings[i], ends[i] = open(b, url)
	}
	opened, stackOpened := held()
	for _, ping := range pings {
		ping()
	}
	time.Sleep(time.Second)
	pinged, stackPinged := held()
	b.ReportMetric(float64(opened-before)/idle, "B/conn")
	b.ReportMetric(float64(stackOpened-stack)/idle, "stack-B/conn")
	b.ReportMetric(float64(pinged-before)/idle, "pinged-B/conn")
	b.ReportMetric(float64(stackPinged-stack)/idle, "pinged-stack-B/conn")
	b.ReportMetric(float64(runtime.NumGoroutine())/idle, "goroutines/conn")
	b.ReportMetric(0, "ns/op")
	for _, end := range ends {
		end()
	}
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

// sink is a connection in memory whose peer answers a handshake, takes
// everything and says nothing.
type sink struct {
	net.Conn
	answer      io.Reader
	asked       chan struct{}
	closed      chan struct{}
	first, once sync.Once
}

func dialSink(context.Context, string, string) (net.Conn, error) {
	return &sink{asked: make(chan struct{}, 1), closed: make(chan struct{})}, nil
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
			defer quit(c)
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
