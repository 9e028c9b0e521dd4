package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect"
)

// maxLine is the length of the longest line that is sent or received, in bytes.
const maxLine = 4096

// talk sends the lines of the input and prints the lines of the server, until the input or ctx
// ends, or the output fails.
func talk(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("lines talk", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:7000", "the server's `address`")
	ping := flags.String("ping", "", "send this `line`, which the server answers, when it has been silent for a while; default: none")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &talker{out: s.Out, notes: s.Notes, cancel: cancel}
	c, err := reconnect.New(
		&dialer.Framed{Address: *addr, Framer: conn.Lines{Limit: maxLine}},
		&reconnect.Options{
			OnMessage: t.print,
			WhenDown:  reconnect.WhenDownKeep,
			Outbox:    reconnect.Outbox{OnReceipt: t.done, Messages: 100},
			Liveness:  liveness(*ping),
			Run:       reconnect.RunOptions{Trace: t.trace()},
		})
	if err != nil {
		return err
	}
	defer c.Close()
	send := func(line string) {
		out := reconnect.Outgoing{Message: conn.TextMessage(line)}
		err := c.Send(out) // also after Ctrl-C, because the line was typed before
		if errors.Is(err, reconnect.ErrOutboxFull) {
			err = c.SendWait(ctx, out) // a pipe is faster than any server
		}
		if err != nil {
			t.done(ctx, reconnect.Receipt{Outgoing: out, Fate: reconnect.FateDropped, Err: err})
		}
	}
	in := terminal.NewInput(s.In, maxLine)
	defer in.Close()
	in.Each(ctx, c.Done(), send)
	select {
	case <-c.Done():
		return c.Err()
	default:
	}
	err = end(ctx, c)
	if failed, ok := errors.AsType[*command.OutputError](context.Cause(ctx)); ok {
		return failed
	}
	if n := t.unsent.Load(); n > 0 {
		return fmt.Errorf("lines that were not sent: %d", n)
	}
	return err
}

// liveness returns a probe that sends line, or the default if line is empty.
func liveness(line string) reconnect.Liveness {
	if line == "" {
		return reconnect.Liveness{}
	}
	return reconnect.Liveness{
		Probe: func(_ context.Context, write func(conn.Message) error) error {
			return write(conn.Message{Type: conn.Text, Data: []byte(line)})
		},
	}
}

// endLimit limits the end after the input has ended. After Ctrl-C, or if the output has failed, the limit is
// command.InterruptLimit.
const endLimit = 5 * time.Second

// end sends what is still queued, closes this side's half of the connection, and reads until
// the server has closed its half.
func end(ctx context.Context, c *reconnect.Conn) error {
	late := errors.New("answers may be missing: the server was not done in time")
	leaving, stop := command.Leave(ctx, endLimit, late)
	defer stop()
	err := c.Shutdown(leaving)
	<-c.Done() // no receipt comes after this
	if errors.Is(err, late) {
		return late
	}
	return nil // all was sent, or done has counted it, so it does not matter how the server ended the connection
}

// talker prints messages and notes for the user. Any goroutine may call its methods.
type talker struct {
	mu         sync.Mutex // guards both writers
	out, notes io.Writer

	cancel context.CancelCauseFunc // ends talk when out cannot be written
	unsent atomic.Int64            // the number of lines whose fate is not that they were written
}

func (t *talker) print(_ context.Context, m reconnect.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := fmt.Fprintf(t.out, "%s\n", m.Data); err != nil {
		t.cancel(&command.OutputError{Err: err})
	}
}

func (t *talker) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.notes, "-- "+format+"\n", args...)
}

// done receives the fate of each line. It does not send a line again whose fate is unknown,
// because the server might answer it twice.
func (t *talker) done(_ context.Context, r reconnect.Receipt) {
	if r.Fate == reconnect.FateWritten {
		return
	}
	t.unsent.Add(1)
	why, what := r.Err, "not sent"
	if errors.Is(why, net.ErrClosed) {
		why = errors.New("the end came first")
	}
	if r.Fate == reconnect.FateUnknown {
		what = "perhaps not sent"
	}
	t.note("%s: %q: %v", what, r.Outgoing.Data, why)
}

func (t *talker) trace() *reconnect.Trace {
	return &reconnect.Trace{
		SessionReady: func(s *reconnect.Session) { t.note("connected") },
		WaitStart: func(w reconnect.WaitStart) {
			wait := w.Verdict.RetryAfter + w.Drawn
			t.note("away: %v; next try in %v", w.Cause, wait.Round(100*time.Millisecond))
		},
	}
}
