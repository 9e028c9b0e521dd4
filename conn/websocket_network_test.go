package conn_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// TLS that a user's own DialContext made spends up to 5 s on its last record.
func TestCloseNowOfAWebSocketOverTheUsersTLSDoesNotWait(t *testing.T) {
	config := serverTLS()
	synctest.Test(t, func(t *testing.T) {
		v := newWSServer(t, conntest.NeverRead)
		v.server.TLS = config
		c, pipe := v.dial(t, nil, secured)
		pipe.Window(conntest.ToServer, 0)
		takes(t, 0, func() { require.NoError(t, c.CloseNow()) })
	})
}

// receiving is a handler that says how large each message was.
func receiving(sizes chan<- int64) conntest.Handler {
	return func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		c.SetReadLimit(-1)
		for {
			_, r, err := c.Reader(context.Background())
			if err != nil {
				return
			}
			size, _ := io.Copy(io.Discard, r)
			sizes <- size
		}
	}
}

// 20 MB at 1 MB/s, behind a server that pings each second: it takes 20 s, and no
// limit of 5 s strikes.
func TestASlowUploadBehindAServerThatPingsArrives(t *testing.T) {
	const size, rate = 20_000_000, 1_000_000
	synctest.Test(t, func(t *testing.T) {
		sizes := make(chan int64, 1)
		v := newWSServer(t, receiving(sizes))
		c, pipe := v.dial(t, &conn.WebSocketOptions{Limits: conn.Limits{WriteTimeout: time.Minute}}, nil)
		pipe.Window(conntest.ToServer, rate/5)
		pipe.Trickle(conntest.ToServer, rate/10, second/10)
		read := background(func() error { _, err := c.Read(nil); return err })
		synctest.Wait()
		peer := v.server.Conns()[0]
		answered := background(func() (n int) {
			for time.Sleep(second); peer.Ping(context.Background()) == nil; time.Sleep(second) {
				n++
			}
			return n
		})
		start := time.Now()
		require.NoError(t, c.Write(conn.BinaryMessage(make([]byte, size))))
		require.EqualValues(t, size, <-sizes)
		require.Equal(t, 20_100*time.Millisecond, time.Since(start))
		time.Sleep(second / 2)
		require.NoError(t, c.CloseNow())
		require.ErrorIs(t, read(), net.ErrClosed)
		require.GreaterOrEqual(t, answered(), 15)
	})
}

// A probe of ours is answered late while a message goes out, but the peer is alive.
func TestASlowUploadShowsThatThePeerIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sizes := make(chan int64, 1)
		c, pipe := newWSServer(t, receiving(sizes)).dial(t, &conn.WebSocketOptions{Limits: conn.Limits{WriteTimeout: time.Hour}}, nil)
		pipe.Trickle(conntest.ToServer, 10_000, second) // 10 kB/s
		write := background(func() error { return c.Write(conn.BinaryMessage(make([]byte, 1_000_000))) })
		for range 85 {
			time.Sleep(second)
			require.LessOrEqual(t, c.Silence(), 10*second)
		}
		require.NoError(t, write())
		require.EqualValues(t, 1_000_000, <-sizes)
	})
}

func TestAStuckMessageIsCutAtTheWriteTimeoutBehindARealServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newWSServer(t, conntest.NeverRead).dial(t, &conn.WebSocketOptions{Limits: conn.Limits{WriteTimeout: 30 * second}}, nil)
		takes(t, 30*second, func() {
			err := c.Write(conn.BinaryMessage(make([]byte, 1<<20)))
			require.ErrorAs(t, err, new(*conn.SlowMessageError))
			require.NotErrorIs(t, err, conn.ErrNotWritten)
		})
	})
}
