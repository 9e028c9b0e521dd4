package receive_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Promise 9: a message above our limit in each session, such as a snapshot that has grown, is an
// ordinary loss the first time, and slow from the second in a row on, with a warning in the log.
func TestRepeatedTooLargeMessageIsSlow(t *testing.T) {
	const limit, size = 4096, 5000
	t.Run("WebSocket", func(t *testing.T) {
		h := func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
			if c.Write(ctx, websocket.MessageBinary, make([]byte, size)) == nil {
				_, _, _ = c.Read(ctx) // until the client closes the connection
			}
		}
		scene.WithWSServer(t, h, func(t *testing.T, server *scene.WSServer) {
			server.Dialer.Conn.ReadLimit = limit
			requireSlowAndWarned(t, server.Open)
		})
	})
	t.Run("Framed", func(t *testing.T) {
		scene.WithFramedServer(t, conn.Lines{}, func(t *testing.T, server *scene.FramedServer) {
			server.Dialer.Conn.ReadLimit = limit
			over := t.Context().Done()
			go func() {
				for {
					select {
					case nc := <-server.Clients:
						go sendAndWait(nc, strings.Repeat("x", size)+"\n")
					case <-over:
						return
					}
				}
			}()
			requireSlowAndWarned(t, server.Open)
		})
	})
}

// sendAndWait writes data, and closes nc when the client has closed it.
func sendAndWait(nc net.Conn, data string) {
	defer nc.Close()
	if _, err := io.WriteString(nc, data); err == nil {
		_, _ = io.Copy(io.Discard, nc)
	}
}

// requireSlowAndWarned opens a Conn whose sessions all get a message that is too large.
func requireSlowAndWarned(t *testing.T, open func(*testing.T, *reconnect.Options) *reconnect.Conn) {
	t.Helper()
	var classes []backoff.Class
	var log bytes.Buffer
	trace := reconnect.Log(scene.Logger(&log))
	logWait := trace.WaitStart
	trace.WaitStart = func(w reconnect.WaitStart) {
		classes = append(classes, w.Verdict.Class)
		logWait(w)
	}
	c := open(t, &reconnect.Options{
		Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard},
		Run:   reconnect.RunOptions{Trace: trace},
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

	waits := 0
	for _, line := range scene.Lines(&log) {
		if !strings.Contains(line, `msg="waiting to redial"`) {
			require.NotContains(t, line, "level=WARN")
			continue
		}
		want, verdict := "level=WARN", "verdict=slow"
		if waits++; waits == 1 {
			want, verdict = "level=INFO", "verdict=retry"
		}
		require.Contains(t, line, want)
		require.Contains(t, line, verdict)
		require.Contains(t, line, "4096")
	}
	require.Greater(t, waits, 3, "the second, the fourth and so on of equal lines")
}
