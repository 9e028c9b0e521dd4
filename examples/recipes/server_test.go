//go:build linux

package recipes_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/program"
)

// server is a program that serves.
type server struct {
	args   []string
	listen string             // matches its address in the output
	path   string             // of its WebSocket; empty if it serves lines over TCP
	answer func(p peer) error // has it answer a client that behaves
	drains bool               // after the first Ctrl-C it drains, and by the second it dies
}

var servers = map[string]server{
	"lines": {
		args:   []string{"serve", "-addr", "127.0.0.1:0"},
		listen: `listening on (\S+)\n`,
		answer: func(p peer) error {
			if err := p.send("PING"); err != nil {
				return err
			}
			return want(p, "PONG")
		},
	},
	"chat": {
		args:   []string{"serve", "-addr", "127.0.0.1:0"},
		listen: `serving ws://(\S+)/\n`,
		path:   "/",
		answer: func(p peer) error {
			if err := p.send(`{"type":"hello","client":"secret","name":"ann"}`); err != nil {
				return err
			}
			return want(p, `"type":"welcome"`)
		},
	},
	"drain": {
		args:   []string{"serve", "-addr", "127.0.0.1:0", "-lead", "-1s", "-window", "-1s"},
		listen: `listening on (\S+)\n`,
		path:   "/ws",
		drains: true,
		answer: func(p peer) error {
			if err := p.send("hello"); err != nil {
				return err
			}
			return want(p, "hello")
		},
	},
}

// want reads a message, which must contain text.
func want(p peer, text string) error {
	m, err := p.read()
	if err == nil && !strings.Contains(m, text) {
		err = fmt.Errorf("got %q, want %q", m, text)
	}
	return err
}

// call connects to a server as a client.
func (s *server) call(t *testing.T, address string) peer {
	t.Helper()
	if s.path == "" {
		c := callRaw(t, address)
		return lines{c, bufio.NewReader(c)}
	}
	c, _, err := websocket.Dial(t.Context(), "ws://"+address+s.path, nil)
	require.NoError(t, err)
	t.Cleanup(func() { c.CloseNow() })
	return web{t.Context(), c}
}

func callRaw(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// Clients that are mute, hang up, and send garbage do no harm to one that behaves. With all of them
// connected, the server ends with Ctrl-C.
func TestClientsThatMisbehave(t *testing.T) {
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := 0
			if s.drains {
				want = -1
			}
			var p *program.Program
			interrupt(t, want, func() *program.Program {
				p = start(t, name, s.args...)
				s.misbehave(t, p.Out.Find(s.listen)[1])
				if s.drains {
					p.Interrupt()
					p.Out.Await("draining")
				}
				return p
			})
			require.NotContains(t, p.String()+p.Out.String(), "goroutine ")
		})
	}
}

// misbehave connects to a server with clients that misbehave, and one that behaves and is answered.
func (s *server) misbehave(t *testing.T, address string) {
	t.Helper()
	callRaw(t, address)
	require.NoError(t, callRaw(t, address).Close())
	for _, text := range append(garbage, strings.Repeat("x", 100_000)) {
		_, _ = io.WriteString(callRaw(t, address), text+"\r\n") // an error says that the server has closed it
		_ = s.call(t, address).send(text)
	}
	good := s.call(t, address)
	require.NoError(t, s.answer(good))
}

// A server that cannot print its address exits.
func TestAServerWithAFullDisk(t *testing.T) {
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startFull(t, name, s.args...)
			require.Equal(t, 4, p.ExitCode(), p)
			require.Contains(t, p.String(), syscall.ENOSPC.Error())
		})
	}
}

// demonstrations are programs that have both ends of their connections, each with what it prints when
// it has begun.
var demonstrations = map[string]struct {
	args  []string
	began string
}{
	"drain":      {[]string{"demo", "-n", "10"}, "10 clients are connected"},
	"marketdata": {nil, "\n"},
	"../voice":   {nil, "session ready"},
}

// An interrupted demonstration says so.
func TestAnInterruptEndsADemonstration(t *testing.T) {
	for name, d := range demonstrations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p *program.Program
			interrupt(t, 1, func() *program.Program {
				p = start(t, name, d.args...)
				p.Out.Await(d.began)
				return p
			})
			require.Contains(t, p.String(), "interrupted")
		})
	}
}

// A demonstration with a full disk behind standard output ends with code 4 when it is over.
func TestADemonstrationWithAFullDisk(t *testing.T) {
	for name, args := range map[string][]string{
		"drain":      {"demo", "-n", "10", "-window", "-1s", "-lead", "-1s"},
		"marketdata": {}, // takes 17 s
		"../voice":   {"-for", "1s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startFull(t, name, args...)
			require.Equal(t, 4, p.ExitCode(), p)
			require.Contains(t, p.String(), syscall.ENOSPC.Error())
		})
	}
}
