package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// worker follows orders: a process, or in tests this one.
type worker interface {
	do(ctx context.Context, o order) (answer, error)
	end() // and waits until it has ended; it may be called again
}

// process is a child as its parent sees it. It is given one order at a time.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	errs    bytes.Buffer // read when it is gone
	answers chan answer
	gone    chan struct{} // closed by read
}

// start starts a child.
func start() (*process, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	p := &process{cmd: exec.Command(path, childArgument), answers: make(chan answer), gone: make(chan struct{})}
	dieWithParent(p.cmd)
	p.cmd.Stderr = &p.errs
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	go p.read(out) // ends with the process; end waits for it
	return p, nil
}

// read is the goroutine that takes the answers.
func (p *process) read(out io.Reader) {
	defer close(p.gone)
	for d := json.NewDecoder(out); ; {
		var a answer
		if d.Decode(&a) != nil {
			break
		}
		p.answers <- a
	}
	_ = p.cmd.Wait() // it was killed, or its last words are in errs
}

// do gives an order and waits for the answer. If ctx ends before it comes, or the process
// takes longer than the order allows, the process is of no use any more, and do ends it.
func (p *process) do(ctx context.Context, o order) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit(), fmt.Errorf("%s: no answer within %v", o.Do, o.limit()))
	defer cancel()
	text, err := json.Marshal(o)
	if err != nil {
		return answer{}, err
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		p.end()
		return answer{}, fmt.Errorf("%s: the process has ended: %s", o.Do, lastWords(&p.errs))
	}
	select {
	case a := <-p.answers:
		if a.Err != "" {
			return a, errors.New(a.Err)
		}
		return a, nil
	case <-p.gone:
		return answer{}, fmt.Errorf("%s: the process has ended: %s", o.Do, lastWords(&p.errs))
	case <-ctx.Done():
		p.end()
		return answer{}, context.Cause(ctx)
	}
}

// lastWords are the first lines of what a process has written to standard error.
func lastWords(errs *bytes.Buffer) string {
	text := strings.TrimSpace(errs.String())
	return text[:min(len(text), 400)]
}

// end kills the process and waits until it is gone.
func (p *process) end() {
	_ = p.cmd.Process.Kill() // but for one that is gone
	_ = p.in.Close()
	for {
		select {
		case <-p.answers: // comes too late
		case <-p.gone:
			return
		}
	}
}
