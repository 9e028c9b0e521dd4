//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

const (
	leaveLimit = 3 * time.Second // to wait for acknowledgements
	byeLimit   = time.Second     // to wait for the answer to the close frame

	promptWidth = len("next try in 3610 s") // a server may ask for an hour
)

// join runs `chat join`.
func join(ctx context.Context, url, name string, keep time.Duration, stdin, stdout *os.File) error {
	if err := checkName(name); err != nil {
		return &usageError{"-name", err}
	}
	if keep <= 0 {
		return &usageError{"-keep", fmt.Errorf("must be longer than 0, not %v", keep)}
	}
	c := newClient(name, keep, newScreen(stdin, stdout))
	err := c.open(&dialer.WebSocket{URL: url, Conn: conn.WebSocketOptions{Limits: conn.Limits{ReadLimit: maxMessage}}}, reconnect.RunOptions{
		// The longest wait is 10 s and not the default of 30 s, because a user is waiting.
		Policy: backoff.First(2*time.Second, &backoff.Exponential{Cap: 10 * time.Second}),
	})
	if err != nil {
		return &usageError{"-url", err}
	}
	defer c.conn.Close()
	c.screen.start(c.prompt)
	defer c.screen.close()
	if err := c.talk(ctx, stdin); err != nil {
		c.reportUnsent()
		return err
	}
	c.leave()
	if lost := c.reportUnsent(); lost > 0 {
		return fmt.Errorf("%s not sent", count(lost, "message"))
	}
	return nil
}

// showUnsent shows a line that was not sent, and why.
func (c *client) showUnsent(text string, why error) {
	reason := why.Error()
	switch {
	case errors.Is(why, reconnect.ErrExpired):
		reason = fmt.Sprintf("it waited for more than %v", c.keep)
	case errors.Is(why, net.ErrClosed):
		reason = "no connection"
	}
	c.screen.note("not sent: %s: %q", reason, text)
}

// away shows that a wait begins. The Conn calls it.
func (c *client) away(w reconnect.Wait) {
	c.screen.away(fmt.Sprintf("away, next try in %s", seconds(w.Verdict.RetryAfter+w.Drawn)), w.Cause.Error())
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
	if lines, _ := c.sent.unacknowledged(); len(lines) > 0 {
		c.screen.note("leaving within %v, %s to send", leaveLimit, count(len(lines), "message"))
	}
	_ = c.sent.awaitEmpty(ctx) // on an error reportUnsent shows what is left
	ctx, cancel = context.WithTimeout(context.Background(), byeLimit)
	defer cancel()
	_ = c.conn.Shutdown(ctx) // done receives the fates of what it could not send
	<-c.conn.Done()          // no receipt comes after this
}

// reportUnsent shows the lines that may or may not have arrived. It returns how many lines
// were not acknowledged in all.
func (c *client) reportUnsent() int {
	lines, lost := c.sent.unacknowledged()
	for _, text := range lines {
		c.screen.note("perhaps not sent: no answer: %q", text)
	}
	return lost + len(lines)
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
