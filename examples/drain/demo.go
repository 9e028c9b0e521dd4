package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/command"
)

// demo replaces a server under its clients.
func demo(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("drain demo", flag.ContinueOnError)
	n := flags.Int("n", 200, "how many clients")
	window := flags.Duration("window", 5*time.Second, "the window of the first server")
	lead := flags.Duration("lead", time.Second, "its lead")
	notice := flags.Bool("notice", false, "the server tells the clients before it closes their connections")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	if *n < 1 || *n > 4000 {
		return fmt.Errorf("-n: want 1 to 4000 clients, not %d", *n)
	}
	old, err := freeAddress()
	if err != nil {
		return err
	}
	next, err := freeAddress()
	if err != nil {
		return err
	}
	first, err := startServer(s.Notes, old, "-lead", lead.String(), "-window", window.String())
	if err != nil {
		return err
	}
	defer first.end()
	b, err := startBalancer(old, next)
	if err != nil {
		return err
	}
	defer b.end()
	if err := b.await(ctx, http.StatusServiceUnavailable); err != nil {
		return err
	}
	url := "ws://" + b.address + "/ws"
	if *notice {
		url += "?notice"
	}
	clients, err := newCrowd(&dialer.WebSocket{URL: url}, *n)
	if err != nil {
		return err
	}
	defer clients.end()
	if err := clients.awaitReady(ctx); err != nil {
		return err
	}
	second, err := startServer(s.Notes, next)
	if err != nil {
		return err
	}
	defer second.end()
	if err := b.await(ctx, http.StatusOK); err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%d clients are connected to the first server through %s, and the second is there\n", *n, b.name)
	return replace(ctx, s.Out, clients, first)
}

// replace ends the first server while the clients talk, and reports.
func replace(ctx context.Context, out io.Writer, clients *crowd, first *server) error {
	begun := clients.begin()
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("SIGTERM for the first server: %w", err)
	}
	for gone, more := first.gone, 4; more > 0; { // until 2 s after its end
		select {
		case <-time.After(500 * time.Millisecond):
			clients.talk(ctx)
			if gone == nil {
				more--
			}
		case <-gone:
			fmt.Fprintf(out, "the first server has ended %v after SIGTERM, with code %d\n", time.Since(begun).Round(100*time.Millisecond), first.cmd.ProcessState.ExitCode())
			gone = nil
		case <-ctx.Done():
			return errors.New("interrupted")
		}
	}
	if err := clients.settle(ctx); err != nil {
		return err
	}
	clients.report(out)
	return nil
}

// server is "drain serve" in a process of its own.
type server struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed when it has ended
}

// startServer starts one, and waits until it listens. The caller must call end.
func startServer(notes io.Writer, address string, args ...string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.Command(self, append([]string{"serve", "-addr", address}, args...)...), gone: make(chan struct{})}
	s.cmd.Stderr = notes
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(stdout)
	lines.Scan()
	first := lines.Text()
	go func() { // <-s.gone waits for it
		defer close(s.gone)
		for lines.Scan() {
		}
		_ = s.cmd.Wait() // its code is reported
	}()
	if !strings.HasPrefix(first, "listening on ") {
		s.end()
		return nil, errors.New("a server did not start")
	}
	return s, nil
}

// end kills the server, if it is there, and waits until it is gone.
func (s *server) end() {
	_ = s.cmd.Process.Kill()
	<-s.gone
}
