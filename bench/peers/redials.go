package peers

import (
	"context"
	"fmt"
)

// redial measures connections that are reset and dialed again. A peer that does not
// redial is closed and opened.
func (j *job) redial(ctx context.Context) (answer, error) {
	p, t, err := j.peer(j.Peers[0], 0)
	if err != nil {
		return answer{}, err
	}
	ups := make(chan struct{}, 1)
	t.onMessage = func([]byte) {}
	t.onUp = func() {
		select {
		case ups <- struct{}{}:
		default:
		}
	}
	c, err := p.open(ctx, t)
	if err != nil {
		return answer{}, err
	}
	defer func() { c.Close() }()
	if err := up(ctx, ups); err != nil {
		return answer{}, err
	}
	again := func() error {
		if p.redials {
			if err := c.Send([]byte{askReset}); err != nil {
				return err
			}
			return up(ctx, ups)
		}
		c.Close()
		opened, err := p.open(ctx, t)
		if err != nil {
			return err
		}
		c = opened
		return up(ctx, ups)
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

func up(ctx context.Context, ups <-chan struct{}) error {
	select {
	case <-ups:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a connection: %w", context.Cause(ctx))
	}
}
