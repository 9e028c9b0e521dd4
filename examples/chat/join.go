package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/ledger"
)

// leaveLimit limits the wait for acknowledgements after the end of the input. The answer to the close frame,
// and all of the end after Ctrl-C, have command.InterruptLimit.
const leaveLimit = 3 * time.Second

// join is `chat join`.
func join(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("chat join", flag.ContinueOnError)
	url := flags.String("url", "ws://127.0.0.1:8000/", "the server's `address`")
	name := flags.String("name", "guest", "the `name` that others see")
	keep := flags.Duration("keep", 5*time.Minute, "how long to try to send a line")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	if err := checkName(*name); err != nil {
		return wrong("-name", err)
	}
	if *keep <= 0 {
		return wrong("-keep", fmt.Errorf("must be longer than 0, not %v", *keep))
	}
	screen := terminal.NewPlain(s.Out)
	if terminal.Is(s.In) {
		screen = terminal.NewScreen(s.Out)
	}
	c, err := newClient(&dialer.WebSocket{
		URL: *url, Conn: conn.WebSocketOptions{Limits: conn.Limits{ReadLimit: maxMessage}},
	}, *name, *keep, screen, reconnect.RunOptions{})
	if err != nil {
		return wrong("-url", err)
	}
	defer c.conn.Close()
	screen.Start(func() string { return terminal.State(c.conn.Status()) + " > " })
	defer screen.Close()
	if err := c.talk(ctx, s.In); err != nil {
		return err
	}
	c.leave(ctx)
	select {
	case <-screen.Failed():
		return &command.OutputError{Err: screen.Err()}
	default:
	}
	if lost := c.unsaid(); lost > 0 {
		return fmt.Errorf("%s not acknowledged", terminal.Count(lost, "message"))
	}
	return nil
}

// talk says typed lines until the input or ctx ends, or the screen fails. It returns an error if
// the connection is closed first.
func (c *client) talk(ctx context.Context, stdin io.Reader) error {
	in := terminal.NewInput(stdin, maxText)
	defer in.Close()
	watched, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() {
		select {
		case <-c.screen.Failed():
			stop()
		case <-watched.Done():
		}
	})
	in.Each(watched, c.conn.Done(), func(text string) {
		c.screen.Entered()
		c.say(ctx, text)
	})
	select {
	case <-c.conn.Done():
		return c.conn.Err()
	default:
		return nil
	}
}

// say sends a typed line. While there is no room for it, say waits, until ctx ends.
func (c *client) say(ctx context.Context, typed string) {
	text := sayable(typed)
	switch {
	case len(text) > maxText:
		c.screen.Note("not sent: longer than %d bytes: it begins with %.20q", maxText, text)
		return
	case text == "":
		c.conn.Kick()
		return
	}
	_, err := c.ledger.Add([]byte(text)) // also if ctx has just ended: the line was typed before
	if errors.Is(err, ledger.ErrFull) {
		_, err = c.ledger.AddWait(ctx, []byte(text))
	}
	if err != nil {
		c.refused++
		c.done(ledger.Settled{Entry: ledger.Entry{Record: ledger.Record{Data: []byte(text)}}, Outcome: ledger.OutcomeRefused, Err: err})
	}
}

// sayable returns a typed line as it is sent. It may be empty, or too long.
func sayable(typed string) string {
	text := strings.ToValidUTF8(typed, "\uFFFD") // as JSON does, but before the length is checked
	if len(text) > maxText {
		return text
	}
	return strings.TrimSpace(text)
}

// unsaid returns how many lines the room has not acknowledged.
func (c *client) unsaid() int {
	s := c.ledger.Stats()
	return c.refused + int(s.Added-s.Outcomes[ledger.OutcomeAcknowledged])
}

// away shows that a wait begins. The Conn calls it.
func (c *client) away(w reconnect.WaitStart) {
	c.screen.Away(fmt.Sprintf("away, next try in %s", terminal.Seconds(w.Verdict.RetryAfter+w.Drawn)), w.Cause.Error())
}

// leave waits, up to a limit, until the room has acknowledged everything. Then it closes the
// connection.
func (c *client) leave(ctx context.Context) {
	leaving, stop := command.Leave(ctx, leaveLimit, nil)
	defer stop()
	if n := c.ledger.Stats().Unacked; n > 0 && ctx.Err() == nil {
		c.screen.Note("leaving within %v, %s to send", leaveLimit, terminal.Count(n, "message"))
	}
	_ = c.ledger.WaitAll(leaving) // done shows what is left in the end
	if ctx.Err() == nil {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), command.InterruptLimit)
		defer cancel()
		leaving = bye
	}
	_ = c.conn.Shutdown(leaving)
	<-c.conn.Done() // done is not called after this
}
