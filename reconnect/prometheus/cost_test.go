package promredial_test

import (
	"context"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	promredial "github.com/redial-go/redial/reconnect/prometheus"
)

// flood is a connection that brings so many messages and then nothing. It allocates nothing.
type flood struct {
	left int
	end  chan struct{} // gets a value from CloseNow
}

func newFlood(messages int) *flood { return &flood{left: messages, end: make(chan struct{}, 1)} }

func (f *flood) Read(buf []byte) (conn.Message, error) {
	if f.left == 0 {
		<-f.end
		return conn.Message{}, io.EOF
	}
	f.left--
	if cap(buf) < 100 {
		buf = make([]byte, 100)
	}
	return conn.Message{Type: conn.Binary, Data: buf[:100]}, nil
}

func (f *flood) Write(conn.Message) error { return nil }

func (f *flood) Close(context.Context, int, string) error { return f.CloseNow() }

func (f *flood) CloseNow() error {
	select {
	case f.end <- struct{}{}:
	default:
	}
	return nil
}

// No hook is called for a message, so that the way of a message allocates nothing.
func TestAMessageCostsNothing(t *testing.T) {
	const warm, measured = 1000, 100_000
	m := newMetrics(t, nil)
	var start, end runtime.MemStats
	n, done := 0, make(chan struct{})
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return newFlood(warm + measured), nil }),
		&reconnect.Options{
			Layers: []*reconnect.Layer{m.Layer("feed")},
			OnMessage: func(context.Context, reconnect.Message) {
				switch n++; n {
				case warm:
					runtime.ReadMemStats(&start)
				case warm + measured:
					runtime.ReadMemStats(&end)
					close(done)
				}
			},
		})
	require.NoError(t, err)
	<-done
	require.Less(t, float64(end.Mallocs-start.Mallocs)/measured, 0.01)
	c.Close()
	<-c.Done()
	wantLine(t, exposition(t, m), `redial_received_messages_total{name="feed"} 101000`)
}

// The events of one session, from its dial to its loss.
func BenchmarkSession(b *testing.B) {
	m, _ := promredial.New(nil)
	trace := m.Trace("feed")
	s := &reconnect.Session{Number: 1}
	b.ReportAllocs()
	for b.Loop() {
		trace.DialDone(reconnect.DialDone{Took: time.Millisecond})
		trace.SessionStart(s)
		trace.SessionReady(s)
		trace.SessionDone(reconnect.SessionDone{Session: 1, Cause: io.EOF, Uptime: time.Second, Ready: time.Second})
		trace.WaitDone(reconnect.WaitDone{Took: time.Second})
	}
}

// The memory of one idle Conn, without the time series of its name.
func BenchmarkConn(b *testing.B) {
	for name, measured := range map[string]bool{"measured": true, "bare": false} {
		b.Run(name, func(b *testing.B) {
			m, _ := promredial.New(nil)
			m.Trace("feed") // makes the time series
			conns := make([]*reconnect.Conn, 0, b.N)
			before := heap()
			for range b.N {
				var o reconnect.Options
				if measured {
					o.Layers = []*reconnect.Layer{m.Layer("feed")}
				}
				c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return newFlood(0), nil }), &o)
				if err != nil {
					b.Fatal(err)
				}
				conns = append(conns, c)
			}
			for _, c := range conns {
				if err := c.AwaitReady(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(heap()-before)/float64(b.N), "B/conn")
			for _, c := range conns {
				c.Close()
				<-c.Done()
			}
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A scrape of a thousand connections, of one name or of as many.
func BenchmarkScrape(b *testing.B) {
	for _, name := range []string{"one name", "a thousand names"} {
		b.Run(name, func(b *testing.B) {
			m, _ := promredial.New(&promredial.Options{Names: 1000})
			for i := range 1000 {
				label := "feed"
				if name != "one name" {
					label += string(rune('a'+i/100)) + string(rune('a'+i/10%10)) + string(rune('a'+i%10))
				}
				c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return newFlood(0), nil }),
					&reconnect.Options{Layers: []*reconnect.Layer{m.Layer(label)}})
				if err != nil {
					b.Fatal(err)
				}
				defer func() { c.Close(); <-c.Done() }()
				_ = c.AwaitReady(b.Context())
			}
			series := 0
			for b.Loop() {
				ch := make(chan prometheus.Metric, 1000)
				go func() { m.Collect(ch); close(ch) }() // joined by the loop
				series = 0
				for range ch {
					series++
				}
			}
			b.ReportMetric(float64(series), "series")
		})
	}
}
