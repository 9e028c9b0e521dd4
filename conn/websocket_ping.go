//go:build !js

package conn

import (
	"context"
	"fmt"
)

// Ping implements [Pinger]. ctx limits the wait for the answer only; the connection continues when
// ctx ends. Any number of pings may wait: the answer to one answers those before it too.
func (c *WebSocket) Ping(ctx context.Context) error {
	if cause := c.wire.ended(); cause != nil {
		return &lostError{"ping", cause}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("ping: %w", context.Cause(ctx))
	}
	p := c.wire.pings.begin()
	defer c.wire.pings.forget(p)
	if err := c.wire.stream.out.control(opPing, []byte(p.payload)); err != nil {
		return &lostError{"ping", c.why(err)}
	}
	select {
	case err := <-p.answer:
		if err != nil {
			err = &lostError{"ping", c.why(err)}
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("ping: %w", context.Cause(ctx))
	}
}
