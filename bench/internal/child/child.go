// Package child runs a part of this program in a process of its own, which does not outlive
// the program.
package child

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

// Process is a child, as its parent sees it.
type Process struct {
	In io.WriteCloser // its standard input

	cmd  *exec.Cmd
	errs bytes.Buffer // read when it is gone
	gone chan struct{}
}

// Start starts this program again, with an argument and a setup. The child writes values of type T to
// its standard output, as JSON. One goroutine calls take with each of them, until the child has
// ended. The caller must call Kill in the end.
func Start[T any](take func(T), argument string, setup any) (*Process, error) {
	p, out, err := start(argument, setup)
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	go func() { // ends with the child; Kill waits for it
		defer close(p.gone)
		for d := json.NewDecoder(out); ; {
			var value T
			if d.Decode(&value) != nil {
				break
			}
			take(value)
		}
		_ = p.cmd.Wait() // it was killed, or LastWords says why it ended
	}()
	return p, nil
}

func start(argument string, setup any) (*Process, io.Reader, error) {
	text, err := json.Marshal(setup)
	if err != nil {
		return nil, nil, err
	}
	path, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	p := &Process{cmd: exec.Command(path, argument, string(text)), gone: make(chan struct{})}
	DieWithParent(p.cmd)
	p.cmd.Stderr = &p.errs
	if p.In, err = p.cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return p, out, p.cmd.Start()
}

// Is reports whether this process is a child that was started with this argument and a setup.
func Is(argument string) bool { return len(os.Args) == 3 && os.Args[1] == argument }

// Main runs such a child: it reads the setup, which is JSON, calls serve with it and with standard
// input and output, and returns the exit code. The parent decides about Ctrl-C.
func Main[S any](argument string, serve func(setup S, in io.Reader, out io.Writer) error) int {
	signal.Ignore(os.Interrupt)
	var setup S
	err := json.Unmarshal([]byte(os.Args[2]), &setup)
	if err == nil {
		err = serve(setup, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", argument, err)
		return 1
	}
	return 0
}

// Gone returns a channel that is closed when the child has ended and take will not be called
// any more.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// LastWords returns the beginning of what the child has written to its standard error. Call it
// when the child is gone.
func (p *Process) LastWords() string {
	text := strings.TrimSpace(p.errs.String())
	return text[:min(len(text), 400)]
}

// Strike sends SIGKILL, and does nothing if the child is gone.
func (p *Process) Strike() { _ = p.cmd.Process.Kill() }

// Kill ends the child with SIGKILL, and waits until it is gone. It may be called again.
func (p *Process) Kill() {
	p.Strike()
	_ = p.In.Close()
	<-p.gone
}
