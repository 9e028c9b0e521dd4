//go:build !js

package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/examples/internal/program"
)

// The program must leave no goroutine but the one that reads the input (promise 11 of package
// reconnect).
func TestMain(m *testing.M) {
	program.Main(m, example.Main, goleak.IgnoreAnyFunction("github.com/redial-go/redial/examples/internal/terminal.(*Input).read"))
}

func TestWrongArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, message string }{
		{"", "usage: chat serve"},
		{"leave", "chat: there is no command \"leave\"\nchat: see chat -h"},
		{"join -bogus", "flag provided but not defined: -bogus"},
		{"serve 127.0.0.1:8000", `unexpected arguments ["127.0.0.1:8000"]`},
		{"join -url http://chat.example", "-url: dialer: WebSocket.URL: scheme must be ws or wss, not http"},
		{"join -url ws://me:hush@[::1", "malformed URL"},
		{"join -name =:)", "-name: a name must not contain '='"},
		{"join -name " + strings.Repeat("x", 25), "-name: a name has 1 to 24 letters"},
		{"join -keep -1s", "-keep: must be longer than 0, not -1s"},
	} {
		p := program.Start(t, strings.Fields(c.args)...)
		require.Equal(t, 2, p.ExitCode(), c.args)
		require.Contains(t, p.String(), c.message)
		require.NotContains(t, p.String(), "hush", "no secret is printed")
	}
}

func TestHelpIsNoError(t *testing.T) {
	t.Parallel()
	for args, said := range map[string]string{"-h": "usage: chat serve", "help": "usage: chat serve", "join -h": "  -keep ", "serve -h": "  -log "} {
		p := program.StartFilter(t, strings.Fields(args)...)
		require.Zero(t, p.ExitCode(), args)
		require.Contains(t, p.Out.String(), said)
		require.Empty(t, p.String(), args)
	}
}

func TestAFullDiskIsAFailure(t *testing.T) {
	t.Parallel()
	_, addr := serveIt(t, "")
	p := program.StartWith(t, program.FullDisk(t), "join", "-url", "ws://"+addr+"/")
	require.Equal(t, 4, p.ExitCode())
	require.Contains(t, p.String(), "chat join: standard output: write /dev/stdout: "+syscall.ENOSPC.Error()+"\n")
}

func TestAUsedPortIsAnErrorOfOneLine(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	p := program.Start(t, "serve", "-addr", l.Addr().String())
	require.Equal(t, 1, p.ExitCode())
	require.Regexp(t, `^chat serve: listen tcp 127\.0\.0\.1:\d+: .*\n$`, p.String())
	require.Equal(t, 1, strings.Count(p.String(), "\n"))
}

func TestALogThatIsSomethingElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "diary")
	for content, message := range map[string]string{
		"Dear diary,":               "it is not a chat log",
		"Dear diary,\n":             "it is not a chat log",
		`{"type":"line"}` + "\n":    "it is not a chat log",
		`{"type":"ack"}` + "\n":     "it is not a chat log",
		`{"type":"welcome"}` + "\n": "line 1: message \"welcome\": the room is missing",
		`{"type":"welcome","room":"r"}` + "\n" + `{"type":"ack"}` + "\n": `line 2: "ack" 0 follows line 0 of the room`,
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		p := program.Start(t, "serve", "-addr", "127.0.0.1:0", "-log", path)
		require.Equal(t, 1, p.ExitCode())
		require.Contains(t, p.String(), message)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content, string(after))
	}
}

func TestAServerThatIsGoneForGoodIsAFailure(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGone)
	}))
	defer gone.Close()
	p := program.Start(t, "join", "-url", "ws"+strings.TrimPrefix(gone.URL, "http"))
	require.Equal(t, 1, p.ExitCode())
	require.Regexp(t, `(?m)^chat join: ended for good: dial .*410 Gone$`, p.String())
}
