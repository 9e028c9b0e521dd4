//go:build !js

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain is the program itself when the tests start it, so that it is built with
// them, and with the race detector if they are. It must leave nothing (promise 11).
func TestMain(m *testing.M) {
	if os.Getenv("MARKETDATA_PROGRAM") == "" {
		goleak.VerifyTestMain(m)
		return
	}
	code := run(os.Args[1:], os.Stdout, os.Stderr)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 70
	}
	os.Exit(code)
}

func TestTheClientSurvivesEveryMisbehaviour(t *testing.T) {
	t.Parallel()
	p := start(t)
	require.Zero(t, p.exitCode(), p)
	out := p.String()
	for _, f := range []fault{killed, silent, restarts, busy, drops, shouts, skips} {
		require.Regexp(t, `(?m)^ +\d+\.\d{3}s  VENUE +`+regexp.QuoteMeta(string(f))+`$`, out)
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(string(f))+` +survived +\S+ +\d x `, out)
	}
	require.Regexp(t, `(?m)^ +session +downtime +ready +messages +gaps +missed +resyncs +ended by$`, out)
	require.Regexp(t, `(?m)waiting +1s as the server asks, then \S+ before attempt \d \(overload\)$`, out)
	require.Contains(t, out, "\nok: all 7 survived, the book equals the venue's, no message of an old session was applied\n")
	require.NotContains(t, out, "\x1b", "it is no terminal")
}

func TestAnInterruptedDrillFailsAndShowsTheTables(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.await("VENUE")
	p.interrupt()
	require.Equal(t, 1, p.exitCode(), p)
	require.Contains(t, p.String(), "ended by")
	require.Contains(t, p.String(), "not tried")
	require.Regexp(t, `\ninterrupted after \d of 7\n$`, p.String())
}

func TestARealFeedIsFollowedUntilInterrupted(t *testing.T) {
	t.Parallel()
	f := openFeed(t, !deaf)
	p := start(t, "-url", f.url+"/v1?token=hush", "-subscribe", `{"op":"all"}`)
	require.Equal(t, `{"op":"all"}`, <-f.asked)
	p.await("session 1: 3 msg (")
	f.next <- websocket.StatusServiceRestart
	require.Equal(t, `{"op":"all"}`, <-f.asked, "on each connection")
	p.await("session 2, after")
	p.interrupt()
	require.Zero(t, p.exitCode(), p)
	out := p.String()
	require.Contains(t, out, `closed by the peer: 1012 "so long"`)
	require.Regexp(t, `(?m)^ +\d+\.\d{3}s  ready +session 1: 3 msg \(\d+/s\), 33 B, last \d\.\ds ago, 0 gaps$`, out)
	require.Regexp(t, `(?m)^ +1 +\S+ +\S+ +3 +1 +- +- +read: closed by the peer: 1012`, out)
	require.Regexp(t, `(?m)^ +2 +\S+ +\S+ +\d +0 +- +- +us$`, out)
	require.Regexp(t, `(?m)^ +all .* 2 sessions in \S+$`, out)
	require.NotContains(t, out, "hush") // promise 13
	require.Equal(t, websocket.StatusNormalClosure, <-f.goodbye)
}

func TestAnUnreachableServerIsTriedUntilInterrupted(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	p := start(t, "-url", "ws://"+l.Addr().String())
	p.await("before attempt 3")
	p.interrupt()
	require.Zero(t, p.exitCode(), p)
	require.Regexp(t, `(?m)failed +attempt 1: dial ws://127\.0\.0\.1:\d+: .*refused`, p.String())
	require.Regexp(t, `(?m)^ +all .* 0 sessions in \S+$`, p.String())
}

func TestAFeedThatIsGoneForGoodIsAFailure(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGone)
	}))
	defer gone.Close()
	p := start(t, "-url", "ws"+strings.TrimPrefix(gone.URL, "http"))
	require.Equal(t, 1, p.exitCode(), p)
	require.Regexp(t, `\nFAILED: closed: dial .*410 Gone\n$`, p.String())
}

func TestASecondInterruptKills(t *testing.T) {
	t.Parallel()
	f := openFeed(t, deaf)
	p := start(t, "-url", f.url)
	p.await("ready")
	p.interrupt()
	p.await("leaving") // and the peer does not answer
	for again := true; again; {
		p.interrupt() // until the program has let go of the signal
		select {
		case err := <-p.done:
			p.done <- err
			again = false
		case <-time.After(10 * time.Millisecond):
		}
	}
	require.Equal(t, -1, p.exitCode(), p)
}

func TestWrongFlagsAreTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, told string }{
		{"-bogus", "flag provided but not defined: -bogus"},
		{"wss://feed.example", `unexpected arguments ["wss://feed.example"]`},
		{"-subscribe {}", "-subscribe needs -url"},
		{"-url=", "-url: dialer: WebSocket.URL"},
		{"-url http://feed.example", "scheme must be ws or wss, not http"},
		{"-url ws://me:hush@[::1", "malformed URL"},
		{"-url ws://feed.example:99999", "port must be 1 to 65535"},
		{"-url ws://", "no host"},
	} {
		p := start(t, strings.Fields(c.args)...)
		require.Equal(t, 2, p.exitCode(), c.args)
		require.Contains(t, p.String(), c.told)
		require.NotContains(t, p.String(), "hush") // promise 13
	}
}

// program is a run of the program.
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan error

	mu      sync.Mutex // guards what follows
	out     bytes.Buffer
	changed chan struct{}
}

// start starts it. It is killed after a minute, and when the test ends.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	p := &program{t: t, cmd: exec.CommandContext(ctx, self, args...), done: make(chan error, 1), changed: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "MARKETDATA_PROGRAM=1")
	p.cmd.Stdout, p.cmd.Stderr = p, p
	require.NoError(t, p.cmd.Start())
	ended := make(chan struct{})
	go func() { // joined by the cleanup
		defer close(ended)
		p.done <- p.cmd.Wait()
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return p
}

// Write takes what the program writes.
func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
	return p.out.Write(b)
}

func (p *program) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// await waits until the program has written text.
func (p *program) await(text string) {
	p.t.Helper()
	for {
		p.mu.Lock()
		found, changed := bytes.Contains(p.out.Bytes(), []byte(text)), p.changed
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case err := <-p.done:
			p.t.Fatalf("ended (%v) before it wrote %q:\n%s", err, text, p)
		}
	}
}

func (p *program) interrupt() {
	p.t.Helper()
	if runtime.GOOS == "windows" {
		p.t.Skip("no interrupt can be sent")
	}
	if err := p.cmd.Process.Signal(syscall.SIGINT); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(p.t, err)
	}
}

func (p *program) exitCode() int {
	p.t.Helper()
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// feed is a server that the program does not know: three messages for everybody.
type feed struct {
	url     string
	asked   chan string               // the first message of each client
	next    chan websocket.StatusCode // closes a connection
	goodbye chan websocket.StatusCode // the close frame of a client
}

// hearing says whether a feed reads.
type hearing bool

const deaf hearing = false

func openFeed(t *testing.T, hears hearing) *feed {
	f := &feed{asked: make(chan string, 8), next: make(chan websocket.StatusCode), goodbye: make(chan websocket.StatusCode, 8)}
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ws, err := websocket.Accept(w, r, nil); err == nil {
			defer ws.CloseNow()
			if hears == deaf {
				<-ctx.Done()
				return
			}
			f.serve(ctx, ws)
		}
	}))
	f.url = "ws" + strings.TrimPrefix(server.URL, "http")
	t.Cleanup(func() { cancel(); server.Close() })
	return f
}

func (f *feed) serve(ctx context.Context, ws *websocket.Conn) {
	_, data, err := ws.Read(ctx)
	if err != nil {
		return
	}
	for range 3 {
		if ws.Write(ctx, websocket.MessageText, []byte(`{"price":1}`)) != nil {
			return
		}
	}
	f.asked <- string(data)
	gone := make(chan struct{})
	go func() { // joined below
		defer close(gone)
		_, _, err := ws.Read(ctx)
		f.goodbye <- websocket.CloseStatus(err)
	}()
	select {
	case code := <-f.next:
		ws.Close(code, "so long")
		<-gone
		<-f.goodbye // that was the answer
	case <-gone:
	}
}
