package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain runs the program itself if a test has started this process as the program.
func TestMain(m *testing.M) {
	if os.Getenv("LINES_TEST_MAIN") != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// program is one that a user has started.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   chan string // lines; closed at its end
	mu    sync.Mutex  // guards notes
	notes bytes.Buffer
}

func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.notes.Write(b)
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(os.Args[0], args...), out: make(chan string, 100)}
	p.cmd.Env = append(os.Environ(), "LINES_TEST_MAIN=1")
	p.cmd.Stderr = p
	var err error
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.out)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.out <- s.Text()
		}
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-read
		p.cmd.Wait()
	})
	return p
}

func (p *program) enter(lines ...string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n")
	require.NoError(p.t, err)
}

func (p *program) wantLines(want ...string) {
	p.t.Helper()
	for _, w := range want {
		select {
		case got, ok := <-p.out:
			require.True(p.t, ok, "it has ended; wanted %q; notes: %s", w, p.noted())
			require.Equal(p.t, w, got)
		case <-time.After(time.Minute):
			p.t.Fatalf("no %q within a minute; notes: %s", w, p.noted())
		}
	}
}

func (p *program) noted() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.notes.String()
}

func (p *program) wantNote(part string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.noted(), part) }, time.Minute, time.Millisecond, part)
}

// wantExit waits for the end.
func (p *program) wantExit(code int) {
	p.t.Helper()
	for range p.out {
	}
	p.cmd.Wait()
	require.Equal(p.t, code, p.cmd.ProcessState.ExitCode(), p.noted())
}

// kill ends it as a crash would.
func (p *program) kill() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Kill())
	p.wantExit(-1)
}

// freeAddr is an address at which nobody listens.
func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func serving(t *testing.T, addr string) *program {
	p := start(t, "serve", "-addr", addr)
	p.wantLines("listening on " + addr)
	return p
}

func TestTypedLinesWaitForTheServer(t *testing.T) {
	addr := freeAddr(t)
	server := serving(t, addr)
	client := start(t, "talk", "-addr", addr)
	client.wantNote("-- connected\n")
	client.enter("one")
	client.wantLines("one")

	server.kill()
	client.wantNote("-- away: ")
	client.enter("two", "three")
	serving(t, addr)
	client.wantLines("two", "three")
	client.enter("four")
	client.in.Close()
	client.wantLines("four")
	client.wantExit(0)
}

// A pipe may end before the server is there for the first time.
func TestTheEndOfTheInputWaitsForTheAnswers(t *testing.T) {
	addr := freeAddr(t)
	client := start(t, "talk", "-addr", addr)
	client.enter("one", "two")
	client.wantNote("next try in")
	client.in.Close()
	serving(t, addr)
	client.wantLines("one", "two")
	client.wantExit(0)
}

func TestLinesThatWereNotSentAreShown(t *testing.T) {
	client := start(t, "talk", "-addr", freeAddr(t))
	client.enter("one", strings.Repeat("x", maxLine+1))
	client.wantNote("next try in")
	require.NoError(t, client.cmd.Process.Signal(os.Interrupt))
	client.wantExit(1)
	require.Contains(t, client.noted(), `-- not sent: "one": `)
	require.Contains(t, client.noted(), "2 messages were not sent")
}

// The connection survives a line that is too long to send.
func TestALineThatIsTooLongIsRefusedWithAReason(t *testing.T) {
	addr := freeAddr(t)
	serving(t, addr)
	client := start(t, "talk", "-addr", addr)
	client.enter(strings.Repeat("x", maxLine+1), "after")
	client.wantLines("after")
	client.wantNote("-- not sent: \"xxx")
	client.in.Close()
	client.wantExit(0)
}

func TestGetWaitsForTheServer(t *testing.T) {
	addr := freeAddr(t)
	client := start(t, "get", "http://"+addr+"/")
	client.wantNote("next try in")
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	server := &httptest.Server{
		Listener: l,
		Config:   &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello\n") })},
	}
	server.Start()
	defer server.Close()
	client.wantLines("hello")
	client.wantExit(0)
}

func TestGetGivesUp(t *testing.T) {
	client := start(t, "get", "-for", "1ms", "http://"+freeAddr(t)+"/")
	client.wantExit(1)
	require.Contains(t, client.noted(), ": gave up after ") // and why, if 1 ms was enough for an answer
}

func TestAnInterruptEndsEveryCommand(t *testing.T) {
	addr := freeAddr(t)
	for _, p := range []*program{serving(t, addr), start(t, "talk", "-addr", addr), start(t, "get", "http://"+freeAddr(t)+"/")} {
		switch p.cmd.Args[1] {
		case "talk":
			p.wantNote("-- ")
		case "get":
			p.wantNote("next try in")
		}
		require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
		p.wantExit(map[string]int{"serve": 0, "talk": 0, "get": 1}[p.cmd.Args[1]])
	}
}

func TestWrongUsageIsAnError(t *testing.T) {
	for _, args := range [][]string{{}, {"sing"}, {"talk", "-x"}, {"get"}, {"serve", "extra"}} {
		p := start(t, args...)
		p.wantExit(2)
		require.Contains(t, strings.ToLower(p.noted()), "usage")
	}
	p := start(t, "talk", "-addr", "nowhere")
	p.wantExit(1)
	require.Contains(t, p.noted(), "Address")
	p = start(t, "serve", "-addr", "127.0.0.1:x")
	p.wantExit(1)
}

func TestHelpIsNoError(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"help"}, {"talk", "-h"}} {
		p := start(t, args...)
		p.wantExit(0)
		require.Contains(t, strings.ToLower(p.noted()), "usage")
	}
}
