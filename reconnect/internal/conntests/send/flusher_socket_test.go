package send_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// valve is a socket that counts writes, and holds one back while it is shut.
type valve struct {
	net.Conn
	writes atomic.Int32
	shut   atomic.Bool
	held   chan struct{} // gets a value for each write that is held back
	open   chan struct{} // closed to let it go on
}

func (v *valve) Write(p []byte) (int, error) {
	v.writes.Add(1)
	if v.shut.Load() {
		v.held <- struct{}{}
		<-v.open
	}
	return v.Conn.Write(p)
}

// sockets opens a Conn over a real socket, with TLS or without, whose server answers nothing.
func (v *valve) sockets(t *testing.T, secure bool, o *reconnect.Options) *reconnect.Conn {
	v.held, v.open = make(chan struct{}), make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		for err == nil {
			_, _, err = c.Read(context.Background())
		}
	}))
	d := &dialer.WebSocket{DialContext: func(ctx context.Context, network, addr string) (nc net.Conn, err error) {
		v.Conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		return v, err
	}}
	if secure {
		server.StartTLS()
		d.TLS = server.Client().Transport.(*http.Transport).TLSClientConfig
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	d.URL = "ws" + strings.TrimPrefix(server.URL, "http")
	c, err := reconnect.New(d, o)
	require.NoError(t, err)
	t.Cleanup(func() { scene.CloseAndWait(c) })
	require.NoError(t, c.AwaitReady(t.Context()))
	return c
}

// What waits at the same time is one write of the socket, and with TLS one record. The first message does not
// wait for the others.
func TestBurstIsOneSocketWrite(t *testing.T) {
	const burst = 10
	for name, secure := range map[string]bool{"plain": false, "with TLS": true} {
		t.Run(name, func(t *testing.T) {
			var v valve
			receipts := make(chan reconnect.Receipt, burst)
			c := v.sockets(t, secure, &reconnect.Options{Outbox: reconnect.Outbox{
				OnReceipt: func(_ context.Context, r reconnect.Receipt) { receipts <- r },
			}})
			v.shut.Store(true)
			before := v.writes.Load()
			scene.Queue(t, c, "0")
			<-v.held // before the second is sent
			v.shut.Store(false)
			scene.Queue(t, c, "1", "2", "3", "4", "5", "6", "7", "8", "9")
			close(v.open)
			for i := range burst {
				r := <-receipts
				require.Equal(t, reconnect.FateWritten, r.Fate)
				require.Equal(t, string(rune('0'+i)), string(r.Outgoing.Data))
			}
			require.EqualValues(t, 2, v.writes.Load()-before)
		})
	}
}

// A Write that waits for another may go with others too.
func TestWaitingWritesAreOneSocketWrite(t *testing.T) {
	var v valve
	c := v.sockets(t, false, &reconnect.Options{WhenDown: reconnect.WhenDownWait})
	v.shut.Store(true)
	before := v.writes.Load()
	wrote := make(chan error)
	write := func() { wrote <- c.Write(context.Background(), conn.TextMessage("x")) }
	go write()
	<-v.held
	v.shut.Store(false)
	for range 3 {
		go write()
	}
	// The first one found nothing before it, and is not queued.
	require.Eventually(t, func() bool { return c.Stats().Queued == 3 }, time.Minute, time.Millisecond)
	close(v.open)
	for range 4 {
		require.NoError(t, <-wrote)
	}
	require.EqualValues(t, 2, v.writes.Load()-before)
}
