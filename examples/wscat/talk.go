//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

const (
	// leaveLimit limits the time to send what is left, and to close the connection. After Ctrl-C, and after
	// -for if nothing is left to send, the limit is command.InterruptLimit.
	leaveLimit = 3 * time.Second

	// endLimit limits all of the end after Ctrl-C and -for, together with what is still to be shown.
	endLimit = 2 * leaveLimit

	// looks is how many looks in a row must find silence for -q, and lateLook how late a look is that
	// is not counted: the process was stopped, or got no processor, and may not have read what came.
	looks    = 4
	lateLook = 100 * time.Millisecond
)

// talk sends the lines of stdin until it is time to go. It returns the exit code, and why it
// is not 0. If not all is shown endLimit after the end of ctx or the time of -for, it ends the
// program. Nothing else ends a write that nobody reads: after -q and Ctrl-D a slow reader gets all.
func (c *client) talk(ctx context.Context, stdin io.Reader) (int, error) {
	interrupted := ctx
	if c.o.length > 0 {
		var stop func()
		ctx, stop = context.WithTimeoutCause(ctx, c.o.length, errors.New("the time of -for is over"))
		defer stop()
	}
	ended := make(chan struct{})
	go func() { // it ends with the program if nobody reads its output
		defer close(ended)
		c.listen(ctx, stdin)
		c.leave(interrupted, ctx.Err() != nil)
		c.finish()
	}()
	select {
	case <-ended:
		return c.outcome()
	case <-ctx.Done():
	}
	select {
	case <-ended:
	case <-time.After(endLimit):
		if !c.show.together {
			fmt.Fprintln(os.Stderr, "wscat: nobody reads standard output: what came last is not shown")
		}
		os.Exit(codeOutput) // because nothing can end a write that waits
	}
	return c.outcome()
}

// listen sends typed lines until it is time to go, and those that were read by then. With -x it sends
// the lines of -x instead.
func (c *client) listen(ctx context.Context, stdin io.Reader) {
	if c.o.execute != nil {
		for _, text := range c.o.execute {
			c.send(ctx, text)
		}
		none := make(chan string)
		close(none)
		c.listenOn(ctx, none)
		return
	}
	in := terminal.NewInput(stdin, c.o.form.lineLimit(c.o.max))
	defer in.Close()
	c.listenOn(ctx, in.Lines())
	for _, line := range in.Rest() {
		c.obey(ctx, line)
	}
}

// listenOn sends typed lines. It returns when the input says so, when ctx ends, when standard
// output has failed, or when the connection has ended for good.
func (c *client) listenOn(ctx context.Context, typed <-chan string) {
	linger := c.o.linger
	step := max(linger/looks, time.Millisecond)
	var look <-chan time.Time // gets a value when it is time to look for silence
	var due time.Time
	var s silence
	for {
		select {
		case line, more := <-typed:
			if more {
				c.obey(ctx, line)
				continue
			}
			if typed = nil; c.show.typed && linger < 0 {
				return // Ctrl-D
			}
		case <-c.settled:
		case <-look:
			look = nil
			if s.look(c.came.Load(), c.shown.Load(), time.Since(due) > lateLook) {
				return
			}
		case <-ctx.Done():
			return
		case <-c.show.out.Failed():
			return
		case <-c.conn.Done():
			return
		}
		if typed == nil && look == nil && linger >= 0 && c.unsettled() == 0 {
			look, due = time.After(step), time.Now().Add(step)
		}
	}
}

// silence counts the looks in a row that have found it.
type silence struct {
	quiet int
	came  int64 // how many messages had come at the last look
}

// look reports whether it has been silent for long enough. There is no silence while a message that has come is not shown,
// because standard output is not read.
func (s *silence) look(came, shown int64, late bool) bool {
	if came != s.came || came != shown || late {
		s.quiet, s.came = 0, came
		return false
	}
	s.quiet++
	return s.quiet == looks
}

// obey sends a typed line. An empty line on a terminal is no message.
func (c *client) obey(ctx context.Context, line string) {
	if c.show.typed {
		c.show.notes.Entered()
		if line == "" {
			c.conn.Kick()
			return
		}
	}
	c.send(ctx, line)
}

// leave sends what is left, up to a limit, and closes the connection. ctx is done after Ctrl-C, and over
// reports whether that or -for is why the program ends.
func (c *client) leave(ctx context.Context, over bool) {
	c.leaving.Store(true)
	limit := leaveLimit
	if over {
		limit = command.InterruptLimit
	}
	if n := c.unsettled(); n > 0 {
		limit = leaveTime(c.until.Load())
		c.conn.Kick()
		if ctx.Err() == nil {
			c.show.leaving(limit, n)
		}
	}
	leaving, stop := command.Leave(ctx, limit, nil)
	defer stop()
	_ = c.conn.Shutdown(leaving) // settle has shown what was not sent; receive still shows what has come
}

// leaveTime returns how long to wait for a connection. It is 0 if the server wants no dial until
// later than that; nil stands for no such wish. The rest of a wait does not count, because Kick
// cuts it.
func leaveTime(until *time.Time) time.Duration {
	if until != nil && time.Until(*until) > leaveLimit {
		return 0
	}
	return leaveLimit
}

// finish waits until everything is shown.
func (c *client) finish() {
	<-c.conn.Done()
	<-c.received
	code, err := c.outcome()
	c.show.end(code, err, c.tally())
	c.show.close()
}

func (c *client) tally() *tally {
	return &tally{Written: c.written.Load(), Dropped: c.dropped.Load(), Unknown: c.unknown.Load()}
}

// outcome returns the exit code, and why it is not 0. The Conn must have ended.
func (c *client) outcome() (int, error) {
	end, ended := errors.AsType[*reconnect.EndError](c.conn.Err())
	connected := c.connected.Load()
	switch {
	case ended && refused(end.Err, connected):
		return codeRefused, fmt.Errorf("refused: %w", end.Err)
	case ended && !connected:
		return codeUnreachable, end.Err
	case !connected:
		if why := c.failure.Load(); why != nil {
			return codeUnreachable, fmt.Errorf("there was no connection: %w", *why)
		}
		return codeUnreachable, errors.New("there was no connection")
	case c.outputError() != nil:
		return codeOutput, fmt.Errorf("standard output: %w", c.outputError())
	case ended && !wellClosed(end.Err):
		return codeLost, fmt.Errorf("lost: %w", end.Err)
	case c.written.Load() < int64(c.typed):
		return codeUnsent, fmt.Errorf("%d of %s not written", int64(c.typed)-c.written.Load(), terminal.Count(c.typed, "message"))
	}
	return codeOK, nil
}

// refused reports whether trying again will not help.
func refused(err error, connected bool) bool {
	class := backoff.Classify(err).Class
	return class == backoff.ClassStop || class == backoff.ClassSlow && !connected
}

// wellClosed reports whether the peer has closed the connection because it was done.
func wellClosed(err error) bool {
	closed, ok := errors.AsType[*conn.CloseError](err)
	return ok && (closed.Code == 1000 || closed.Code == 1005)
}

// outputError returns why standard output could not be written. That its reader has left is
// no error: "wscat URL | head -n 1" has what it wants.
func (c *client) outputError() error {
	select {
	case <-c.show.out.Failed():
		if err := c.show.out.Err(); !errors.Is(err, syscall.EPIPE) {
			return err
		}
	default:
	}
	return nil
}
