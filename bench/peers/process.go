package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/redial-go/redial/bench/internal/child"
)

// worker follows orders: a process, or in tests this one.
type worker interface {
	do(ctx context.Context, o order) (answer, error)
	end() // and waits until it has ended; it may be called again
}

// process is a child as its parent sees it. It is given one order at a time.
type process struct {
	*child.Process
	answers chan answer // one: the answer to the order under way, or one that came too late
}

// start starts a child.
func start() (*process, error) {
	p := &process{answers: make(chan answer, 1)}
	var err error
	p.Process, err = child.Start(func(a answer) { p.answers <- a }, childArgument, struct{}{})
	return p, err
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
	if _, err := p.In.Write(append(text, '\n')); err != nil {
		p.end()
		return answer{}, fmt.Errorf("%s: the process has ended: %s", o.Do, p.LastWords())
	}
	select {
	case a := <-p.answers:
		if a.Err != "" {
			return a, errors.New(a.Err)
		}
		return a, nil
	case <-p.Gone():
		return answer{}, fmt.Errorf("%s: the process has ended: %s", o.Do, p.LastWords())
	case <-ctx.Done():
		p.end()
		return answer{}, context.Cause(ctx)
	}
}

func (p *process) end() { p.Kill() }
