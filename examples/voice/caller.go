package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// caller is the client of a voice service.
type caller struct {
	line   *reconnect.Conn
	frames *frames
	rotate bool   // heed the warnings; set before call
	handle string // of the call; only open uses it
}

// newCaller connects to a service. It sets OnSession in o. The caller then calls call.
func newCaller(d reconnect.Dialer, f *frames, o *reconnect.Options) (c *caller, err error) {
	c = &caller{frames: f, rotate: true}
	o.OnSession = c.open
	c.line, err = reconnect.New(d, o)
	return c, err
}

// call holds a call of this length, and ends the connection.
func (c *caller) call(ctx context.Context, length time.Duration) error {
	timed, stop := context.WithTimeoutCause(ctx, length+10*time.Second, errors.New("the last frames have not come within 10 s"))
	defer stop()
	ctx, cancel := context.WithCancelCause(timed)
	var speaking sync.WaitGroup
	speaking.Go(func() {
		if err := c.speak(ctx, uint64(length/every)); err != nil {
			cancel(err)
		}
	})
	err := c.listen(ctx)
	cancel(err) // because there is nobody to speak to
	speaking.Wait()
	leave, left := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer left()
	c.line.Shutdown(leave) // its error is that the service has not answered in time
	return err
}

// open begins the call on a new connection, or resumes it. If this session is the answer to a
// warning, the handle is the warning's. Otherwise it is the handle of the last "ready".
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
		if answer, err := decode(m.Data); m.Type == conn.Text && err == nil && answer.Type == "ready" {
			c.handle = answer.Handle
			return nil
		}
		if err := o.Deliver(m); err != nil { // it belongs to the call
			return err
		}
	}
}

// speak sends frames and then hangs up.
func (c *caller) speak(ctx context.Context, frames uint64) error {
	if err := c.line.AwaitReady(ctx); err != nil {
		return err
	}
	beat(ctx, func(n uint64) bool {
		c.frames.toService.send()
		// If Write fails the frame is lost, because sound that is late is of no use. While
		// one session replaces another Write does not fail: it goes by either of them, or waits.
		_ = c.line.Write(ctx, conn.Message{Type: conn.Binary, Data: frame(n)})
		return n < frames
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
			c.frames.toCaller.receive(n)
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
