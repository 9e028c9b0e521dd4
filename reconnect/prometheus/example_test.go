package promredial_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	promredial "github.com/redial-go/redial/reconnect/prometheus"
)

// A feed is measured, and its metrics are served for Prometheus.
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

	m, err := promredial.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	metrics := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer metrics.Close()

	feed, err := reconnect.New(&dialer.WebSocket{URL: "ws" + strings.TrimPrefix(server.URL, "http")}, &reconnect.Options{
		Layers: []*reconnect.Layer{m.Layer("feed")},
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
	printMetrics(metrics.URL, "redial_connections", "redial_received", "redial_dials_total")
	// Output:
	// hello <nil>
	// redial_connections{name="feed",state="at_gate"} 0
	// redial_connections{name="feed",state="connecting"} 0
	// redial_connections{name="feed",state="ended"} 0
	// redial_connections{name="feed",state="opening"} 0
	// redial_connections{name="feed",state="ready"} 1
	// redial_connections{name="feed",state="waiting"} 0
	// redial_dials_total{name="feed",outcome="canceled",reason="none"} 0
	// redial_dials_total{name="feed",outcome="ok",reason="none"} 1
	// redial_received_bytes_total{name="feed"} 5
	// redial_received_messages_total{name="feed"} 1
}

// printMetrics prints the metrics whose names begin so.
func printMetrics(url string, names ...string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		for _, name := range names {
			if strings.HasPrefix(lines.Text(), name) {
				fmt.Println(lines.Text())
			}
		}
	}
}
