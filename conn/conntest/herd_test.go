package conntest_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

// A test of a herd needs ten thousand real WebSocket clients in one bubble.
func TestTenThousandWebSocketClientsFitIntoOneBubble(t *testing.T) {
	clients := 10_000
	if raceEnabled() {
		clients = 1_000 // the same code at a tenth of the time
	}
	began := time.Now() // real
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		s := conntest.NewServer(&n, addr, conntest.Echo)
		conns := make([]*websocket.Conn, clients)
		var work sync.WaitGroup
		for i := range conns {
			work.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				c, _, err := dial(t.Context(), &n)
				if err != nil {
					t.Error(err)
					return
				}
				c.Write(t.Context(), websocket.MessageText, []byte("hello"))
				c.Read(t.Context())
				conns[i] = c
			})
		}
		work.Wait()
		require.Len(t, s.Conns(), clients)
		if os.Getenv("CONNTEST_FIGURES") != "" {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			t.Logf("%d B a client and its server, heap and stack", (m.HeapAlloc+m.StackInuse)/uint64(clients))
		}
		require.Equal(t, 100, conntest.Peak(n.Dials(addr), 100*time.Millisecond))

		n.ResetAll(addr)
		for _, c := range conns {
			_, _, err := c.Read(t.Context())
			require.Error(t, err)
			c.CloseNow()
		}
		s.Close()
		require.Empty(t, n.Unclosed())
		require.Equal(t, clients, n.Count(addr).MaxOpen)
	})
	t.Logf("%d clients took %v", clients, time.Since(began))
}

// raceEnabled reports whether the test was built with -race.
func raceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
