package conn

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// pusherVar tells this test binary to be the server of the benchmarks, in a
// process of its own so that the client's CPU can be told apart.
const pusherVar = "CONN_TEST_PUSHER"

// flood is how many control frames a pusher sends before each message, if it sends any.
const flood = 500

// pusher prints its URL and serves until its standard input ends: an endless
// stream of messages whose size is the path, or of lines of that size after
// "/lines/", or only answers to pings if the path is "/pings". With the parameter control, which is
// an opcode, the size is the size of the control frames in front of an empty message; with pause,
// the pusher waits between two messages.
func pusher() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, lines := strings.CutPrefix(r.URL.Path, "/lines")
		size, _ := strconv.Atoi(path[1:])
		if lines {
			pushLines(w, size)
			return
		}
		frames, times := frame(fin|bin, strings.Repeat("x", size)), 1+(256<<10)/max(size, 1)
		if op, _ := strconv.Atoi(r.FormValue("control")); op > 0 {
			frames, times = strings.Repeat(frame(fin|byte(op), strings.Repeat("x", size)), flood)+frame(fin|bin, ""), 1
		}
		pause, _ := time.ParseDuration(r.FormValue("pause"))
		if path == "/pings" {
			answerPings(w, r)
			return
		}
		g := &grab{ResponseWriter: w}
		if _, err := websocket.Accept(g, r, nil); err != nil {
			return
		}
		go io.Copy(io.Discard, g.conn) // ends with the connection
		chunk := bytes.Repeat([]byte(frames), times)
		for {
			if _, err := g.conn.Write(chunk); err != nil {
				return
			}
			time.Sleep(pause)
		}
	}))
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// answerPings answers pings until the client hangs up.
func answerPings(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err == nil {
		_, _, _ = ws.Read(r.Context())
		ws.CloseNow()
	}
}

func pushLines(w http.ResponseWriter, size int) {
	nc, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	chunk := bytes.Repeat([]byte(strings.Repeat("x", size)+"\n"), 1+(256<<10)/size)
	for err == nil {
		_, err = nc.Write(chunk)
	}
	nc.Close()
}

// grab keeps the connection that is hijacked.
type grab struct {
	http.ResponseWriter
	conn net.Conn
}

func (g *grab) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := g.ResponseWriter.(http.Hijacker).Hijack()
	g.conn = nc
	return nc, rw, err
}

// startPusher returns the URL of a pusher that ends with b.
func startPusher(b *testing.B) string {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), pusherVar+"=1")
	in, err := command.StdinPipe()
	require.NoError(b, err)
	out, err := command.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, command.Start())
	b.Cleanup(func() { in.Close(); _ = command.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	return strings.TrimSpace(line)
}

// dialPusher returns what a client has: ours, or coder/websocket as it is.
func dialPusher(b *testing.B, url string) (*WebSocket, *websocket.Conn) {
	plainWS, _, err := websocket.Dial(context.Background(), url, nil)
	require.NoError(b, err)
	plainWS.SetReadLimit(1 << 20)
	var wire Wire
	rt := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, addr)
		return wire.Tap(nc), err
	}}
	ws, _, err := websocket.Dial(context.Background(), url, &websocket.DialOptions{HTTPClient: &http.Client{Transport: wire.Transport(rt)}})
	require.NoError(b, err)
	ours, err := NewWebSocket(ws, &wire, nil)
	require.NoError(b, err)
	b.Cleanup(func() { ours.CloseNow(); plainWS.CloseNow(); http.DefaultClient.CloseIdleConnections() })
	return ours, plainWS
}
