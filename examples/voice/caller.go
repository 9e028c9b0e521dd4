//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// caller is the client of a voice service.
type caller struct {
	line   *reconnect.Conn
	rotate bool   // a warning is heeded
	handle string // of the call; only open uses it
	said   tally  // the frames of the caller
	heard  tally  // those of the service
}

// newCaller begins a call. The caller's Conn must be closed.
func newCaller(d reconnect.Dialer, p *plan) (c *caller, err error) {
	c = &caller{rotate: p.rotate}
	c.line, err = reconnect.New(d, &reconnect.Options{
		OnSession: c.open,
		Rotate:    reconnect.Rotation{Overlap: p.overlap},
		Run:       reconnect.RunOptions{Rand: p.rand, Trace: p.trace},
	})
	return c, err
}

// open begins the call on a new connection, or resumes it. The handle comes with the warning
// to which this session is the answer. If the last session was lost without one, the handle is
// the one that the service has given before.
func (c *caller) open(ctx context.Context, o *reconnect.Opening) error {
	handle, warned := reconnect.HintFrom(ctx).(string)
	if !warned {
		handle = c.handle
	}
	if err := o.Write(control{Type: "setup", Handle: handle}.message()); err != nil {
		return err
	}
	for {
		m, err := o.Read()
		if closed, ok := errors.AsType[*conn.CloseError](err); ok && closed.Code == noSuchCall {
			return backoff.Permanent(err) // there is nothing to resume
		}
		if err != nil {
			return err
		}
		if m.Type == conn.Text {
			answer, err := decode(m.Data)
			if err != nil {
				return err
			}
			if answer.Type == "ready" {
				c.handle = answer.Handle
				return nil
			}
		}
		if err := o.Deliver(m); err != nil { // it belongs to the call
			return err
		}
	}
}

// speak sends frames and then hangs up.
func (c *caller) speak(ctx context.Context, frames int) error {
	if err := c.line.AwaitReady(ctx); err != nil {
		return err
	}
	beat(ctx, func(n uint64) bool {
		c.said.frame(n)
		// If Write fails the frame is lost, because sound that is late is of no use. While
		// one session replaces another Write does not fail: it goes by either of them, or waits.
		_ = c.line.Write(ctx, conn.Message{Type: conn.Binary, Data: frame(n)})
		return n < uint64(frames)
	})
	for ctx.Err() == nil {
		if err := c.line.AwaitReady(ctx); err != nil {
			return err
		}
		if c.line.Write(ctx, control{Type: "hangUp"}.message()) == nil {
			return nil
		}
	}
	return context.Cause(ctx)
}

// listen hears the service until it says goodbye.
func (c *caller) listen(ctx context.Context) error {
	for m, err := range c.line.Messages(ctx) {
		_, seam := errors.AsType[*reconnect.Seam](err)
		switch {
		case seam: // the frames that were lost there are counted in the end
		case err != nil:
			return err
		case m.Type == conn.Binary:
			n, err := number(m.Data)
			if err != nil {
				return err
			}
			c.heard.frame(n)
		default:
			q, err := decode(m.Data)
			if err != nil {
				return err
			}
			switch q.Type {
			case "goAway":
				c.heed(m.Session, q)
			case "goodbye":
				return nil
			}
		}
	}
	return errors.New("the stream of messages has ended without a word") // it never does
}

// heed answers the warning that a session will end: it asks for another one, which begins within
// half of the time that is left. The other half is a reserve.
func (c *caller) heed(session uint64, q control) {
	left := time.Duration(q.TimeLeft) * time.Millisecond
	if c.rotate {
		c.line.Rotate(session, reconnect.Advice{
			Cause: fmt.Errorf("the service ends it in %v", left),
			By:    time.Now().Add(left / 2),
			Hint:  q.Handle,
		})
	}
}
