//go:build linux

package recipes_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/program"
)

// programs are the recipes and the other clients, each with its arguments for a server at an address
// of the form host:port.
var programs = map[string]func(t *testing.T, address string) []string{
	"agent": func(t *testing.T, address string) []string {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte("secret"), 0o600))
		return []string{"-url", "ws://" + address, "-dir", dir, "-token", filepath.Join(dir, "token")}
	},
	"amqp": func(_ *testing.T, address string) []string {
		return []string{"-url", "amqp://guest:guest@" + address + "/"}
	},
	"book": func(_ *testing.T, address string) []string { return []string{"-url", "ws://" + address, "BTC"} },
	"booksnapshot": func(_ *testing.T, address string) []string {
		return []string{"-url", "ws://" + address, "-http", "http://" + address, "BTC"}
	},
	"centrifugo": func(_ *testing.T, address string) []string { return []string{"-url", "ws://" + address} },
	"graphqlws": func(_ *testing.T, address string) []string {
		return []string{"-url", "ws://" + address, "subscription { a }"}
	},
	"jsonrpc": func(_ *testing.T, address string) []string { return []string{"-url", "ws://" + address} },
	"mqtt":    func(_ *testing.T, address string) []string { return []string{"-url", "ws://" + address} },
	"nats":    func(_ *testing.T, address string) []string { return []string{"-url", "nats://" + address} },
	"natsgo":  func(_ *testing.T, address string) []string { return []string{"-url", "nats://" + address} },
	"ocpp": func(t *testing.T, address string) []string {
		store := filepath.Join(t.TempDir(), "events")
		return []string{"-url", "ws://" + address + "/station-1", "-store", store, "-wait", "100ms", "-random", "100ms"}
	},
	"postgres": func(_ *testing.T, address string) []string {
		return []string{"-url", "postgres://u:p@" + address + "/x?sslmode=disable"}
	},
	"socketio": func(_ *testing.T, address string) []string { return []string{"-url", "ws://" + address} },
	"voice":    func(_ *testing.T, address string) []string { return []string{"-url", "ws://" + address} },
	"lines":    func(_ *testing.T, address string) []string { return []string{"talk", "-addr", address} },
	"chat":     func(_ *testing.T, address string) []string { return []string{"join", "-url", "ws://" + address} },
	"wscat":    func(_ *testing.T, address string) []string { return []string{"ws://" + address} },
}

const (
	interruptLimit = 500 * time.Millisecond // on the end after Ctrl-C
	attempts       = 3                      // to keep the limit, because another process may be using the machine

	// A program that takes longer than quick may have another exit code, because one of its time limits is over.
	quick = 200 * time.Millisecond
)

// bySignal are the programs that leave Ctrl-C to the system.
var bySignal = map[string]bool{
	"centrifugo": true, "graphqlws": true, "jsonrpc": true, "nats": true, "natsgo": true, "ocpp": true,
	"postgres": true, "socketio": true,
}

// codeOf returns the exit code of a program after Ctrl-C if nothing has failed, or -1 if the signal ends it.
func codeOf(name string) int {
	if bySignal[name] {
		return -1
	}
	return 0
}

// interrupt sends what Ctrl-C sends, and requires a quick end with the wanted exit code. scene starts a program
// and returns it when it is time for Ctrl-C. The best of a number of attempts counts.
func interrupt(t *testing.T, want int, scene func() *program.Program) {
	t.Helper()
	for n := 1; ; n++ {
		p := scene()
		began := time.Now()
		p.Interrupt()
		code := p.ExitCode()
		took := time.Since(began)
		t.Logf("%v after %v", p.Cmd.ProcessState, took.Round(time.Millisecond))
		if code == want && took < interruptLimit {
			return
		}
		if n == attempts || took < quick {
			require.Equal(t, want, code, p)
			require.Less(t, took, interruptLimit)
		}
	}
}

// silent accepts connections, reads what comes, and says nothing. accepted gets a value for each.
func silent(t *testing.T) (address string, accepted <-chan struct{}) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	came := make(chan struct{}, 100)
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			came <- struct{}{}
		}
	}()
	return l.Addr().String(), came
}

// A dial and a login that are not answered end with Ctrl-C.
func TestInterruptEndsDial(t *testing.T) {
	for name, args := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := codeOf(name)
			switch name {
			case "lines":
				want = 1 // it is connected, and the server may have answers
			case "wscat":
				want = 1 // there was no connection
			}
			interrupt(t, want, func() *program.Program {
				address, accepted := silent(t)
				p := start(t, name, args(t, address)...)
				<-accepted
				if name == "lines" {
					p.Await("connected")
				}
				return p
			})
		})
	}
}

// A session whose server neither reads nor says anything ends with Ctrl-C.
func TestInterruptEndsSession(t *testing.T) {
	for name, talk := range talks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			t.Cleanup(func() { close(over) })
			want := codeOf(name)
			if name == "lines" {
				want = 1 // the server may have answers
			}
			interrupt(t, want, func() *program.Program {
				said := make(chan struct{})
				address := serveTalk(t, name, func(p peer, n int) {
					if n == 1 && talk.run(p, nil, nil) == nil {
						close(said)
					}
					<-over
				})
				p := start(t, name, argumentsOf(t, name, address)...)
				if talk.input != "" {
					p.Type(talk.input)
				}
				<-said
				if talk.want != "" {
					p.Out.Find("(?m)" + talk.want)
				}
				return p
			})
		})
	}
}

// A line that was typed before Ctrl-C and cannot be sent is named.
func TestInterruptNamesUnsentLine(t *testing.T) {
	for _, name := range []string{"chat", "lines", "wscat"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			require.NoError(t, l.Close())
			var p *program.Program
			interrupt(t, 1, func() *program.Program {
				p = start(t, name, programs[name](t, l.Addr().String())...)
				notesOf(name, p).Await("connection refused")
				long := strings.Repeat("x", 70_000) // more than a pipe holds
				p.Type("first", long, long)         // returns when the program has read the first
				return p
			})
			require.Regexp(t, `-- not sent: .*"first"`, p.String()+p.Out.String())
		})
	}
}
