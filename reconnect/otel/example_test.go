package otelredial_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/coder/websocket"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	otelredial "github.com/redial-go/redial/reconnect/otel"
)

// A feed is measured and traced. A program would use exporters where this example reads from memory.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		_ = c.Write(r.Context(), websocket.MessageText, []byte("hello"))
		_, _, _ = c.Read(r.Context()) // until the client closes
	}))
	defer server.Close()

	reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	t, err := otelredial.New(&otelredial.Options{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()

	feed, err := reconnect.New(&dialer.WebSocket{URL: "ws" + strings.TrimPrefix(server.URL, "http")}, &reconnect.Options{
		Layers: []*reconnect.Layer{t.Layer("feed")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		feed.Close()
		<-feed.Done()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	message, err := feed.Read(ctx, nil)
	fmt.Println(string(message.Data), err)

	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "redial.received.bytes" {
			fmt.Println(m.Name, sum.DataPoints[0].Value, m.Unit)
		}
	}
	for _, span := range spans.Ended() {
		fmt.Println(span.Name())
		for _, attribute := range span.Attributes() {
			if attribute.Key != "server.port" { // the system has chosen it
				fmt.Println("-", attribute.Key, attribute.Value.String())
			}
		}
	}
	// Output:
	// hello <nil>
	// redial.received.bytes 5 By
	// redial dial
	// - redial.name feed
	// - server.address 127.0.0.1
	// - redial.try 1
	// - redial.outcome ok
}
