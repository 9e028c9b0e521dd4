package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redial-go/redial/bench/internal/child"
)

// serverArgument is the hidden argument; what follows is a setup.
const serverArgument = "lab-server"

// IsServer reports whether this process was started to be a server of this package.
// If so it must call [ServerMain] and exit with what that returns.
func IsServer() bool { return child.Is(serverArgument) }

// ServerMain is a server process: it waits for a first line on standard input,
// listens then, and reports on standard output until standard input ends. Each
// further line asks for a report at once.
func ServerMain() int { return child.Main(serverArgument, setup.serve) }

func (s setup) serve(in io.Reader, out io.Writer) error {
	if _, err := raiseFiles(); err != nil {
		fmt.Fprintln(os.Stderr, "lab-server:", err)
	}
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		return nil // the parent is gone
	}
	y, err := s.open()
	if err != nil {
		return err
	}
	go func() { _ = y.http.Serve(y.listener) }() // until the process ends
	asked := make(chan struct{})
	go func() { // until the process ends
		defer close(asked)
		for lines.Scan() {
			asked <- struct{}{}
		}
	}()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for answer, say := true, json.NewEncoder(out); ; { // the first answer is that it listens
		r := y.report()
		r.Asked = answer
		if err := say.Encode(r); err != nil {
			return err
		}
		select {
		case <-tick.C:
			answer = false
		case _, answer = <-asked:
			if !answer {
				return nil
			}
		}
	}
}

// process is a server process, as its parent sees it.
type process struct {
	*child.Process
	answers chan report // one: the answer to the question under way
}

// start starts a process that does not listen yet. One goroutine calls each, which may be nil,
// with every report.
func start(s setup, each func(report)) (p *process, err error) {
	p = &process{answers: make(chan report, 1)}
	p.Process, err = child.Start(func(r report) {
		if each != nil {
			each(r)
		}
		if r.Asked {
			p.answers <- r
		}
	}, serverArgument, s)
	return p, err
}

// ask makes the process report at once; the first time the process listens before that. Call
// it again only after it has returned.
func (p *process) ask(ctx context.Context) (report, error) {
	if _, err := io.WriteString(p.In, "\n"); err != nil {
		return report{}, fmt.Errorf("ask server: %w", err)
	}
	select {
	case r := <-p.answers:
		return r, nil
	case <-p.Gone():
		return report{}, fmt.Errorf("ask server: it has ended: %s", p.LastWords())
	case <-ctx.Done():
		return report{}, context.Cause(ctx)
	}
}
