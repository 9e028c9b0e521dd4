package reconnect_test

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// BenchmarkFairness reports how long a Write takes, now and then, while four other
// goroutines write in a loop; beside it the same with a mutex around a conn.Framed.
// The figures that count are the ratios within one run.
func BenchmarkFairness(b *testing.B) {
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
	plain, err := dial(b.Context())
	require.NoError(b, err)
	defer plain.CloseNow()
	open := func(o *reconnect.Options) func(context.Context, conn.Message) error {
		c, err := reconnect.New(reconnect.DialFunc(dial), o)
		require.NoError(b, err)
		b.Cleanup(func() { quit(c) })
		require.NoError(b, c.Await(b.Context(), reconnect.StateReady))
		return c.Write
	}
	var mu sync.Mutex
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
			data := text(strings.Repeat("x", 1000))
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
			var took []time.Duration
			for range b.N {
				start := time.Now()
				require.NoError(b, write(b.Context(), text("tick")))
				took = append(took, time.Since(start))
				time.Sleep(time.Millisecond)
			}
			cancel()
			g.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}
