//go:build !js

package conn

import (
	"context"
	"fmt"
	"time"
)

// Ping implements [Pinger]. The ping is written under coder/websocket's limit of 5 s, after
// which the connection is closed. ctx limits the wait for the answer only; the connection
// goes on when ctx ends. Any number of pings may wait.
func (c *WebSocket) Ping(ctx context.Context) error {
	if cause := c.wire.ended(); cause != nil {
		return &lostError{"ping", cause}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("ping: %w", context.Cause(ctx))
	}
	answer := answerContext{caller: ctx, done: make(chan struct{})}
	err := c.ws.Ping(&answer)
	if answer.stop != nil && !answer.stop() {
		<-answer.done
	}
	switch {
	case err == nil:
		return nil
	case answer.Err() != nil:
		return fmt.Errorf("ping: %w", context.Cause(ctx))
	}
	return &lostError{"ping", c.why(err)}
}

// answerContext is the context of a ping. It ends with the context of the caller, but only
// once the ping is being written, and a context derived from it does not end.
// coder/websocket derives the context for writing a frame, whose end would end the
// connection, and waits for the answer under answerContext itself. So no goroutine
// outlives a ping without an answer.
type answerContext struct {
	caller context.Context
	done   chan struct{}
	stop   func() bool
}

// AfterFunc never calls f. context.WithTimeout calls AfterFunc when it derives a context.
// From that moment on done may be closed, but not earlier, because WithTimeout derives
// nothing from a context that is done already.
func (a *answerContext) AfterFunc(func()) (stop func() bool) {
	if a.stop == nil {
		a.stop = context.AfterFunc(a.caller, func() { close(a.done) })
	}
	return func() bool { return true }
}

func (a *answerContext) Done() <-chan struct{} { return a.done }

func (a *answerContext) Err() error {
	select {
	case <-a.done:
		return a.caller.Err()
	default:
		return nil
	}
}

func (a *answerContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (a *answerContext) Value(any) any               { return nil }
