package reconnect_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Promise 9: a message above our limit in each session, such as a snapshot that has grown, is an
// ordinary loss the first time, and slow from the second in a row on.
func TestRepeatedTooLargeMessageIsSlow(t *testing.T) {
	h := func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		if c.Write(ctx, websocket.MessageBinary, make([]byte, 5000)) == nil {
			_, _, _ = c.Read(ctx) // until the client closes the connection
		}
	}
	withWSServer(t, h, func(t *testing.T, server *wsServer) {
		server.dialer.Conn.ReadLimit = 4096
		var classes []backoff.Class
		c := server.open(t, &reconnect.Options{
			Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard},
			Run: reconnect.RunOptions{Trace: &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) {
				classes = append(classes, w.Verdict.Class)
			}}},
		})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.ErrorAs(t, c.Status().Err, new(*conn.TooBigError))
		require.Equal(t, backoff.ClassRetry, classes[0])
		for _, class := range classes[1:] {
			require.Equal(t, backoff.ClassSlow, class)
		}
		require.Less(t, len(classes), 40) // slow waits: 10 s, 12 s, ... to 2 min
		require.Greater(t, len(classes), 5)
	})
}
