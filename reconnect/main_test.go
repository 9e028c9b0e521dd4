package reconnect_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/conn/conntest"
)

// Promise 11, for every test of the package. With peerEnv set, the test binary is a server
// instead.
func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) != "" {
		servePeer()
		return
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		os.Unsetenv(name) // because the tests must not use the proxy of this machine
	}
	goleak.VerifyTestMain(m)
}

// peerEnv makes the test binary a WebSocket server on loopback, in a process of its own, so
// that its work and memory do not count as ours.
const peerEnv = "REDIAL_BENCH_PEER"

// servePeer sends as many messages of a size as the request's query asks for, and
// then reads until the client leaves; with "echo" in the query it sends back what it
// reads. It ends when its standard input does.
func servePeer() {
	// The parent process reads the address.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	// Each request finds its net.Conn in its context.
	type raw struct{}
	s := &http.Server{ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, raw{}, c) }}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		var size, count int
		fmt.Sscan(r.URL.Query().Get("size"), &size)
		fmt.Sscan(r.URL.Query().Get("count"), &count)
		send(r.Context().Value(raw{}).(net.Conn), size, count)
		for err == nil {
			var kind websocket.MessageType
			var data []byte
			if kind, data, err = c.Read(context.Background()); err == nil && r.URL.Query().Has("echo") {
				err = c.Write(context.Background(), kind, data)
			}
		}
	})
	// Serve until standard input ends.
	go s.Serve(l)
	io.Copy(io.Discard, os.Stdin)
}

// send writes messages in bursts of up to 64 KiB, as a busy feed does.
func send(c net.Conn, size, count int) {
	frame := conntest.Frame{Head: conntest.Fin | 0x2, Payload: make([]byte, size)}.Bytes()
	burst := bytes.Repeat(frame, 1+(64<<10)/len(frame))
	for left := count * len(frame); left > 0; left -= len(burst) {
		if _, err := c.Write(burst[:min(left, len(burst))]); err != nil {
			return
		}
	}
}

// startPeer returns the URL of a server process that ends with the test or benchmark.
func startPeer(t testing.TB) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), peerEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	addr, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return "ws://" + strings.TrimSpace(addr)
}
