package main

import (
	"context"
	"time"
)

// session reads one connection until it is lost.
func (c *loopClient) session(ctx context.Context, t *target, ping bool) error {
	conn := c.conn.Load()
	defer conn.CloseNow()
	if !ping {
		return coderLoop(ctx, conn, t.onMessage)
	}
	over, cancel := context.WithCancel(ctx)
	pinging := make(chan struct{})
	defer func() { cancel(); <-pinging }()
	go func() { // the line above waits for it
		defer close(pinging)
		for pause(over, 30*time.Second); over.Err() == nil; pause(over, 30*time.Second) {
			answered, cancel := context.WithTimeout(over, 10*time.Second)
			err := conn.Ping(answered)
			cancel()
			if err != nil {
				_ = conn.CloseNow() // ends the reader
				return
			}
		}
	}()
	return coderLoop(ctx, conn, t.onMessage)
}

// pause waits for so long, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
