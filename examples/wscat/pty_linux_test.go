package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/program"
)

// The screen writes these before and after a row that it inserts.
const (
	above = "\x1bD\x1b[A\x1b7\r\x1b[L"
	below = "\x1b8\x1b[B"
)

func TestOnATerminalThePromptIsTheStateAndEachLineGetsItsFate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := program.StartOnTerminal(t, s.url("/echo"))
	p.Await("             ready > ")
	p.Type("hello")
	p.Await(above + `-- written by session 1: "hello"` + below)
	p.Await(above + "< hello" + below)
	s.kill()
	p.Await(above + "-- messages may be missing here: session 1 has ended" + below)
	p.Find(`\x1b7\r +next try in \d+ s > \x1b8`)
	p.Type("kept")
	p.Await(above + `-- kept until there is a connection: "kept"` + below)
	s.start()
	p.Type("") // dials at once
	p.Await(above + "< kept" + below)
	p.Await(above + `-- written by session 2: "kept"` + below)
	p.Press(program.CtrlD)
	require.Zero(t, p.ExitCode())
	require.Contains(t, p.String(), "-- 2 written")
}

func TestATerminalGetsNoControlSequencesOfTheServer(t *testing.T) {
	t.Parallel()
	escaped := `\x1b]0;title\a\x1b[2J\u009b31m\u202e-- ready\nnext: 王 é \xff`
	p := program.StartOnTerminal(t, newServer(t).url("/wild"))
	p.Await("binary, ")
	p.Press(program.CtrlD)
	require.Zero(t, p.ExitCode())
	require.Contains(t, p.String(), above+"< "+escaped[:30])
	require.Contains(t, p.String(), above+"< binary, 3 bytes: 0001ff")
	require.NotContains(t, p.String(), "\x1b]0;")
	require.NotContains(t, p.String(), "\x1b[2J")
	require.NotContains(t, p.String(), "\u009b")
}

func TestALongMessageIsCutOnATerminal(t *testing.T) {
	t.Parallel()
	p := program.StartOnTerminal(t, newServer(t).url("/large"))
	p.Await("(10000 bytes in all)")
	p.Press(program.CtrlC)
	require.Zero(t, p.ExitCode())
	require.Less(t, strings.Count(p.String(), "01234567"), 500)
}

func TestRowsAreAsWideAsTheTerminalIsNow(t *testing.T) {
	t.Parallel()
	p := program.StartOnTerminal(t, newServer(t).url("/echo"))
	p.Await("ready > ")
	p.Resize(30)
	p.Type("12345678 12345678 12345678 x")
	p.Await(above + "< 12345678 12345678 12345678" + below)
	p.Resize(90)
	p.Type("12345678 12345678 12345678 y")
	p.Await(above + "< 12345678 12345678 12345678 y" + below)
	p.Press(program.CtrlC)
	require.Zero(t, p.ExitCode())
}

func TestCtrlCNamesWhatWasNotSent(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := program.StartOnTerminal(t, s.url("/echo"))
	p.Await("ready > ")
	s.kill()
	p.Find(`next try in \d+ s > `)
	p.Type("lost")
	p.Await(`-- kept until there is a connection: "lost"`) // Ctrl-C makes a terminal discard what is not read
	p.Press("half a li")
	p.Press(program.CtrlC)
	require.Equal(t, codeUnsent, p.ExitCode())
	require.Contains(t, p.String(), `-- not sent: the end came first: "lost"`)
	require.Contains(t, p.String(), "wscat: 1 of 1 message not written\r\n")
}

// If the server has asked for a longer wait, no connection can come in time.
func TestCtrlCDoesNotWaitForAConnectionThatCannotCome(t *testing.T) {
	t.Parallel()
	p := program.StartOnTerminal(t, newServer(t).url("/503"))
	p.Await("(the server asked for 7 s)")
	p.Type("lost")
	p.Await(`-- kept until there is a connection: "lost"`)
	p.Press(program.CtrlC)
	require.Equal(t, codeUnreachable, p.ExitCode())
	require.NotContains(t, p.String(), "leaving within")
}

func TestJSONOnATerminalGoesAboveThePrompt(t *testing.T) {
	t.Parallel()
	p := program.StartOnTerminal(t, "-json", newServer(t).url("/echo"))
	p.Await("ready > ")
	p.Resize(200)
	p.Type("hello")
	p.Find(`\x1b\[L{"time":"[^"]*","event":"message","session":1,"text":"hello"}\x1b8`)
	p.Press(program.CtrlD)
	require.Zero(t, p.ExitCode())
}

func TestTheAnswersMayGoToAFileWhileAUserTypes(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/out"
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	p := program.StartOnTerminalWith(t, func(p *program.Program) { p.Cmd.Stdout = file }, newServer(t).url("/wild"))
	p.Await("ready > ")
	p.Type("hello")
	p.Await(`-- written by session 1: "hello"`)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(path)
		return err == nil && string(text) == wild+"\n0001ff\nhello\n"
	}, time.Minute, 10*time.Millisecond)
	p.Press(program.CtrlD)
	require.Zero(t, p.ExitCode())
	require.NotContains(t, p.String(), "title")
}

// Nothing can end a write to a pipe that nobody reads, so the program must not wait for it.
func TestAnInterruptEndsAlsoAWriteThatNobodyReads(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	fill(t, w)
	received := make(chan error, 1)
	s := newServerOf(t, func(ctx context.Context, ws *websocket.Conn) {
		ctx = ws.CloseRead(ctx)
		ws.Write(ctx, websocket.MessageText, []byte("hello"))
		received <- ws.Ping(ctx) // the answer comes when the message was received
		<-ctx.Done()
	})
	p := program.StartWith(t, func(p *program.Program) { p.Cmd.Stdout, p.Cmd.Stderr = w, p }, s.url("/own"))
	require.NoError(t, w.Close())
	require.NoError(t, <-received)
	p.Interrupt()
	require.Equal(t, codeOutput, p.ExitCode())
	require.Contains(t, p.String(), "wscat: nobody reads standard output: what came last is not shown\n")
}

// Standard output is not read, so that the first interrupt alone takes endLimit.
func TestASecondInterruptEndsItAtOnce(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	fill(t, w)
	accepted := make(chan struct{}, 1)
	s := newServerOf(t, func(ctx context.Context, ws *websocket.Conn) {
		accepted <- struct{}{}
		<-ws.CloseRead(ctx).Done()
	})
	p := program.StartWith(t, func(p *program.Program) { p.Cmd.Stdout, p.Cmd.Stderr = w, p }, "-json", s.url("/own"))
	require.NoError(t, w.Close())
	<-accepted
	p.Interrupt()
	for range 200 { // the second may come before the program is ready for it
		p.Interrupt()
		select {
		case <-p.Ended():
		case <-time.After(5 * time.Millisecond):
		}
	}
	require.Equal(t, -1, p.ExitCode(), "the signal has ended it")
}

// With -json there is always an end to write, whether there was a connection or not.
func TestTheTimeOfForEndsAlsoAWriteThatNobodyReads(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	fill(t, w)
	p := program.StartWith(t, func(p *program.Program) { p.Cmd.Stdout, p.Cmd.Stderr = w, p },
		"-for", "10ms", "-json", newServer(t).url("/echo"))
	require.NoError(t, w.Close())
	require.Equal(t, codeOutput, p.ExitCode())
	require.Contains(t, p.String(), "wscat: nobody reads standard output: what came last is not shown\n")
}

func TestASlowReaderGetsAllAfterTheEndOfTheInput(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	fill(t, w)
	received, closed := make(chan error, 1), make(chan struct{})
	s := newServerOf(t, func(ctx context.Context, ws *websocket.Conn) {
		defer close(closed)
		ctx = ws.CloseRead(ctx)
		ws.Write(ctx, websocket.MessageText, []byte("hello"))
		received <- ws.Ping(ctx)
		<-ctx.Done()
	})
	p := program.StartWith(t, func(p *program.Program) {
		in, err := p.Cmd.StdinPipe()
		require.NoError(t, err)
		p.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = in, w, p
	}, "-q", "0s", s.url("/own"))
	require.NoError(t, w.Close())
	require.NoError(t, <-received)
	p.CloseInput()
	<-closed
	shown, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "hello\n", strings.TrimLeft(string(shown), "\x00"))
	require.Zero(t, p.ExitCode())
}

// fill writes to a pipe until there is no room.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	raw, err := w.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Write(func(fd uintptr) bool {
		for {
			if _, err := syscall.Write(int(fd), make([]byte, 1024)); errors.Is(err, syscall.EAGAIN) {
				return true
			}
		}
	}))
}
