//go:build !js

// Chat is a room to talk in, over connections that break. No line is lost silently, and no
// line is shown twice.
//
//	go run ./examples/chat serve [-addr 127.0.0.1:8000] [-log FILE]
//	go run ./examples/chat join [-url ws://127.0.0.1:8000/] [-name NAME]
//
// The client is in this file and in sentlog.go: copy those. protocol.go has the messages.
// serve.go, room.go and logfile.go are the server. join.go, talk.go and screen.go are the
// program around the client, for a user who types.
//
// # The protocol
//
// The library reports the fate of each message: whether this side wrote it to a connection.
// Only the other side knows whether it arrived. So each line that a user types has a number,
// and the room acknowledges the number:
//
//	-> hello   client, name, room, seen   first on each connection; seen is the last line received
//	<- welcome room, id, seq, missed      id is the last number that the room has from this client
//	-> say     id, text
//	<- ack     id                         the room has logged this line and all lines before it
//	<- line    seq, from, id, name, text  to all members, the author too; seq has no gaps
//
// # How the client uses fates
//
// [reconnect.Conn.Send] queues a line, even while there is no session
// ([reconnect.WhenDownKeep]). Then the fate of the line decides what happens to it:
//
//   - written: the sent log keeps it until the room acknowledges it;
//   - unknown: the same, because it may or may not have arrived;
//   - dropped: it was not sent and never will be, and the user sees why.
//
// OnSession runs on each new connection before the queue goes on. It forgets the lines that
// the room has. It sends the other lines that were written or unknown again, in order and
// under the same numbers. The room ignores numbers that it already has, so each line is said
// exactly once and in order. A line that was once written is sent again however late it is.
// Only a line that was never written can expire (-keep).
//
// # What the server remembers
//
// With -log the server writes each line to a file before it acknowledges it, and restores the
// room from that file. So the server may be killed at any moment. It does not sync the file:
// if the machine loses power, the last lines may be gone. Each server needs its own file.
//
// Without -log a new server knows nothing. Clients send again what no server has
// acknowledged, and show no line twice, because they know lines by author and number. But a
// line that the old server acknowledged is lost for a client that was away at that time. Such
// a client tells its user that the room is a new one.
//
// The room keeps the last numbers of 10,000 authors and the last 500 lines. A client that has
// missed more than these tells its user how many. The room does not check who uses a name.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redial-go/redial/reconnect"
)

// client is one member of the room, over any number of connections.
type client struct {
	id, name string
	keep     time.Duration // how long a line may wait for its first write
	conn     *reconnect.Conn
	made     chan struct{} // closed when conn is set, because hello may run before that
	sent     *sentLog
	screen   *screen

	// Only hello and hear, which never run at the same time, use what follows.
	room   string            // the last room; empty before the first welcome
	seen   uint64            // the number of the last line received in it
	heard  map[string]uint64 // the number of the last line shown of each author
	owed   uint64            // the last line that was unacknowledged when this session began; 0: none
	resent int               // how many of those lines are acknowledged by now
}

const maxHeard = 10000 // authors

func newClient(name string, keep time.Duration, s *screen) *client {
	return &client{
		id: rand.Text(), name: name, keep: keep, made: make(chan struct{}),
		sent: newSentLog(), screen: s, heard: map[string]uint64{},
	}
}

// open starts to keep a connection to the room open.
func (c *client) open(d reconnect.Dialer, o reconnect.RunOptions) (err error) {
	o.Trace = &reconnect.Trace{WaitStart: c.away}
	c.conn, err = reconnect.New(d, &reconnect.Options{
		OnSession: c.hello,
		OnMessage: c.hear,
		WhenDown:  reconnect.WhenDownKeep,
		Outbox:    reconnect.Outbox{OnReceipt: c.done, Messages: maxUnsaid + 10, Age: c.keep}, // 10 for /who
		Run:       o,
	})
	if err == nil {
		close(c.made)
	}
	return err
}

// hello makes a new connection ready. It introduces the client, learns what the room has
// from it, and sends the other lines that were written before again. When it has returned,
// the Conn sends what is queued.
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
	c.sent.acknowledged(m.ID)
	if err := o.AwaitReceipts(); err != nil { // so that no line that was written counts as queued
		return err
	}
	again, all, last := c.sent.pending()
	for _, line := range again {
		if err := o.Write(line); err != nil {
			return err
		}
	}
	c.welcomed(m, o.Downtime, all)
	c.owed, c.resent = last, 0
	return nil
}

// welcomed shows that the session begins, and what was missed.
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

// hear handles one message of the room. A message that breaks the protocol ends the session.
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

// show prints a line, unless it was shown before. A line comes twice only if the server has
// restarted without a log: see the package comment.
func (c *client) show(m message) {
	if m.ID <= c.heard[m.From] {
		return
	}
	if len(c.heard) >= maxHeard {
		for author := range c.heard {
			delete(c.heard, author) // any one
			break
		}
	}
	c.heard[m.From] = m.ID
	if m.From == authorOf(c.id) && c.screen.terminal {
		return // the user sees it where it was typed
	}
	c.screen.line(m.Name + ": " + clean(m.Text))
}

// acknowledged forgets the lines up to id. When the room has all lines from before this
// session, it shows how many they were.
func (c *client) acknowledged(id uint64) {
	n := c.sent.acknowledged(id)
	if c.owed == 0 {
		return
	}
	if id <= c.owed {
		c.resent += n
	}
	if id >= c.owed { // greater if the line owed was dropped
		c.owed = 0
		c.screen.note("%s sent", count(c.resent, "message"))
	}
}

// done receives the fate of each message that was queued.
func (c *client) done(_ context.Context, r reconnect.Receipt) {
	text, dropped := c.sent.settle(r)
	switch {
	case dropped:
		c.showUnsent(text, r.Err)
	case r.Fate == reconnect.FateDropped:
		c.screen.note("/who: the server is away")
	}
}

func main() { os.Exit(command()) }

func command() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

const usage = `usage: chat serve [-addr 127.0.0.1:8000] [-log FILE]
       chat join [-url ws://127.0.0.1:8000/] [-name NAME] [-keep 5m]
`

// run returns the exit code: 0 for success, 1 for a failure or if a typed line was not sent,
// 2 for wrong arguments.
func run(ctx context.Context, args []string, stdin, stdout *os.File, stderr io.Writer) int {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("chat "+command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	var do func() error
	switch command {
	case "serve":
		addr := flags.String("addr", "127.0.0.1:8000", "listen on this `address`; port 0 means any free port")
		path := flags.String("log", "", "keep what is said in this `file`, and restore the room from it")
		do = func() error { return serve(ctx, *addr, *path, stdout) }
	case "join":
		url := flags.String("url", "ws://127.0.0.1:8000/", "the server's `address`")
		name := flags.String("name", userName(), "the `name` that others see")
		keep := flags.Duration("keep", 5*time.Minute, "how long a line may wait to be sent while the server is away")
		do = func() error { return join(ctx, *url, *name, *keep, stdin, stdout) }
	case "-h", "-help", "--help", "help":
		fmt.Fprint(stderr, usage)
		return 0
	default:
		if command != "" {
			fmt.Fprintf(stderr, "chat: there is no command %q\n", command)
		}
		fmt.Fprint(stderr, usage)
		return 2
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "chat %s: unexpected arguments %q: everything is given by flags, see -h\n", command, flags.Args())
		return 2
	}
	err := do()
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "chat %s: %v\n", command, err)
	if _, wrong := errors.AsType[*usageError](err); wrong {
		return 2
	}
	return 1
}

// usageError reports a wrong argument.
type usageError struct {
	flag string
	err  error
}

func (e *usageError) Error() string { return e.flag + ": " + e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func userName() string {
	for _, key := range []string{"USER", "USERNAME"} {
		if name := os.Getenv(key); checkName(name) == nil {
			return name
		}
	}
	return "guest"
}
