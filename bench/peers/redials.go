package main

import (
	"context"
	"fmt"
)

// redial measures connections that the server resets and that are dialed again after a wait.
// Where a peer does not redial the job does it: it learns of the loss, closes, waits and opens.
func (j *job) redial(ctx context.Context) (answer, error) {
	p, t, err := j.peer(j.Peers[0], 0)
	if err != nil {
		return answer{}, err
	}
	ups, downs := newEvent(), newEvent()
	t.onMessage, t.onUp, t.onDown = func([]byte) {}, ups.note, func(error) { downs.note() }
	c, err := p.open(ctx, t)
	if err != nil {
		return answer{}, err
	}
	defer func() { c.Close() }()
	if err := ups.wait(ctx, "a connection"); err != nil {
		return answer{}, err
	}
	again := func() error {
		if err := c.Send([]byte{askReset}); err != nil {
			return err
		}
		if p.redials {
			return ups.wait(ctx, "a connection")
		}
		if err := downs.wait(ctx, "a loss"); err != nil {
			return err
		}
		c.Close()
		pause(ctx, j.Wait)
		opened, err := p.open(ctx, t)
		if err != nil {
			return err
		}
		c = opened
		return ups.wait(ctx, "a connection")
	}
	if err := again(); err != nil { // what is made once
		return answer{}, err
	}
	m, err := newMeter()
	if err != nil {
		return answer{}, err
	}
	for range j.Count {
		if err := again(); err != nil {
			return answer{}, err
		}
	}
	return m.since(j.Count)
}

// event is something that one goroutine notes and another waits for.
type event chan struct{} // of one

func newEvent() event { return make(event, 1) }

func (e event) note() {
	select {
	case e <- struct{}{}:
	default:
	}
}

func (e event) wait(ctx context.Context, what string) error {
	select {
	case <-e:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
	}
}
