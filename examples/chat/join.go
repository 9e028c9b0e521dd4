//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/replay"
)

const (
	leaveLimit = 3 * time.Second // to wait for acknowledgements
	byeLimit   = time.Second     // to wait for the answer to the close frame

	promptWidth = len("next try in 3610 s") // a server may ask for an hour
)

// join runs `chat join`.
func join(ctx context.Context, url, name string, keep time.Duration, page string, s command.Streams) error {
	if err := checkName(name); err != nil {
		return wrong("-name", err)
	}
	if keep <= 0 {
		return wrong("-keep", fmt.Errorf("must be longer than 0, not %v", keep))
	}
	c, err := newClient(&dialer.WebSocket{
		URL: url, Conn: conn.WebSocketOptions{Limits: conn.Limits{ReadLimit: maxMessage}},
	}, name, keep, screenOn(s), reconnect.RunOptions{
		// The longest wait is 10 s and not the default of 30 s, because a user is waiting.
		Policy: backoff.First(2*time.Second, &backoff.Exponential{Cap: 10 * time.Second}),
	})
	if err != nil {
		return wrong("-url", err)
	}
	defer c.conn.Close()
	c.screen.Start(c.prompt)
	defer c.screen.Close()
	p, err := openPage(page, c.screen.Note, c.register)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := c.talk(ctx, s.In); err != nil {
		return err
	}
	c.leave()
	if lost := c.unsaid(); lost > 0 {
		return fmt.Errorf("%s not acknowledged", count(lost, "message"))
	}
	return nil
}

// screenOn returns a screen with a prompt if the user types on a terminal.
func screenOn(s command.Streams) *terminal.Screen {
	if terminal.Is(s.In) {
		return terminal.NewScreen(s.Out)
	}
	return terminal.NewPlain(s.Out)
}

// unsaid returns how many lines the room has not acknowledged.
func (c *client) unsaid() int {
	s := c.ledger.Stats()
	return c.refused + int(s.Added-s.Acknowledged)
}

// showUnsent shows a line that was not sent, or may or may not have arrived, and why.
func (c *client) showUnsent(text string, perhaps bool, why error) {
	what, reason := "not sent", why.Error()
	switch {
	case perhaps:
		what, reason = "perhaps not sent", "no answer"
	case errors.Is(why, replay.ErrExpired):
		reason = fmt.Sprintf("it waited for more than %v", c.keep)
	case errors.Is(why, net.ErrClosed):
		reason = "no connection"
	}
	c.screen.Note("%s: %s: %q", what, reason, text)
}

// away shows that a wait begins. The Conn calls it.
func (c *client) away(w reconnect.Wait) {
	c.screen.Away(fmt.Sprintf("away, next try in %s", seconds(w.Verdict.RetryAfter+w.Drawn)), w.Cause.Error())
}

// prompt returns what the connection is doing. The text always has the same width, so that
// the screen can overwrite it. The screen calls it.
func (c *client) prompt() string {
	s := c.conn.Status()
	var doing string
	switch s.State {
	case reconnect.StateConnecting:
		doing = "dialing"
		if s.AtGate {
			doing = "at the gate"
		}
	case reconnect.StateOpening:
		doing = "joining"
	case reconnect.StateReady:
		doing = "ready"
	case reconnect.StateWaiting:
		doing = "next try in " + seconds(time.Until(s.Next))
	case reconnect.StateClosed:
		doing = "closed"
	}
	return fmt.Sprintf("%*s > ", promptWidth, doing)
}

// leave waits, up to a limit, until the room has acknowledged everything. Then it closes the
// connection.
func (c *client) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	if n := c.ledger.Stats().Unacked; n > 0 {
		c.screen.Note("leaving within %v, %s to send", leaveLimit, count(n, "message"))
	}
	_ = c.ledger.WaitAll(ctx) // done shows what is left in the end
	ctx, cancel = context.WithTimeout(context.Background(), byeLimit)
	defer cancel()
	_ = c.conn.Shutdown(ctx)
	<-c.conn.Done() // done is not called after this
}

// seconds formats d in whole seconds, rounded up and at least 1.
func seconds(d time.Duration) string {
	return fmt.Sprintf("%d s", max(int((d+time.Second-1)/time.Second), 1))
}

// count formats a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
