//go:build !js

// Package recipes_test runs the recipes, and the other programs of examples, with peers that misbehave.
// The tests of the recipes with the real servers are in bench/interop/recipes. examples/browser is not
// among them, because its program serves a page and dials no server. Its own tests call its run function with a
// context that is canceled, an output that fails and wrong arguments; they start no process and send no
// signal. Its page is tested in bench/interop/browser.
package recipes_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/program"
)

// bin is the directory of the programs that build has built.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "recipes"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(bin)
	os.Exit(code)
}

var builds sync.Map // of func() error, by the name of the program

// build builds a program of this directory, or of examples, once, and returns its file. If both have
// one of that name, the name of that of examples begins with "../".
func build(t *testing.T, name string) string {
	t.Helper()
	base, above := strings.CutPrefix(name, "../")
	file, directory := filepath.Join(bin, base), "."
	if _, err := os.Stat(base); above || err != nil {
		file, directory = file+".example", ".."
	}
	f, _ := builds.LoadOrStore(name, sync.OnceValue(func() error {
		c := exec.Command("go", "build", "-o", file, "./"+base)
		c.Dir, c.Stderr = directory, os.Stderr
		return c.Run()
	}))
	require.NoError(t, f.(func() error)())
	return file
}

// start starts a program, whose input is a pipe. Its standard output is Out.
func start(t *testing.T, name string, args ...string) *program.Program {
	t.Helper()
	return program.StartFile(t, build(t, name), func(p *program.Program) {
		in, err := p.Cmd.StdinPipe()
		require.NoError(t, err)
		p.Out = p.NewOutput()
		p.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = in, p.Out, p
	}, args...)
}

// startFull is start with a full disk behind standard output.
func startFull(t *testing.T, name string, args ...string) *program.Program {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("/dev/full is missing: ", err)
	}
	defer full.Close()
	return program.StartFile(t, build(t, name), func(p *program.Program) {
		in, err := p.Cmd.StdinPipe()
		require.NoError(t, err)
		p.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = in, full, p
	}, args...)
}

// requireRunning fails if p has ended.
func requireRunning(t *testing.T, p *program.Program) {
	t.Helper()
	select {
	case <-p.Ended():
		t.Fatalf("the program has ended: %v\n%s", p.Cmd.ProcessState, p)
	default:
	}
}

// subprotocols are those that the recipes ask for.
var subprotocols = []string{"ocpp2.0.1", "graphql-transport-ws", "mqtt"}

// serveWebSocket calls f with each connection, which ends when f returns, and with its number from 1
// on. It returns the URL.
func serveWebSocket(t *testing.T, f func(ctx context.Context, c *websocket.Conn, n int)) string {
	var mu sync.Mutex
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: subprotocols})
		if err != nil {
			return
		}
		defer c.CloseNow()
		mu.Lock()
		n++
		number := n
		mu.Unlock()
		f(r.Context(), c, number)
	}))
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http")
}

// send sends messages, until one fails.
func send(ctx context.Context, c *websocket.Conn, texts ...string) error {
	for _, text := range texts {
		if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// drain reads until the connection has ended.
func drain(ctx context.Context, c *websocket.Conn) {
	for {
		if _, _, err := c.Read(ctx); err != nil {
			return
		}
	}
}

// linesOf returns the whole lines of text that begin with prefix.
func linesOf(text, prefix string) (list []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) && strings.HasSuffix(line, "\n") {
			list = append(list, strings.TrimSuffix(line, "\n"))
		}
	}
	return list
}
