package send_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// large is a message of 1 MiB, which a link of 10 KiB/s carries in 102 s.
var large = scene.Text("large " + strings.Repeat("x", 1<<20-len("large ")))

// slowly limits the one live connection to 10 KiB/s.
func slowly(t *testing.T, server *scene.WSServer) {
	server.Pipe(t).Trickle(conntest.Both, 1<<10, time.Second/10)
}

// Whether the message is sent or written, with a small one behind it.
func TestLargeMessageCrossesSlowLink(t *testing.T) {
	log := new(scene.MessageLog)
	scene.InEachWSForm(t, log.Serve, func(t *testing.T, server *scene.WSServer) {
		receipts := make(chan reconnect.Receipt, 2)
		c := server.Ready(t, &reconnect.Options{Outbox: reconnect.Outbox{
			OnReceipt: func(_ context.Context, r reconnect.Receipt) { receipts <- r },
		}})
		slowly(t, server)
		require.NoError(t, c.Send(reconnect.Outgoing{Message: large, Repeatable: true}))
		require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("small")}))
		for range 2 {
			r := <-receipts
			require.Equal(t, reconnect.FateWritten, r.Fate)
			require.Equal(t, server.Session, r.Session)
		}
		require.NoError(t, c.Write(t.Context(), large))
		time.Sleep(time.Minute)
		all := log.All()
		require.Equal(t, []string{"large x 1048576", "small x 5", "large x 1048576"}, all[len(all)-1])
	})
}

func TestLargeMessageArrivesOverSlowLink(t *testing.T) {
	serve := func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		time.Sleep(time.Second) // until the link is slow
		_ = c.Write(ctx, websocket.MessageText, large.Data)
		<-ctx.Done()
	}
	scene.WithWSServer(t, serve, func(t *testing.T, server *scene.WSServer) {
		c := server.Ready(t, nil)
		slowly(t, server)
		m, err := c.Read(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, large, conn.Message{Type: m.Type, Data: m.Data})
		require.EqualValues(t, 1, m.Session)
	})
}
