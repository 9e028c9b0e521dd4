package live_test

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// acceptRaw makes the WebSocket handshake of a server by hand.
func acceptRaw(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := l.Accept()
	require.NoError(t, err)
	r, err := http.ReadRequest(bufio.NewReader(c))
	require.NoError(t, err)
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	_, err = fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	require.NoError(t, err)
	return c
}

// Promises 8 and 9, on real sockets: a client is busy, or its process is stopped, while the server sends messages,
// pings, a close frame with an advice, and closes the connection. Then the client's writes fail before it reads on.
func TestFailedWriteLosesNothingThatHasCome(t *testing.T) {
	const reason = "redial/1 wait=30s"
	end := strings.Repeat("\x81\x02m1\x89\x01x", 30) + string([]byte{0x88, byte(2 + len(reason)), 0x03, 0xf4}) + reason
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	busy, quiet := make(chan struct{}), make(chan struct{})
	messages, waits := 0, make(chan reconnect.WaitStart, 1)
	o := &reconnect.Options{OnMessage: func(context.Context, reconnect.Message) {
		if messages++; messages == 1 {
			close(busy)
			<-quiet
		}
		time.Sleep(10 * time.Millisecond)
	}}
	o.Run.Trace = &reconnect.Trace{WaitStart: func(w reconnect.WaitStart) {
		select {
		case waits <- w:
		default:
		}
	}}
	c, err := reconnect.New(&dialer.WebSocket{URL: "ws://" + l.Addr().String()}, o)
	require.NoError(t, err)
	defer scene.CloseAndWait(c)
	server := acceptRaw(t, l)
	_, err = io.WriteString(server, "\x81\x05first")
	require.NoError(t, err)
	<-busy
	_, err = io.WriteString(server, end)
	require.NoError(t, err)
	require.NoError(t, server.Close())
	for err == nil { // the first is answered by a reset
		err = c.Write(t.Context(), conn.TextMessage("x"))
	}
	close(quiet)
	w := <-waits
	require.Equal(t, 1+30, messages)
	require.Equal(t, 30*time.Second, w.Verdict.RetryAfter)
	closed := new(conn.CloseError)
	require.ErrorAs(t, w.Cause, &closed)
	require.Equal(t, 1012, closed.Code)
}
