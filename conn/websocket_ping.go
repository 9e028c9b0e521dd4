//go:build !js

package conn

import (
	"context"
	"fmt"
)

// Ping implements [Pinger]. ctx limits the wait for the answer only; the connection continues when
// ctx ends. Any number of pings may wait: the answer to one answers those before it too. While the peer does
// not read, of many only the last is sent.
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
