//go:build linux

package recipes_test

import (
	"context"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/program"
)

// garbage are texts that no server of these protocols sends. Some look like a message of one of them.
var garbage = []string{
	`not json`, `[]`, `{}`, `null`, `[null]`, `[1,2]`, `[[[[`, ``, "\x00",
	`{"id":1}`, `{"type":"error"}`, `{"type":"next","id":7}`, // GraphQL
	`42[]`, `42{`, `40`, `41`, `44`, `4`, // Socket.IO
	`[3]`, `[4,"x"]`, `[2,"a","B",{}]`, // OCPP
	`{"id":"1","result":"0x1"}`,                      // JSON-RPC
	`{"id":1,"subscribe":{"epoch":"e","offset":-1}}`, // Centrifugo
	`{"push":{"pub":{"offset":1e99}}}`,
	`{"Op":"run","ID":-1}`, `{"Op":"run"}`, // agent
	`{"type":"goAway","timeLeft":-9223372036854775808}`, `{"type":"goAway"}`, // voice
	`{"book":"","seq":1}`, `{"book":"BTC","type":"update","bids":[[1]]}`, // the books
}

// garbageNATS are texts that no server of NATS sends, or not at any time. A CRLF follows each.
var garbageNATS = []string{
	`INFO {`, `INFO`, `PING`, `PONG`, "PONG\r\nPONG", `+OK`, `-ERR`, `-ERR 'Authorization Violation'`,
	`MSG`, `MSG `, `MSG a 1`, `MSG news 1 -5`, `MSG news 1 reply -5`, `HMSG news 1 10 5`,
}

// wrongSizes are messages of NATS whose payloads have other sizes.
var wrongSizes = []string{
	"MSG news 1 99999999999999999999", "MSG news 1 9999999999",
	"MSG news 1 2\r\nabcdef", "MSG news 1 reply 2\r\nabcdef", "MSG news 1 5\r\nabc", "MSG news 1 0",
}

// garbageFor returns the texts of garbage for a program. There are no wrongSizes for natsgo, because nats.go v1.55.0
// panics at the first, waits for the 10 GB of the second, and delivers wrong messages for the others.
func garbageFor(name string) []string {
	switch name {
	case "nats":
		return slices.Concat(garbage, garbageNATS, wrongSizes)
	case "natsgo":
		return slices.Concat(garbage, garbageNATS)
	}
	return garbage
}

// raw are the programs that speak TCP without WebSocket.
var raw = map[string]bool{"amqp": true, "lines": true, "nats": true, "natsgo": true, "postgres": true}

// serveRaw calls f with each TCP connection, which ends when f returns.
func serveRaw(t *testing.T, f func(c net.Conn, n int)) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go func() { // ends with the connection, which the cleanup closes
				defer c.Close()
				f(c, n)
			}()
		}
	}()
	return l.Addr().String()
}

// outputs matches what a program may print though no message of garbage is one of its own: its notes, or the
// mark of a session that looked ready.
var outputs = map[string]string{
	"chat":     `^-- .*$`,
	"jsonrpc":  `^` + mark + `$`,
	"nats":     `^` + mark + `$`,
	"socketio": `^snapshot: session \d+ begins without its past$`,
}

// hungUp matches what a program reports when a server has closed a connection.
const hungUp = `EOF|connection reset by peer|broken pipe|closed by the peer: (1000|1011)`

const badJSON = `invalid character|cannot unmarshal|unexpected end of JSON input`

// complaints match what a program reports of garbage, unless it is that the server has closed the connection.
var complaints = map[string]string{
	"agent":      badJSON + `|the login is refused`,
	"amqp":       `frame size exceeds negotiated frame_max`,
	"centrifugo": badJSON,
	"chat":       `the server does not speak this protocol`,
	"graphqlws":  badJSON,
	"jsonrpc":    badJSON,
	"mqtt":       `unknown packet type|invalid Prop type`,
	"nats":       `the server refuses: -ERR|protocol error: no|larger than the read limit`,
	"natsgo":     `INFO not received|` + badJSON,
	"ocpp":       `the CSMS does not accept this station`,
	"postgres":   `invalid body length`,
	"voice":      badJSON + `|not an answer to the setup`,
}

// repeats are the programs that print any message.
var repeats = map[string]bool{"lines": true, "wscat": true}

// requireOutput fails if a program has printed a line that matches neither outputs nor the patterns, or, if it
// prints any message, is not garbage.
func requireOutput(t *testing.T, name string, p *program.Program, garbage string, patterns ...string) {
	t.Helper()
	if outputs[name] != "" {
		patterns = append(patterns, outputs[name])
	}
	for line := range strings.SplitAfterSeq(p.Out.String(), "\n") {
		line, whole := strings.CutSuffix(line, "\n")
		matches := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(line) }
		if whole && !(repeats[name] && line == garbage) && !slices.ContainsFunc(patterns, matches) {
			require.Fail(t, "wrong output", "%q", line)
		}
	}
}

// requireSound requires that a program whose server misbehaves has not crashed. If it has ended, it says why, with
// exit code 1. Otherwise scene has returned it in time for Ctrl-C.
func requireSound(t *testing.T, want int, scene func() *program.Program) (p *program.Program) {
	t.Helper()
	p = scene()
	select {
	case <-p.Ended():
		require.Equal(t, 1, p.ExitCode(), p)
		require.NotEmpty(t, p.String())
	default:
		first := p
		interrupt(t, want, func() *program.Program {
			if first == nil {
				p = scene()
			}
			first = nil
			return p
		})
	}
	require.NotContains(t, p.String(), "goroutine ")
	require.NotContains(t, p.String(), "panic")
	return p
}

// await waits until c is closed, or the program has ended, and until its notes match cause.
func await(t *testing.T, name string, p *program.Program, c <-chan struct{}, cause string) *program.Program {
	t.Helper()
	select {
	case <-c:
	case <-p.Ended():
	}
	notesOf(name, p).Find(cause)
	return p
}

// notesOf returns the output with the notes of a program.
func notesOf(name string, p *program.Program) *program.Output {
	if name == "chat" {
		return p.Out
	}
	return p.Output
}

func TestServerIsAway(t *testing.T) {
	for name, args := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			require.NoError(t, l.Close())
			want := codeOf(name)
			if name == "wscat" {
				want = 1 // there was no connection
			}
			p := requireSound(t, want, func() *program.Program {
				p := start(t, name, args(t, l.Addr().String())...)
				notesOf(name, p).Await("connection refused")
				return p
			})
			requireOutput(t, name, p, "")
		})
	}
}

// Each connection is closed as soon as it is accepted. The program says so.
func TestServerHangsUp(t *testing.T) {
	for name, args := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := codeOf(name)
			if name == "wscat" {
				want = 1 // there was no connection
			}
			p := requireSound(t, want, func() *program.Program {
				third := make(chan struct{})
				address := serveRaw(t, func(c net.Conn, n int) {
					if n == 3 {
						close(third)
					}
				})
				return await(t, name, start(t, name, args(t, address)...), third, hungUp)
			})
			requireOutput(t, name, p, "")
		})
	}
}

// interruptAfterUpgrade runs each program with a server that upgrades its connections. It interrupts the program
// when serve has closed moment, and the notes match cause.
func interruptAfterUpgrade(
	t *testing.T, cause string, serve func(ctx context.Context, c *websocket.Conn, n int, moment chan<- struct{}),
) {
	for name, args := range programs {
		if raw[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := requireSound(t, codeOf(name), func() *program.Program {
				moment := make(chan struct{})
				url := serveWebSocket(t, func(ctx context.Context, c *websocket.Conn, n int) {
					serve(ctx, c, n, moment)
				})
				p := start(t, name, args(t, strings.TrimPrefix(url, "ws://"))...)
				return await(t, name, p, moment, cause)
			})
			requireOutput(t, name, p, "")
		})
	}
}

// Each connection is closed with code 1000 after the upgrade.
func TestServerHangsUpAfterUpgrade(t *testing.T) {
	interruptAfterUpgrade(t, hungUp, func(_ context.Context, c *websocket.Conn, n int, third chan<- struct{}) {
		if n == 3 {
			close(third)
		}
		c.Close(websocket.StatusNormalClosure, "")
	})
}

// A server upgrades the connection and reads from it, and says nothing.
func TestServerIsMuteAfterUpgrade(t *testing.T) {
	interruptAfterUpgrade(t, "", func(ctx context.Context, c *websocket.Conn, n int, open chan<- struct{}) {
		if n == 1 {
			go func() { // ends with the connection
				if c.Ping(ctx) == nil {
					close(open) // the program has answered, so it has the answer to its upgrade
				}
			}()
		}
		drain(ctx, c)
	})
}

// garbageConnections is the number of connections that get a kind of garbage. With REDIAL_LONG it is 3, which is what
// fits into the minute of a program whose login is refused: its waits are slow ones.
func garbageConnections() int {
	if os.Getenv("REDIAL_LONG") != "" {
		return 3
	}
	return 2
}

// serveGarbage serves a program with connections that get text and are closed. last is closed when the last of n
// connections was accepted.
func serveGarbage(t *testing.T, name, text string, n int) (address string, last <-chan struct{}) {
	accepted := make(chan struct{})
	if raw[name] {
		return serveRaw(t, func(c net.Conn, number int) {
			if number == n {
				close(accepted)
			}
			io.WriteString(c, text+"\r\n")
			c.(*net.TCPConn).CloseWrite()
			c.SetReadDeadline(time.Now().Add(time.Second)) // so that a reset drops nothing of it
			io.Copy(io.Discard, c)
		}), accepted
	}
	url := serveWebSocket(t, func(ctx context.Context, c *websocket.Conn, number int) {
		if number == n {
			close(accepted)
		}
		if send(ctx, c, text) == nil {
			c.Close(websocket.StatusInternalError, "")
		}
	})
	return strings.TrimPrefix(url, "ws://"), accepted
}

// crowds holds a value for each test that has a process for each text of garbage, so that there are not too many.
var crowds = make(chan struct{}, 3)

// beginEach calls begin for each text of garbage for a program, and returns a scene for each, which waits for what
// begin has started, and for something that it has started again if it is called again. The processes for all texts
// run concurrently, because most of the time they wait to dial.
func beginEach(t *testing.T, name string, begin func(text string) (wait func() *program.Program)) (
	scenes []func() *program.Program) {
	crowds <- struct{}{}
	t.Cleanup(func() { <-crowds })
	for _, text := range garbageFor(name) {
		wait := begin(text)
		scenes = append(scenes, func() *program.Program {
			if wait == nil {
				wait = begin(text)
			}
			p := wait()
			wait = nil
			return p
		})
	}
	return scenes
}

// Each connection gets the same garbage. The program says what is wrong with it, or that the connection has ended.
func TestServerSendsGarbage(t *testing.T) {
	for name, args := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cause := hungUp
			if complaints[name] != "" {
				cause += "|" + complaints[name]
			}
			scenes := beginEach(t, name, func(text string) (wait func() *program.Program) {
				address, last := serveGarbage(t, name, text, garbageConnections())
				p := start(t, name, args(t, address)...)
				return func() *program.Program { return await(t, name, p, last, cause) }
			})
			for i, text := range garbageFor(name) {
				requireOutput(t, name, requireSound(t, codeOf(name), scenes[i]), text)
			}
		})
	}
}
