//go:build !js

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// running is a run of the program.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.Writer
	copied sync.WaitGroup // whoever copies what it writes, if that is not exec
	done   chan error

	mu      sync.Mutex // guards what follows
	out     bytes.Buffer
	changed chan struct{}
}

// start starts it with pipes. It is killed after a minute, and when the test ends.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	return startWith(t, func(p *running) {
		in, err := p.cmd.StdinPipe()
		require.NoError(t, err)
		p.stdin = in
		p.cmd.Stdout, p.cmd.Stderr = p, p
	}, args...)
}

func startWith(t *testing.T, connect func(*running), args ...string) *running {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	p := &running{t: t, cmd: exec.CommandContext(ctx, self, args...), done: make(chan error, 1), changed: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "CHAT_PROGRAM=1", "TERM=xterm", "USER=me", "GORACE=atexit_sleep_ms=0")
	connect(p)
	require.NoError(t, p.cmd.Start())
	ended := make(chan struct{})
	go func() { // joined by the cleanup
		defer close(ended)
		err := p.cmd.Wait()
		p.copied.Wait()
		p.done <- err
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("%s said:\n%s", strings.Join(args, " "), p)
		}
	})
	return p
}

// serveIt starts a server, on this address if there is one, and returns its address.
func serveIt(t *testing.T, addr string, args ...string) (*running, string) {
	t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	p := start(t, append([]string{"serve", "-addr", addr}, args...)...)
	return p, p.find(`serving ws://(\S+)/\r?\n`)[1]
}

// Write takes what the program writes.
func (p *running) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
	return p.out.Write(b)
}

func (p *running) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// say types a line.
func (p *running) say(text string) {
	p.t.Helper()
	_, err := io.WriteString(p.stdin, text+"\n")
	require.NoError(p.t, err)
}

// await waits until the program has written text.
func (p *running) await(text string) {
	p.t.Helper()
	p.find(regexp.QuoteMeta(text))
}

// find waits until the program has written what matches.
func (p *running) find(pattern string) []string {
	p.t.Helper()
	for ended := false; ; {
		p.mu.Lock()
		found, changed := regexp.MustCompile(pattern).FindStringSubmatch(p.out.String()), p.changed
		p.mu.Unlock()
		switch {
		case found != nil:
			return found
		case ended:
			p.t.Fatalf("ended before it wrote %q:\n%s", pattern, p)
		}
		select {
		case <-changed:
		case err := <-p.done:
			p.done <- err
			ended = true
		}
	}
}

// hurry has it try at once, again and again, until it has written text so often.
func (p *running) hurry(text string, times int) {
	p.t.Helper()
	for strings.Count(p.String(), text) < times {
		select {
		case err := <-p.done:
			p.done <- err
			p.t.Fatalf("ended (%v) before it wrote %q %d times:\n%s", err, text, times, p)
		case <-time.After(20 * time.Millisecond):
			p.say("")
		}
	}
}

func (p *running) kill() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Kill())
	p.exitCode()
}

func (p *running) interrupt() {
	p.t.Helper()
	if runtime.GOOS == "windows" {
		p.t.Skip("no interrupt can be sent")
	}
	if err := p.cmd.Process.Signal(syscall.SIGINT); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(p.t, err)
	}
}

// eof is the end of what is typed.
func (p *running) eof() {
	p.t.Helper()
	require.NoError(p.t, p.stdin.(io.Closer).Close())
}

func (p *running) exitCode() int {
	p.t.Helper()
	err := <-p.done
	p.done <- err
	return p.cmd.ProcessState.ExitCode()
}

// heard returns what was said, as far as p has heard it.
func (p *running) heard(name string) (texts []string) {
	for _, found := range regexp.MustCompile(`(?m)^`+name+`: (.*?)\r?$`).FindAllStringSubmatch(p.String(), -1) {
		texts = append(texts, found[1])
	}
	return texts
}
