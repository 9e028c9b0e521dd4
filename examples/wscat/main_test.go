//go:build !js

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/examples/internal/program"
)

// The program must leave no goroutine but the one that reads the input (promise 11 of package
// reconnect).
func TestMain(m *testing.M) {
	program.Main(m, start, goleak.IgnoreAnyFunction("github.com/redial-go/redial/examples/internal/terminal.(*Input).read"))
}

func TestWrongUsageIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args    []string
		message string
	}{
		{nil, "wscat: the URL is missing\n"},
		{[]string{"-o", "ws://h/"}, "wscat: flag provided but not defined: -o\n"},
		{[]string{"-x", "ws://h/"}, "wscat: the URL is missing\n"},
		{[]string{"-c", "ws://h/?hush"}, "wscat: there is no -c: give the URL alone, as in wscat URL\n"},
		{[]string{"-c"}, "wscat: flag needs an argument: -c\n"},
		{[]string{"http://h/?hush"}, "scheme must be ws or wss, not http\n"},
		{[]string{"ws://me:hush@[::1"}, "malformed URL"},
		{[]string{"h.example:8080"}, "wscat: dialer: WebSocket.URL: "},
		{[]string{"ws://h/", "-H", "hush"}, "wscat: -H: header 1 has no name and colon: want 'Name: value'\n"},
		{[]string{"-H", "Authorization:", "hush", "ws://h/"}, "wscat: there is more than one URL: "},
		{[]string{"-H", "Upgrade: hush", "ws://h/"}, "wscat: dialer: WebSocket.Header: "},
		{[]string{"-for", "0s", "ws://h/"}, "wscat: -for: want more than 0, not 0s\n"},
		{[]string{"-q", "-1s", "ws://h/"}, "wscat: -q: want 0 or more, not -1s\n"},
		{[]string{"-max", "0", "ws://h/"}, "wscat: -max: want 1 to 536870912, not 0\n"},
		{[]string{"-binary", "octal", "ws://h/"}, `wscat: invalid value "octal" for flag -binary: want hex or base64` + "\n"},
		{[]string{"-subscribe", "hush\xff", "ws://h/"}, "wscat: -subscribe: message 1 is not UTF-8\n"},
		{[]string{"-max", "3", "-subscribe", "hush", "ws://h/"}, "wscat: -subscribe: message 1 is longer than -max\n"},
		{[]string{"-subprotocol", "a b", "ws://h/"}, "wscat: dialer: WebSocket.Subprotocols"},
	} {
		p := program.Start(t, c.args...)
		require.Equal(t, codeUsage, p.ExitCode(), "%q", c.args)
		require.Contains(t, p.String(), c.message)
		require.True(t, strings.HasSuffix(p.String(), "wscat: see wscat -h\n"))
		require.NotContains(t, p.String(), "hush", "no secret is printed")
	}
}

func TestHelpListsEveryFlag(t *testing.T) {
	t.Parallel()
	p := program.StartFilter(t, "-h")
	require.Zero(t, p.ExitCode())
	require.Empty(t, p.String(), "help that was asked for is no error")
	for _, name := range []string{"H", "subprotocol", "subscribe", "once", "for", "q", "x", "json", "binary", "max", "version"} {
		require.Regexp(t, `(?m)^  -`+name+` `, p.Out.String())
	}
	for _, line := range strings.Split(usage, "\n") {
		require.LessOrEqual(t, len(line), 96)
	}
}

func TestVersionIsPrinted(t *testing.T) {
	t.Parallel()
	p := program.StartFilter(t, "-version")
	require.Zero(t, p.ExitCode())
	require.Empty(t, p.String(), "a version that was asked for is no error")
	require.Regexp(t, `^wscat \S+ go1\S+ [a-z0-9]+/[a-z0-9]+\n$`, p.Out.String())
}

// exits runs the program without input, and returns its exit code and what it wrote.
func exits(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	p := program.Start(t, args...)
	p.CloseInput()
	return p.ExitCode(), p.String()
}

func TestARefusalEndsItBeforeTheFirstConnection(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for path, answer := range map[string]string{"/401": "401 Unauthorized", "/404": "404 Not Found", "/page": "200 OK: not a WebSocket endpoint"} {
		code, text := exits(t, s.url(path)+"?token=hush", "-H", "Authorization: hush")
		require.Equal(t, codeRefused, code)
		require.Equal(t, "wscat: refused: dial "+s.url(path)+": "+answer+"\n", text)
	}
}

func TestAServerThatIsOverloadedIsAskedAgainWhenItSays(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := program.Start(t, s.url("/503"))
	p.Find(`(?m)^-- away, next try in [78] s \(the server asked for 7 s\): dial .*: 503 Service Unavailable \(retry after 7s\)$`)
	p.Interrupt()
	require.Equal(t, codeUnreachable, p.ExitCode())
	require.Contains(t, p.String(), "\nwscat: there was no connection: dial ")
	code, text := exits(t, "-once", s.url("/503"))
	require.Equal(t, codeUnreachable, code)
	require.Contains(t, text, "503 Service Unavailable")
}

func TestAServerThatCannotBeReachedIsTriedUntilTheTimeIsOver(t *testing.T) {
	t.Parallel()
	url := "ws://" + freeAddr(t) + "/"
	code, text := exits(t, "-for", "1500ms", url)
	require.Equal(t, codeUnreachable, code)
	require.Contains(t, text, "-- away, next try in ")
	require.Contains(t, text, "wscat: there was no connection: dial "+url+": ")
	code, text = exits(t, "-once", url)
	require.Equal(t, codeUnreachable, code)
	require.Regexp(t, `^wscat: dial ws://.*refused\n$`, text)
}

func TestAServerThatDoesNotAnswerIsDialedASecondTime(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := program.Start(t, s.url("/hang"))
	p.Find(`-- connected, but not answered for \d+ s: another dial begins beside this one\n`)
	p.Interrupt()
	require.Equal(t, codeUnreachable, p.ExitCode())
}

func TestOnceEndsWithTheFirstConnection(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	code, text := exits(t, "-once", s.url("/1000"))
	require.Equal(t, codeOK, code)
	require.Equal(t, "-- ready: session 1\n", text)
	code, text = exits(t, "-once", s.url("/1011"))
	require.Equal(t, codeLost, code)
	require.Equal(t, "-- ready: session 1\nwscat: lost: read: closed by the peer: 1011 \"an error\"\n", text)
	p := program.Start(t, "-once", s.url("/echo"))
	p.Await("-- ready")
	s.kill()
	require.Equal(t, codeLost, p.ExitCode())
}

func TestHeadersSubprotocolsAndSubscriptionsGoToEachConnection(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := program.StartFilter(t, "-H", "Authorization: Bearer hush", "-H", "X-Two:a:b", "-H", "x-two: c", s.url("/echo")+"?token=hush",
		"-subprotocol", "chat.v3", "-subprotocol", "chat.v2", "-subscribe", "one", "-subscribe", "two")
	p.WantLines("one", "two")
	p.Await("-- ready: session 1, subprotocol chat.v2\n")
	s.kill()
	p.Await("-- away, next try in ")
	s.start()
	p.WantLines("one", "two")
	p.Find(`-- messages may be missing here: session 1 has ended\n(?s:.*)-- ready: session 2, subprotocol chat.v2, after \S+ away\n`)
	p.Interrupt()
	require.Zero(t, p.ExitCode())
	require.NotContains(t, p.String()+p.Out.String(), "hush")
	require.Empty(t, regexp.MustCompile(`session 2 has ended|written`).FindString(p.String()))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.headers {
		require.Equal(t, "Bearer hush", h.Get("Authorization"))
		require.Equal(t, []string{"a:b", "c"}, h.Values("X-Two"))
	}
}
