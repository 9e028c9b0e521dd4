package reconnect_test

import (
	"context"
	"testing"

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
