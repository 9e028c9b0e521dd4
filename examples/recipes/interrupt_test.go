//go:build linux

package recipes_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
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

// interruptLimit is how long a program may take to end after Ctrl-C. It is meant to be half a second.
// It is longer here because a machine may be slow, and it is shorter than any time limit of a dial or a
// login.
const interruptLimit = 5 * time.Second

// interrupt sends what Ctrl-C sends, and requires a quick end, by the signal or with one of the codes.
func interrupt(t *testing.T, p *program.Program, codes ...int) {
	t.Helper()
	began := time.Now()
	p.Interrupt()
	code := p.ExitCode()
	took := time.Since(began)
	t.Logf("%v after %v", p.Cmd.ProcessState, took.Round(time.Millisecond))
	require.Less(t, took, interruptLimit)
	if p.Cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		require.Contains(t, codes, code)
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
func TestAnInterruptEndsADial(t *testing.T) {
	for name, args := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, accepted := silent(t)
			p := start(t, name, args(t, address)...)
			<-accepted
			codes := []int{0}
			switch name {
			case "wscat":
				codes = []int{1} // there was no connection
			case "lines":
				codes = []int{0, 1} // 1 if it has noticed that it is connected: the server may have answers
			}
			interrupt(t, p, codes...)
		})
	}
}

// A session whose server neither reads nor says anything ends with Ctrl-C.
func TestAnInterruptEndsASession(t *testing.T) {
	for name, talk := range talks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, over := make(chan struct{}), make(chan struct{})
			t.Cleanup(func() { close(over) })
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
			interrupt(t, p, 0, 1)
		})
	}
}
