package reconnect_test

import (
	"context"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// BenchmarkSend sends 128 B over an in-memory connection and counts until OnReceipt was
// told: with up to 512 on their way, and one by one, which is the price of waking
// those who write and tell. Compare with BenchmarkWrite.
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
			defer quit(c)
			require.NoError(b, c.Await(b.Context(), reconnect.StateReady))
			m := reconnect.Out{Message: conn.Message{Type: conn.Binary, Data: make([]byte, 128)}}
			b.ReportAllocs()
			for b.Loop() {
				room <- struct{}{}
				if err := c.Send(m); err != nil {
					b.Fatal(err)
				}
			}
			for range most {
				room <- struct{}{} // until all are told
			}
		})
	}
}

// BenchmarkBurst sends 64 messages of 128 B at once, over loopback, and waits until all have
// been written: coder's Write, ours, and Send.
func BenchmarkBurst(b *testing.B) {
	const burst = 64
	data := make([]byte, 128)
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
	b.Run("plain", func(b *testing.B) {
		c, _, err := websocket.Dial(b.Context(), startPeer(b), nil)
		require.NoError(b, err)
		defer c.CloseNow()
		measure(b, func() { require.NoError(b, c.Write(context.Background(), websocket.MessageBinary, data)) }, func() {})
	})
	told := make(chan struct{}, burst)
	c, err := reconnect.New(&dialer.WebSocket{URL: startPeer(b)}, &reconnect.Options{
		Outbox: reconnect.Outbox{OnReceipt: func(context.Context, reconnect.Receipt) { told <- struct{}{} }},
	})
	require.NoError(b, err)
	defer quit(c)
	require.NoError(b, c.Await(b.Context(), reconnect.StateReady))
	m := conn.Message{Type: conn.Binary, Data: data}
	b.Run("write", func(b *testing.B) {
		measure(b, func() { require.NoError(b, c.Write(context.Background(), m)) }, func() {})
	})
	b.Run("send", func(b *testing.B) {
		measure(b, func() { require.NoError(b, c.Send(reconnect.Out{Message: m})) }, func() {
			for range burst {
				<-told
			}
		})
	})
}
