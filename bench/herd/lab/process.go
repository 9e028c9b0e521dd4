package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/redial-go/redial/bench/internal/child"
)

// process is a server process, as its parent sees it.
type process struct {
	*child.Process
	answers chan report // one: the answer to the question under way
}

// start starts a process that does not listen yet. One goroutine calls each, which may be nil,
// with every report.
func start(s setup, each func(report)) (*process, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	p := &process{answers: make(chan report, 1)}
	p.Process, err = child.Start(func(r report) {
		if each != nil {
			each(r)
		}
		if r.Asked {
			p.answers <- r
		}
	}, serverArgument, string(text))
	if err != nil {
		return nil, err
	}
	return p, nil
}

// ask makes the process report at once; the first time the process listens before that. Call
// it again only after it has returned.
func (p *process) ask(ctx context.Context) (report, error) {
	if _, err := io.WriteString(p.In, "\n"); err != nil {
		return report{}, fmt.Errorf("ask server: %w", err)
	}
	select {
	case r := <-p.answers:
		if r.Err != "" {
			return r, errors.New(r.Err)
		}
		return r, nil
	case <-p.Gone():
		return report{}, fmt.Errorf("ask server: it has ended: %s", p.LastWords())
	case <-ctx.Done():
		return report{}, context.Cause(ctx)
	}
}

// kill ends it with SIGKILL and waits until it is gone. It may be called again.
func (p *process) kill() {
	p.Kill()
	<-p.Gone()
}
