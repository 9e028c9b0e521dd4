//go:build !js

package main

import (
	"context"
	"crypto/rand"
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

// client is somebody in the room, by whatever connection.
type client struct {
	id, name string
	keep     time.Duration // how long a line may wait to be sent
	conn     *reconnect.Conn
	made     chan struct{} // closed when conn is set
	journal  *journal
	screen   *screen

	// OnSession and OnMessage own what follows: they never run at the same time.
	room  string            // the one that we have seen, and
	seen  uint64            // the last line in it
	heard map[string]uint64 // the last number of each author
	owed  uint64            // the last line that waited when we came back
	sent  int               // how many of those are said
}

const (
	leaveLimit = 3 * time.Second // for what is unsaid to be said
	byeLimit   = time.Second     // for the peer to answer our goodbye
	maxHeard   = 10000           // authors

	promptWidth = len("next try in 3610 s") // a server may ask for an hour
)

// join is `chat join`.
func join(ctx context.Context, url, name string, keep time.Duration, stdin, stdout *os.File) error {
	if err := checkName(name); err != nil {
		return &usageError{"-name", err}
	}
	if keep <= 0 {
		return &usageError{"-keep", fmt.Errorf("must be longer than 0, not %v", keep)}
	}
	c := newClient(name, keep, newScreen(stdin, stdout))
	err := c.open(&dialer.WebSocket{URL: url, Conn: conn.WebSocketOptions{Limits: conn.Limits{ReadLimit: maxMessage}}}, reconnect.RunOptions{
		// Somebody waits in front of it: 10 s at most, where the default has 30 s.
		Policy: backoff.First(2*time.Second, &backoff.Exponential{Cap: 10 * time.Second}),
	})
	if err != nil {
		return &usageError{"-url", err}
	}
	defer c.conn.Close()
	c.screen.start(c.prompt)
	defer c.screen.close()
	if err := c.talk(ctx, stdin); err != nil {
		c.unanswered()
		return err
	}
	c.leave()
	if lost := c.unanswered(); lost > 0 {
		return fmt.Errorf("%s not sent", count(lost, "message"))
	}
	return nil
}

func newClient(name string, keep time.Duration, s *screen) *client {
	return &client{
		id: rand.Text(), name: name, keep: keep, made: make(chan struct{}),
		journal: newJournal(), screen: s, heard: map[string]uint64{},
	}
}

// open starts to keep a connection to the room open.
func (c *client) open(d reconnect.Dialer, o reconnect.RunOptions) (err error) {
	o.Trace = &reconnect.Trace{WaitStart: c.away}
	c.conn, err = reconnect.New(d, &reconnect.Options{
		OnSession: c.hello,
		OnMessage: c.hear,
		WhenDown:  reconnect.WhenDownKeep,
		Outbox:    reconnect.Outbox{OnReceipt: c.done, Messages: maxUnsaid + 10, Age: c.keep}, // 10 for questions
		Run:       o,
	})
	if err == nil {
		close(c.made)
	}
	return err
}

// hello makes a new connection ready: we say who we are, the room says what it has
// from us, and the rest of what was written is sent again. What is queued follows.
func (c *client) hello(_ context.Context, o *reconnect.Opening) error {
	<-c.made
	if err := o.Write(encode(message{Type: "hello", Client: c.id, Name: c.name, Room: c.room, Seen: c.seen})); err != nil {
		return err
	}
	answer, err := o.Read()
	if err != nil {
		return err
	}
	m, err := decode(answer.Data)
	if err == nil && m.Type != "welcome" {
		err = fmt.Errorf("the first message is %q, not a welcome", m.Type)
	}
	if err != nil {
		return fmt.Errorf("the server does not speak this protocol: %w", err)
	}
	c.journal.acknowledged(m.ID)
	if err := o.AwaitReceipts(); err != nil { // or what was written would look as if it were still queued
		return err
	}
	again, all, last := c.journal.unanswered()
	for _, line := range again {
		if err := o.Write(line); err != nil {
			return err
		}
	}
	c.welcomed(m, o.Downtime, all)
	c.owed, c.sent = last, 0
	return nil
}

// welcomed tells the user where we are, and what is missing.
func (c *client) welcomed(m message, downtime time.Duration, waiting int) {
	text := "here as " + c.name + "; /help lists the commands"
	if c.room != "" {
		text = "back after " + seconds(downtime)
	}
	if waiting > 0 {
		text += ", " + count(waiting, "message") + " to send"
	}
	c.screen.note("%s", text)
	if c.room != "" && c.room != m.Room {
		c.screen.note("the server has forgotten what was said before")
	}
	if m.Missed > 0 {
		c.screen.note("%d lines missed", m.Missed)
	}
	c.room, c.seen = m.Room, m.Seq
}

// hear takes what the room says.
func (c *client) hear(_ context.Context, msg reconnect.Message) {
	m, err := decode(msg.Data)
	switch {
	case err != nil:
	case m.Type == "ack":
		c.acknowledged(m.ID)
	case m.Type == "who":
		c.screen.note("here: %s", clean(list(m.Names)))
	case m.Type == "line" && m.Seq == c.seen+1:
		c.seen++
		c.show(m)
	default:
		err = fmt.Errorf("%s %d after line %d", m.Type, m.Seq, c.seen)
	}
	if err != nil {
		c.conn.Redial(msg.Session, fmt.Errorf("unexpected message from the server: %w", err))
	}
}

// show prints a line. That somebody has said it before happens only in a room that
// has forgotten what it heard: see the package comment.
func (c *client) show(m message) {
	if m.ID <= c.heard[m.From] {
		return
	}
	if len(c.heard) >= maxHeard {
		for author := range c.heard {
			delete(c.heard, author) // any
			break
		}
	}
	c.heard[m.From] = m.ID
	if m.From == authorOf(c.id) && c.screen.terminal {
		return // it is there, where it was typed
	}
	c.screen.line(m.Name + ": " + clean(m.Text))
}

func (c *client) acknowledged(id uint64) {
	n := c.journal.acknowledged(id)
	if c.owed == 0 {
		return
	}
	if id <= c.owed {
		c.sent += n
	}
	if id >= c.owed { // beyond it, if that was dropped
		c.owed = 0
		c.screen.note("%s sent", count(c.sent, "message"))
	}
}

// done is told what became of each message that was queued.
func (c *client) done(_ context.Context, r reconnect.Receipt) {
	text, dropped := c.journal.told(r)
	switch {
	case dropped:
		c.unsaid(text, r.Err)
	case r.Fate == reconnect.FateDropped:
		c.screen.note("/who: the server is away")
	}
}

// unsaid tells the user of a line that was not sent, and why.
func (c *client) unsaid(text string, why error) {
	reason := why.Error()
	switch {
	case errors.Is(why, reconnect.ErrExpired):
		reason = fmt.Sprintf("it waited for more than %v", c.keep)
	case errors.Is(why, net.ErrClosed):
		reason = "no connection"
	}
	c.screen.note("not sent: %s: %q", reason, text)
}

// away tells the user of a wait. It is called by the supervisor.
func (c *client) away(w reconnect.Wait) {
	c.screen.away(fmt.Sprintf("away, next try in %s", seconds(w.Verdict.RetryAfter+w.Drawn)), w.Cause.Error())
}

// prompt says what the connection is doing, always in the same number of letters, so
// that the screen can write it over. The screen calls it.
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

// leave waits until everything is said, but not for long, and says goodbye.
func (c *client) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	if lines, _ := c.journal.rest(); len(lines) > 0 {
		c.screen.note("leaving within %v, %s to send", leaveLimit, count(len(lines), "message"))
	}
	_ = c.journal.empty(ctx) // if it is not, unanswered says so
	ctx, cancel = context.WithTimeout(context.Background(), byeLimit)
	defer cancel()
	_ = c.conn.Shutdown(ctx) // done hears of what it leaves, and the goodbye is a courtesy
	<-c.conn.Done()          // until then receipts may come
}

// unanswered tells the user of the lines that may have been said or not, and returns
// how many of all were not said, as far as we know.
func (c *client) unanswered() int {
	lines, lost := c.journal.rest()
	for _, text := range lines {
		c.screen.note("perhaps not sent: no answer: %q", text)
	}
	return lost + len(lines)
}

// seconds rounds up: there is no "in 0 s".
func seconds(d time.Duration) string {
	return fmt.Sprintf("%d s", max(int((d+time.Second-1)/time.Second), 1))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
