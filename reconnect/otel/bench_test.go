package otelredial_test

import (
	"context"
	"io"
	"runtime"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	otelredial "github.com/redial-go/redial/reconnect/otel"
)

// The events of one session, from its dial to its loss, with a span that is recorded and exported to
// nobody, and without.
func BenchmarkSession(b *testing.B) {
	for name, tracer := range map[string]trace.TracerProvider{"spans": sdktrace.NewTracerProvider(), "no spans": noop.NewTracerProvider()} {
		b.Run(name, func(b *testing.B) {
			t, err := otelredial.New(&otelredial.Options{
				MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())), TracerProvider: tracer,
			})
			if err != nil {
				b.Fatal(err)
			}
			defer t.Close()
			hooks := t.Trace("feed")
			s := &reconnect.Session{Number: 1}
			b.ReportAllocs()
			for b.Loop() {
				hooks.DialStart(reconnect.DialStart{Try: 1})
				hooks.DialDone(reconnect.DialDone{Try: 1, Took: time.Millisecond})
				hooks.SessionStart(s)
				hooks.SessionReady(s)
				hooks.SessionDone(reconnect.SessionDone{Session: 1, Cause: io.EOF, Uptime: time.Second, Ready: time.Second})
				hooks.WaitDone(reconnect.WaitDone{Took: time.Second})
			}
		})
	}
}

// The memory of one idle Conn, without the series of its name.
func BenchmarkConn(b *testing.B) {
	for name, measured := range map[string]bool{"measured": true, "bare": false} {
		b.Run(name, func(b *testing.B) {
			t, err := otelredial.New(&otelredial.Options{
				MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
				TracerProvider: noop.NewTracerProvider(),
			})
			if err != nil {
				b.Fatal(err)
			}
			defer t.Close()
			t.Trace("feed") // makes the series
			conns := make([]*reconnect.Conn, b.N)
			before := heap()
			for i := range conns {
				var o reconnect.Options
				if measured {
					o.Layers = []*reconnect.Layer{t.Layer("feed")}
				}
				conns[i], err = reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
					return conntest.NewFake(nil).Conn(), nil
				}), &o)
				if err != nil {
					b.Fatal(err)
				}
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

// One collection with a name, of which no connection is left.
func BenchmarkCollect(b *testing.B) {
	reader := sdkmetric.NewManualReader()
	t, err := otelredial.New(&otelredial.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})
	if err != nil {
		b.Fatal(err)
	}
	defer t.Close()
	t.Trace("feed")
	var all metricdata.ResourceMetrics
	b.ReportAllocs()
	for b.Loop() {
		if err := reader.Collect(context.Background(), &all); err != nil {
			b.Fatal(err)
		}
	}
}
