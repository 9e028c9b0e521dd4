//go:build linux

package recipes_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/program"
)

// garbage is what no server of these protocols means, and what some clients may take for a message of theirs.
var garbage = []string{
	`not json`, `[]`, `{}`, `null`, `[null]`, `[1,2]`, `[[[[`, ``, "\x00",
	`{"id":1}`, `{"type":"error"}`, `{"type":"next","id":7}`, // GraphQL
	`42[]`, `42{`, `40`, `41`, `44`, `4`, // Socket.IO
	`[3]`, `[4,"x"]`, `[2,"a","B",{}]`, // OCPP
	`{"id":"1","result":"0x1"}`,                      // JSON-RPC
	`{"id":1,"subscribe":{"epoch":"e","offset":-1}}`, // Centrifugo
	`{"push":{"pub":{"offset":1e99}}}`,
	`{"Op":"run","ID":-1}`, `{"Op":"run"}`, // agent
	`{"type":"goAway","timeLeft":-9223372036854775808}`, `{"type":"goAway"}`, // voice
	`{"book":"","seq":1}`, `{"book":"BTC","type":"update","bids":[[1]]}`, // the books
}

// raw are the programs that speak TCP without WebSocket.
var raw = map[string]bool{"amqp": true, "lines": true, "nats": true, "natsgo": true, "postgres": true}

// echoes are the programs that print any message, or to which one of garbage is a message ("40" begins a
// session of Socket.IO), and jsonrpc, which prints the mark of a session that was ready for a moment.
var echoes = map[string]bool{"lines": true, "wscat": true, "chat": true, "socketio": true, "jsonrpc": true}

// serveRaw calls f with each TCP connection, which ends when f returns.
func serveRaw(t *testing.T, f func(c net.Conn, n int)) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go func() { // ends with the connection, which the cleanup closes
				defer c.Close()
				f(c, n)
			}()
		}
	}()
	return l.Addr().String()
}

// sound requires that a program with a misbehaving server has not crashed, and has printed nothing. If it
// has ended, it says why, with a code. Otherwise it ends by Ctrl-C.
func sound(t *testing.T, name string, p *program.Program) {
	t.Helper()
	select {
	case <-p.Ended():
		require.Positive(t, p.ExitCode(), p)
		require.NotEqual(t, 2, p.ExitCode(), "a crash: %s", p)
		require.NotEmpty(t, p.String())
	default:
		codes := []int{0, 1, 3}
		interrupt(t, p, codes...)
	}
	require.NotContains(t, p.String(), "goroutine ")
	require.NotContains(t, p.String(), "panic")
	if !echoes[name] {
		require.Empty(t, p.Out.String())
	}
}

func TestAServerThatIsAway(t *testing.T) {
	for name, args := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			require.NoError(t, l.Close())
			p := start(t, name, args(t, l.Addr().String())...)
			switch name {
			case "chat":
				p.Out.Await("connection refused")
				interrupt(t, p, 0)
				return
			default:
				p.Await("connection refused")
			}
			sound(t, name, p)
		})
	}
}

func TestAServerThatHangsUp(t *testing.T) {
	for name, args := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again := make(chan struct{}, 100)
			address := serveRaw(t, func(c net.Conn, n int) {
				if n == 3 {
					close(again)
				}
			})
			p := start(t, name, args(t, address)...)
			select {
			case <-again: // the third connection
			case <-p.Ended():
			}
			sound(t, name, p)
		})
	}
}

// Each connection sends all garbage, each time another piece of it first.
func TestAServerThatSendsGarbage(t *testing.T) {
	for name, args := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again := make(chan struct{})
			address := ""
			if raw[name] {
				address = serveRaw(t, func(c net.Conn, n int) {
					if n == 2 {
						close(again)
					}
					io.WriteString(c, garbage[n%len(garbage)]+"\r\n"+strings.Join(garbage, "\r\n")+"\r\n")
					c.(*net.TCPConn).CloseWrite()
					c.SetReadDeadline(time.Now().Add(time.Second)) // so that a reset drops nothing of it
					io.Copy(io.Discard, c)
				})
			} else {
				address = strings.TrimPrefix(serveWebSocket(t, func(ctx context.Context, c *websocket.Conn, n int) {
					if n == 2 {
						close(again)
					}
					at := n * 7 % len(garbage)
					if send(ctx, c, append(garbage[at:len(garbage):len(garbage)], garbage[:at]...)...) == nil {
						c.Close(websocket.StatusInternalError, "")
					}
				}), "ws://")
			}
			p := start(t, name, args(t, address)...)
			select {
			case <-again:
			case <-p.Ended():
			}
			sound(t, name, p)
		})
	}
}
