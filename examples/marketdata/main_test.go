//go:build !js

package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/internal/program"
)

// The program must leave no goroutine (promise 11 of package reconnect).
func TestMain(m *testing.M) {
	program.Main(m, func() int { return command.Main("marketdata", run) })
}

func TestTheClientSurvivesEveryMisbehaviour(t *testing.T) {
	t.Parallel()
	p := program.Start(t)
	require.Zero(t, p.ExitCode(), p)
	out := p.String()
	for _, f := range []fault{killed, silent, restarts, busy, drops, shouts, skips} {
		require.Regexp(t, `(?m)^ +\d+\.\d{3}s  VENUE +`+regexp.QuoteMeta(string(f))+`$`, out)
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(string(f))+` +survived +\S+ +\d x `, out)
	}
	require.Regexp(t, `(?m)^ +session +downtime +ready +messages +gaps +missed +resyncs +ended by$`, out)
	require.Regexp(t, `(?m)waiting +1s as the server asks, then \S+ before attempt \d \(overload\)$`, out)
	require.Contains(t, out, "\nok: all 7 survived, the rotation lost nothing, the books equal the venue's, no message of an old session was applied\n")
	require.Regexp(t, `(?m)held +session \d+: ADA-USD$`, out, "added while the connection lives")
	require.Regexp(t, `(?m)released +session \d+: C-USD$`, out)
	require.Regexp(t, `(?m)out of sync +\S+: numbers (\d+) to \d+ are missing$`, out)
	require.NotContains(t, out, "\x1b", "the output is not a terminal")
	require.NotContains(t, out, secret)
}

func TestAnInterruptedDrillFailsAndShowsTheTables(t *testing.T) {
	t.Parallel()
	p := program.Start(t)
	p.Await("VENUE")
	p.Interrupt()
	require.Equal(t, 1, p.ExitCode(), p)
	require.Contains(t, p.String(), "ended by")
	require.Contains(t, p.String(), "not tried")
	require.Regexp(t, `\nmarketdata: interrupted after \d of 7\n$`, p.String())
}

func TestARealFeedIsFollowedUntilInterrupted(t *testing.T) {
	t.Parallel()
	f := openFeed(t, !deaf)
	p := program.Start(t, "-url", f.url+"/v1?token=hush", "-subscribe", `{"op":"all"}`)
	require.Equal(t, `{"op":"all"}`, <-f.asked)
	p.Await("session 1: 3 msg (")
	f.next <- websocket.StatusServiceRestart
	require.Equal(t, `{"op":"all"}`, <-f.asked, "on each connection")
	p.Await("session 2, after")
	p.Interrupt()
	require.Zero(t, p.ExitCode(), p)
	out := p.String()
	require.Contains(t, out, `closed by the peer: 1012 "so long"`)
	require.Regexp(t, `(?m)^ +\d+\.\d{3}s  ready +session 1: 3 msg \(\d+/s\), 33 B, last \d\.\ds ago, 0 gaps$`, out)
	require.Regexp(t, `(?m)^ +1 +\S+ +\S+ +3 +1 +- +- +read: closed by the peer: 1012`, out)
	require.Regexp(t, `(?m)^ +2 +\S+ +\S+ +\d +0 +- +- +us$`, out)
	require.Regexp(t, `(?m)^ +all .* 2 sessions in \S+$`, out)
	require.NotContains(t, out, "hush", "no secret is printed")
	require.Equal(t, websocket.StatusNormalClosure, <-f.goodbye)
}

func TestAnUnreachableServerIsTriedUntilInterrupted(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	p := program.Start(t, "-url", "ws://"+l.Addr().String())
	p.Await("before attempt 3")
	p.Interrupt()
	require.Zero(t, p.ExitCode(), p)
	require.Regexp(t, `(?m)failed +attempt 1: dial ws://127\.0\.0\.1:\d+: .*refused`, p.String())
	require.Regexp(t, `(?m)^ +all .* 0 sessions in \S+$`, p.String())
}

func TestAFeedThatIsGoneForGoodIsAFailure(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGone)
	}))
	defer gone.Close()
	p := program.Start(t, "-url", "ws"+strings.TrimPrefix(gone.URL, "http"))
	require.Equal(t, 1, p.ExitCode(), p)
	require.Regexp(t, `\nmarketdata: closed: dial .*410 Gone\n$`, p.String())
}

func TestASecondInterruptKills(t *testing.T) {
	t.Parallel()
	f := openFeed(t, deaf)
	p := program.Start(t, "-url", f.url)
	p.Await("ready")
	p.Interrupt()
	p.Await("leaving") // the peer does not answer
	for again := true; again; {
		p.Interrupt() // until the program does not catch the signal any more
		select {
		case <-p.Ended():
			again = false
		case <-time.After(10 * time.Millisecond):
		}
	}
	require.Equal(t, -1, p.ExitCode(), p)
}

func TestWrongFlagsAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, message string }{
		{"-bogus", "flag provided but not defined: -bogus"},
		{"wss://feed.example", `unexpected arguments ["wss://feed.example"]`},
		{"-subscribe {}", "-subscribe needs -url"},
		{"-url=", "-url: dialer: WebSocket.URL"},
		{"-url http://feed.example", "scheme must be ws or wss, not http"},
		{"-url ws://me:hush@[::1", "malformed URL"},
		{"-url ws://feed.example:99999", "port must be 1 to 65535"},
		{"-url ws://", "no host"},
	} {
		p := program.Start(t, strings.Fields(c.args)...)
		require.Equal(t, 2, p.ExitCode(), c.args)
		require.Contains(t, p.String(), c.message)
		require.NotContains(t, p.String(), "hush", "no secret is printed")
	}
	p := program.StartFilter(t, "-h")
	require.Zero(t, p.ExitCode())
	require.Contains(t, p.Out.String(), "  -subscribe ")
	require.Empty(t, p.String())
}

// feed is a server that sends three messages on each connection.
type feed struct {
	url     string
	asked   chan string               // the first message of each client
	next    chan websocket.StatusCode // closes a connection
	goodbye chan websocket.StatusCode // the close frame of a client
}

// hearing is whether a feed reads.
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
	go func() { // <-gone waits for it
		defer close(gone)
		_, _, err := ws.Read(ctx)
		f.goodbye <- websocket.CloseStatus(err)
	}()
	select {
	case code := <-f.next:
		ws.Close(code, "so long")
		<-gone
		<-f.goodbye // the answer to the close frame above
	case <-gone:
	}
}
