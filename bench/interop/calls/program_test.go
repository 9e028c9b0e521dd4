package calls_test

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/port"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// program is a server that a test starts on a port of loopback, kills, and starts again.
type program struct {
	t       *testing.T
	command func() *exec.Cmd // its last arguments are the port and the log
	port    string
	log     string // the file with the questions that were worked on
	running *exec.Cmd
	in      io.Closer // its standard input, with which it ends
}

// start runs p until the end of the test, and waits until it accepts connections.
func start(ctx context.Context, t *testing.T, command func() *exec.Cmd) *program {
	p := &program{t: t, command: command, port: port.Free(t), log: filepath.Join(t.TempDir(), "log")}
	t.Cleanup(p.kill)
	p.restart(ctx)
	return p
}

func (p *program) restart(ctx context.Context) {
	p.kill()
	p.running = p.command()
	p.running.Args = append(p.running.Args, p.port, p.log)
	p.running.Stderr = os.Stderr
	var err error
	p.in, err = p.running.StdinPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, p.running.Start())
	for {
		if nc, err := net.Dial("tcp", "127.0.0.1:"+p.port); err == nil {
			nc.Close()
			return
		}
		require.NoError(p.t, ctx.Err(), "the server does not come up")
		time.Sleep(10 * time.Millisecond)
	}
}

// kill ends it as a power cut would, if it runs.
func (p *program) kill() {
	if p.running != nil {
		_ = p.running.Process.Kill()
		_ = p.running.Wait()
		p.in.Close()
		p.running = nil
	}
}

// asked returns how often each question was worked on.
func (p *program) asked() map[string]int {
	data, err := os.ReadFile(p.log)
	if !os.IsNotExist(err) {
		require.NoError(p.t, err)
	}
	n := map[string]int{}
	for line := range strings.Lines(string(data)) {
		n[strings.TrimSpace(line)]++
	}
	return n
}

// open returns a Conn to the server, which redials quickly.
func (p *program) open(o *reconnect.Options, protocols ...string) *reconnect.Conn {
	o.OnMessage = func(context.Context, reconnect.Message) {} // what is no answer
	o.WhenDown = reconnect.WhenDownWait
	o.Run.Policy = &backoff.Exponential{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond}
	c, err := reconnect.New(&dialer.WebSocket{URL: "ws://127.0.0.1:" + p.port, Subprotocols: protocols}, o)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { c.Close(); <-c.Done() })
	return c
}
