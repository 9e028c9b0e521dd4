//go:build !js

package conn

import (
	"context"
	"fmt"
)

// Ping implements [Pinger]. Any number of pings may wait: the pong for one also answers those
// before it.
func (c *WebSocket) Ping(ctx context.Context) error {
	if cause := c.wire.ended(); cause != nil {
		return &lostError{"ping", cause}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("ping: %w", context.Cause(ctx))
	}
	p, err := c.wire.pings.send(&c.wire.stream.out)
	if err != nil {
		return &lostError{"ping", c.why(err)}
	}
	defer c.wire.pings.forget(p)
	select {
	case <-p.over:
		if p.err != nil {
			return &lostError{"ping", c.why(p.err)}
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ping: %w", context.Cause(ctx))
	}
}
