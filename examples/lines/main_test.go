package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/program"
)

func TestMain(m *testing.M) {
	program.Main(m, func() int { main(); return 0 })
}

// running is the program. Its standard output is in lines, and its standard error in Output.
type running struct {
	*program.Program
	lines *program.Output
	want  string // the lines that the test has waited for
}

func start(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{}
	r.Program = program.StartWith(t, func(p *program.Program) {
		in, err := p.Cmd.StdinPipe()
		require.NoError(t, err)
		r.lines = p.NewOutput()
		p.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = in, r.lines, p
	}, args...)
	return r
}

// wantLines waits for the next lines of the standard output.
func (r *running) wantLines(want ...string) {
	for _, line := range want {
		r.want += line + "\n"
		r.lines.Find("^" + regexp.QuoteMeta(r.want))
	}
}

// freeAddr returns an address without a listener.
func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func serving(t *testing.T, addr string) *running {
	p := start(t, "serve", "-addr", addr)
	p.wantLines("listening on " + addr)
	return p
}

func TestTypedLinesWaitForTheServer(t *testing.T) {
	addr := freeAddr(t)
	server := serving(t, addr)
	client := start(t, "talk", "-addr", addr)
	client.Await("-- connected\n")
	client.Type("one")
	client.wantLines("one")

	server.Kill()
	client.Await("-- away: ")
	client.Type("two", "three")
	serving(t, addr)
	client.wantLines("two", "three")
	client.Type("four")
	client.CloseInput()
	client.wantLines("four")
	require.Equal(t, 0, client.ExitCode())
}

// A pipe may end before the server is there for the first time.
func TestTheEndOfTheInputWaitsForTheAnswers(t *testing.T) {
	addr := freeAddr(t)
	client := start(t, "talk", "-addr", addr)
	client.Type("one", "two")
	client.Await("next try in")
	client.CloseInput()
	serving(t, addr)
	client.wantLines("one", "two")
	require.Equal(t, 0, client.ExitCode())
}

func TestLinesThatWereNotSentAreShown(t *testing.T) {
	client := start(t, "talk", "-addr", freeAddr(t))
	client.Type("one", strings.Repeat("x", maxLine+1))
	client.Await("next try in")
	client.Interrupt()
	require.Equal(t, 1, client.ExitCode())
	require.Contains(t, client.String(), `-- not sent: "one": `)
	require.Contains(t, client.String(), "2 messages were not sent")
}

// The connection survives a line that is too long to send.
func TestALineThatIsTooLongIsRefusedWithAReason(t *testing.T) {
	addr := freeAddr(t)
	serving(t, addr)
	client := start(t, "talk", "-addr", addr)
	client.Type(strings.Repeat("x", maxLine+1), "after")
	client.wantLines("after")
	client.Await("-- not sent: \"xxx")
	client.CloseInput()
	require.Equal(t, 0, client.ExitCode())
}

func TestGetWaitsForTheServer(t *testing.T) {
	addr := freeAddr(t)
	client := start(t, "get", "http://"+addr+"/")
	client.Await("next try in")
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	server := &httptest.Server{
		Listener: l,
		Config:   &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello\n") })},
	}
	server.Start()
	defer server.Close()
	client.wantLines("hello")
	require.Equal(t, 0, client.ExitCode())
}

func TestGetGivesUp(t *testing.T) {
	client := start(t, "get", "-for", "1ms", "http://"+freeAddr(t)+"/")
	require.Equal(t, 1, client.ExitCode())
	require.Contains(t, client.String(), ": gave up after ") // and why, if 1 ms was enough for an answer
}

func TestAnInterruptEndsEveryCommand(t *testing.T) {
	addr := freeAddr(t)
	for _, p := range []*running{serving(t, addr), start(t, "talk", "-addr", addr), start(t, "get", "http://"+freeAddr(t)+"/")} {
		switch p.Cmd.Args[1] {
		case "talk":
			p.Await("-- ")
		case "get":
			p.Await("next try in")
		}
		p.Interrupt()
		require.Equal(t, map[string]int{"serve": 0, "talk": 0, "get": 1}[p.Cmd.Args[1]], p.ExitCode())
	}
}

func TestWrongUsageIsAnError(t *testing.T) {
	for _, c := range []struct{ args, said string }{
		{"", ""},
		{"sing", `lines: there is no command "sing"`},
		{"talk -x", "flag provided but not defined: -x"},
		{"get", "lines get: the URL is missing"},
		{"serve extra", `lines serve: unexpected arguments ["extra"]`},
	} {
		p := start(t, strings.Fields(c.args)...)
		require.Equal(t, 2, p.ExitCode())
		require.Contains(t, p.String(), c.said)
		require.Contains(t, strings.ToLower(p.String()), "usage")
	}
	p := start(t, "talk", "-addr", "nowhere")
	require.Equal(t, 1, p.ExitCode())
	require.Contains(t, p.String(), "Address")
	p = start(t, "serve", "-addr", "127.0.0.1:x")
	require.Equal(t, 1, p.ExitCode())
}

func TestHelpIsNoError(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"help"}, {"talk", "-h"}} {
		p := start(t, args...)
		require.Equal(t, 0, p.ExitCode())
		require.Contains(t, strings.ToLower(p.String()), "usage")
	}
}
