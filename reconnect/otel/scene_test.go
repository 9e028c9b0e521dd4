package otelredial_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	otelredial "github.com/redial-go/redial/reconnect/otel"
	"github.com/redial-go/redial/reconnect/subscription"
)

// scene has a Telemetry whose SDK is in memory.
type scene struct {
	*otelredial.Telemetry
	t      *testing.T
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
}

func newScene(t *testing.T, o otelredial.Options, sdk ...sdkmetric.Option) *scene {
	t.Helper()
	s := &scene{t: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	o.MeterProvider = sdkmetric.NewMeterProvider(append(sdk, sdkmetric.WithReader(s.reader))...)
	o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans))
	var err error
	s.Telemetry, err = otelredial.New(&o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// metrics returns what the reader gets.
func (s *scene) metrics() []metricdata.Metrics {
	s.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(s.t, s.reader.Collect(context.Background(), &all))
	require.Len(s.t, all.ScopeMetrics, 1)
	return all.ScopeMetrics[0].Metrics
}

// points returns what the reader gets as text: the instrument, its attributes without the prefix, and
// the value, for a histogram the number and the sum. Such as "dials outcome=ok reason=none": "2".
func (s *scene) points() map[string]string {
	s.t.Helper()
	points := map[string]string{}
	add := func(m metricdata.Metrics, set attribute.Set, value string) {
		key := []string{strings.TrimPrefix(m.Name, "redial.")}
		for _, kv := range set.ToSlice() {
			key = append(key, strings.TrimPrefix(string(kv.Key), "redial.")+"="+kv.Value.String())
		}
		points[strings.Join(key, " ")] = value
	}
	for _, m := range s.metrics() {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				add(m, p.Attributes, fmt.Sprint(p.Value))
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				add(m, p.Attributes, fmt.Sprint(p.Value))
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				add(m, p.Attributes, fmt.Sprint(p.Count, " ", p.Sum))
			}
		default:
			s.t.Fatalf("%s: %T", m.Name, m.Data)
		}
	}
	return points
}

// live lets a Conn live for a while in virtual time: a session of 20 s with 2 messages, a loss, the
// return. It runs check before the Conn is closed, and after.
func (s *scene) live(name string, check func(ended bool)) {
	s.t.Helper()
	synctest.Test(s.t, func(t *testing.T) {
		peers := make(chan *conntest.Fake, 2)
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			f := conntest.NewFake(nil)
			peers <- f
			return f.Conn(), nil
		}), &reconnect.Options{Layers: []*reconnect.Layer{s.Layer(name, func() subscription.Stats {
			return subscription.Stats{Wanted: 3, Held: 2}
		})}})
		require.NoError(t, err)
		peer := <-peers
		peer.Deliver(conn.TextMessage("abc"), conn.TextMessage("de"))
		time.Sleep(20 * time.Second)
		require.NoError(t, c.Write(t.Context(), conn.TextMessage("hello")))
		peer.Fail(io.EOF)
		<-peers
		synctest.Wait()
		check(false)
		c.Close()
		<-c.Done()
		check(true)
	})
}
