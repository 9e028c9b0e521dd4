package lab

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

// process is a server process, as its parent sees it.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	errs    bytes.Buffer  // read when it is gone
	answers chan report   // one: the answer to the question under way
	gone    chan struct{} // closed by read
}

// start starts a process that does not listen yet. One goroutine calls each, which may be nil,
// with every report.
func start(s setup, each func(report)) (*process, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	p := &process{cmd: exec.Command(path, serverArgument, string(text)), answers: make(chan report, 1), gone: make(chan struct{})}
	dieWithParent(p.cmd)
	p.cmd.Stderr = &p.errs
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	go p.read(out, each) // ends with the process; kill waits for it
	return p, nil
}

// read is the goroutine that takes the reports.
func (p *process) read(out io.Reader, each func(report)) {
	defer close(p.gone)
	for d := json.NewDecoder(out); ; {
		var r report
		if d.Decode(&r) != nil {
			break
		}
		if each != nil {
			each(r)
		}
		if r.Asked {
			p.answers <- r
		}
	}
	_ = p.cmd.Wait() // it was killed, or its last words are in errs
}

// ask makes the process report at once; the first time the process listens before that. Call
// it again only after it has returned.
func (p *process) ask(ctx context.Context) (report, error) {
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		return report{}, fmt.Errorf("ask server: %w", err)
	}
	select {
	case r := <-p.answers:
		if r.Err != "" {
			return r, errors.New(r.Err)
		}
		return r, nil
	case <-p.gone:
		return report{}, fmt.Errorf("ask server: it has ended: %s", strings.TrimSpace(p.errs.String()))
	case <-ctx.Done():
		return report{}, context.Cause(ctx)
	}
}

// kill ends it with SIGKILL and waits until it is gone. It may be called again.
func (p *process) kill() {
	p.strike()
	_ = p.in.Close()
	<-p.gone
}

// strike sends it SIGKILL.
func (p *process) strike() { _ = p.cmd.Process.Kill() } // but for one that is gone
