//go:build !js

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/program"
)

func TestAPipeSendsItsLinesAndGetsTheAnswers(t *testing.T) {
	t.Parallel()
	p := program.StartFilter(t, newServer(t).url("/echo"), "-q", "0s")
	p.Type("one", "", "two, and 王 é")
	p.WantLines("one", "", "two, and 王 é")
	p.CloseInput()
	require.Zero(t, p.ExitCode())
	require.Equal(t, "-- ready: session 1\n-- 3 written\n", p.String())
}

// The answer to the last line may be late, and the input may be empty: only -q makes its end the
// end of the program.
func TestTheEndOfAPipeEndsNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := program.StartFilter(t, s.url("/echo"), "-subscribe", "hello")
	p.CloseInput()
	p.WantLines("hello")
	s.kill()
	p.Await("-- away")
	s.start()
	p.WantLines("hello")
	p.Interrupt()
	require.Zero(t, p.ExitCode())
}

func TestLinesAreKeptWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := program.StartFilter(t, s.url("/echo"), "-q", "1s")
	p.Type("before")
	p.WantLines("before")
	s.kill()
	p.Await("-- away, next try in ")
	p.Type("one", "two")
	_, err := p.Stdin.Write([]byte("half a line")) // and then the input ends
	require.NoError(t, err)
	p.CloseInput()
	s.start()
	p.WantLines("one", "two", "half a line")
	require.Zero(t, p.ExitCode())
	require.Contains(t, p.String(), "-- 4 written\n")
}

func TestWhatWasNotSentIsNamed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := program.Start(t, s.url("/echo"))
	p.Await("-- ready")
	s.kill()
	p.Await("-- away")
	p.Type("one \x1b[2J", strings.Repeat("x", 70), "\xff")
	p.Await("-- not sent: not UTF-8") // so all lines were read
	p.Interrupt()
	require.Equal(t, codeUnsent, p.ExitCode())
	require.Contains(t, p.String(), `-- not sent: the end came first: "one \x1b[2J"`+"\n")
	require.Contains(t, p.String(), `: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"... (70 bytes)`+"\n")
	require.Contains(t, p.String(), "wscat: 3 of 3 messages not written\n")
}

func TestALineThatCannotBeSentIsNamed(t *testing.T) {
	t.Parallel()
	p := program.StartFilter(t, newServer(t).url("/echo"), "-q", "0s", "-max", "20")
	p.Type("\xff", "123456789012345678901", "12345678901234567890")
	p.WantLines("12345678901234567890")
	p.CloseInput()
	require.Equal(t, codeUnsent, p.ExitCode())
	require.Contains(t, p.String(), `-- not sent: not UTF-8, as a text message must be: see -binary: "\xff"`+"\n")
	require.Contains(t, p.String(), `-- not sent: longer than -max: "123456789012345678901"`+"\n")
	require.Contains(t, p.String(), "wscat: 2 of 3 messages not written\n")
}

func TestALongLineIsOneMessage(t *testing.T) {
	t.Parallel()
	p := program.StartFilter(t, newServer(t).url("/echo"), "-q", "0s")
	long := strings.Repeat("0123456789", 50_000)
	p.Type(long)
	p.Out.Await("\n")
	p.CloseInput()
	require.Zero(t, p.ExitCode())
	require.True(t, p.Out.String() == long+"\n")
}

func TestAMessageThatIsTooLargeEndsTheConnection(t *testing.T) {
	t.Parallel()
	code, text := exits(t, "-once", "-max", "100", newServer(t).url("/large"))
	require.Equal(t, codeLost, code)
	require.Regexp(t, `wscat: lost: .*100 bytes`, text)
}

func TestBinaryMessagesAreWrittenInAForm(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for form, lines := range map[string][]string{"hex": {"0001ff", "cafe"}, "base64": {"AAH/", "yv4="}} {
		p := program.StartFilter(t, "-binary", form, "-q", "0s", s.url("/wild"))
		p.Out.Await("\n" + lines[0] + "\n")
		require.Equal(t, wild+"\n"+lines[0]+"\n", p.Out.String(), "a text is as it came")
		p.Type(lines[1], "?")
		p.Out.Await("\n" + lines[1] + "\n")
		p.CloseInput()
		require.Equal(t, codeUnsent, p.ExitCode())
		require.Contains(t, p.String(), "-- not sent: not "+form+`: "?"`+"\n")
	}
}

// A venue that sends binary messages may want a text to subscribe.
func TestASubscriptionIsATextAlsoWithBinary(t *testing.T) {
	t.Parallel()
	p := program.StartFilter(t, "-binary", "hex", "-subscribe", `{"op":"subscribe"}`, newServer(t).url("/echo"))
	p.WantLines(`{"op":"subscribe"}`) // a binary message would be in hex
	p.Type("cafe")
	p.WantLines("cafe")
	p.Interrupt()
	require.Zero(t, p.ExitCode())
}

func TestAPeerThatDoesNotReadIsNoMissingConnection(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	s := newServerOf(t, func(context.Context, *websocket.Conn) { <-over })
	t.Cleanup(func() { close(over) })
	p := program.Start(t, s.url("/own"))
	p.Await("-- ready")
	p.Type(strings.Repeat("a", 8_000_000), strings.Repeat("b", 8_000_000), "\xff")
	p.Await("-- not sent: not UTF-8") // so all lines were read
	p.Interrupt()
	require.Equal(t, codeUnsent, p.ExitCode())
	require.Regexp(t, `-- not sent: the end came first: "bbb`, p.String())
	require.NotContains(t, p.String(), "no connection")
}

func TestJSONHasEverythingInOrder(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := program.StartFilter(t, "-json", "-q", "1s", s.url("/wild"))
	p.Type("one")
	p.Out.Await(`"fate"`)
	p.Out.Await(`"message","session":1,"text":"one"}`)
	s.kill()
	p.Out.Await(`"wait"`)
	s.start()
	p.Type("two")
	p.CloseInput()
	require.Zero(t, p.ExitCode())
	require.Empty(t, p.String())
	require.NotRegexp(t, `[^ -~\n王é]`, p.Out.String())
	var got []string
	for line := range strings.Lines(p.Out.String()) {
		e := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		require.NotEmpty(t, e["time"])
		got = append(got, strings.ReplaceAll(fmt.Sprintf("%v %v %v %v", e["event"], e["session"], e["text"], e["fate"]), "<nil>", "-"))
	}
	require.Equal(t, "ready 1 - -", got[0])
	got = slices.DeleteFunc(got, func(e string) bool { return e == "wait - - -" }) // perhaps several
	for _, mine := range []string{"fate 1 one written", "fate 2 two written"} {    // beside the messages
		require.Contains(t, got, mine)
		got = slices.DeleteFunc(got, func(e string) bool { return e == mine })
	}
	require.Equal(t, []string{
		"ready 1 - -", "message 1 - -", "message 1 - -", "message 1 one -", "seam 1 - -",
		"ready 2 - -", "message 2 - -", "message 2 - -", "message 2 two -", "end - - -",
	}, got)
	require.Regexp(t, `"event":"message","session":1,"binary":true,"base64":"AAH/"}`, p.Out.String())
	require.Regexp(t, `"event":"end","code":0,"written":2,"dropped":0,"unknown":0}\n$`, p.Out.String())
}

// piped starts the program with its standard output in a pipe that the test reads.
func piped(t *testing.T, args ...string) (*program.Program, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	p := program.StartWith(t, func(p *program.Program) {
		in, err := p.Cmd.StdinPipe()
		require.NoError(t, err)
		p.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = in, w, p
	}, args...)
	require.NoError(t, w.Close())
	return p, r
}

func TestAFloodGoesThroughASlowPipeWithoutLoss(t *testing.T) {
	t.Parallel()
	p, r := piped(t, newServer(t).url("/flood"), "-once")
	lines := bufio.NewScanner(r)
	for i := range floodMessages {
		if !lines.Scan() || lines.Text() != fmt.Sprint("message ", i) {
			t.Fatalf("line %d is %q", i, lines.Text())
		}
		if i == 0 {
			p.Await("-- ready") // meanwhile nobody reads
		}
	}
	require.False(t, lines.Scan())
	require.Zero(t, p.ExitCode())
}

// The answers of the server outlast -q many times, because nobody reads them meanwhile.
func TestTheEndOfAPipeLosesNoAnswerBecauseTheReaderIsSlow(t *testing.T) {
	t.Parallel()
	s := newServerOf(t, func(ctx context.Context, ws *websocket.Conn) {
		for i := range floodMessages {
			if ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, "message %d", i)) != nil {
				return
			}
		}
	})
	p, r := piped(t, s.url("/own"), "-q", "2s")
	p.CloseInput()
	p.Await("-- ready")
	time.Sleep(3 * time.Second)
	last, lines := "", bufio.NewScanner(r)
	n := 0
	for ; lines.Scan(); n++ {
		last = lines.Text()
	}
	require.Equal(t, floodMessages, n)
	require.Equal(t, fmt.Sprint("message ", floodMessages-1), last)
	require.Zero(t, p.ExitCode())
}

func TestAReaderThatLeavesIsNoFailure(t *testing.T) {
	t.Parallel()
	p, r := piped(t, newServer(t).url("/flood"))
	line, err := bufio.NewReaderSize(r, 16).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "message 0\n", line)
	require.NoError(t, r.Close())
	require.Zero(t, p.ExitCode())
	require.Equal(t, "-- ready: session 1\n", p.String())
}

func TestAFullDiskIsAFailure(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full on this system: ", err)
	}
	defer full.Close()
	p := program.StartWith(t, func(p *program.Program) { p.Cmd.Stdout, p.Cmd.Stderr = full, p }, newServer(t).url("/wild"))
	require.Equal(t, codeOutput, p.ExitCode())
	require.Contains(t, p.String(), "wscat: standard output: write /dev/stdout: "+syscall.ENOSPC.Error()+"\n")
}

func TestInterruptNamesUnsentLines(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := program.Start(t, s.url("/echo"))
	p.Await("-- ready")
	s.kill()
	p.Await("-- away")
	p.Type("one", "\xff")
	p.Await("-- not sent: not UTF-8") // so both lines were read
	p.Interrupt()
	require.Equal(t, codeUnsent, p.ExitCode())
	require.Contains(t, p.String(), "-- not sent: the end came first: \"one\"\n")
	require.NotContains(t, p.String(), "leaving within")
}

func TestExecuteSendsItsLinesAndEndsAfterTheAnswers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := program.StartFilter(t, "-x", "one", s.url("/echo"), "-x", "two", "-q", "200ms") // its input stays open
	p.WantLines("one", "two")
	require.Zero(t, p.ExitCode())
	p = program.StartFilter(t, "-x", "one", s.url("/echo")) // -q has a default
	p.WantLines("one")
	require.Zero(t, p.ExitCode())
	code, text := exits(t, "-x", "one", "-for", "200ms", "ws://"+freeAddr(t)+"/")
	require.Equal(t, codeUnreachable, code)
	require.Contains(t, text, "one")
}
