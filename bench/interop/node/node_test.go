//go:build linux

package node_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// newPeer builds the program, and returns a function that runs it in Node and returns its output.
func newPeer(t *testing.T) func(url string) string {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no Node on this machine")
	}
	file := filepath.Join(t.TempDir(), "peer.wasm")
	build := exec.Command("go", "build", "-o", file, "./peer")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	script := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec_node.js")
	return func(url string) string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		// Node 20 needs the flag, and later versions take it. The environment must be short for wasm_exec.js.
		run := exec.CommandContext(ctx, node, "--no-warnings", "--experimental-websocket", script, file, url)
		run.Env = []string{"PATH=" + os.Getenv("PATH")}
		out, err := run.CombinedOutput()
		require.NoError(t, err, string(out))
		require.NotContains(t, string(out), "there is no WebSocket")
		return string(out)
	}
}

// A connection leaves no event handler: not if its dial is cut before it is open, for which Node 20
// reports no close, nor if the dial fails, nor after its end.
func TestNoHandlerIsLeft(t *testing.T) {
	peer := newPeer(t)
	mute, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and no one answers
	require.NoError(t, err)
	defer mute.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := websocket.Accept(w, r, nil); err == nil {
			_, _, _ = c.Read(r.Context()) // until it is closed
		}
	}))
	defer server.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0") // after the others, which might get its port
	require.NoError(t, err)
	require.NoError(t, gone.Close())

	require.Equal(t, "not open: context deadline exceeded\nhandlers left: 0\n", peer("ws://"+mute.Addr().String()))
	refused := peer("ws://" + gone.Addr().String())
	require.Contains(t, refused, "not open: the handshake has failed")
	require.Contains(t, refused, "handlers left: 0\n")
	require.Equal(t, "open, with handlers: 3\nclosed: <nil>\nhandlers left: 0\n",
		peer("ws"+strings.TrimPrefix(server.URL, "http")))
}
