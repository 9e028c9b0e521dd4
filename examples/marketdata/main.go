//go:build !js

// Marketdata keeps an order book over a connection that breaks.
//
//	go run ./examples/marketdata
//	go run ./examples/marketdata -url wss://feed.example/v1 -subscribe '{"op":"subscribe"}'
//
// Without flags it opens a small venue on a loopback port, which misbehaves in
// every way that a venue can, and a client that survives it: at most 30 s, exit
// code 0 if the client's book is right in the end. With -url it follows a real
// feed until it is interrupted, and prints a line per second: what has come, by
// which session, and how often something was missed.
//
// What to copy is in this file and in book.go; live.go follows a real feed;
// journal.go has the lines and the table; venue.go and drill.go make the trouble.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// client follows one feed and keeps its book.
type client struct {
	feed    *reconnect.Conn
	book    *book // nil: the feed speaks a language that we do not understand
	asked   bool  // a snapshot is on its way; owned by the goroutine in read
	journal *journal
	rate    rate // of messages; owned by the goroutine that asks for the status
}

// follow starts to keep a connection to a feed open.
func (c *client) follow(d reconnect.Dialer, o *reconnect.Options) (err error) {
	o.Run.Trace = c.journal.trace()
	c.asked = true // by open
	if c.feed, err = reconnect.New(d, o); err == nil {
		c.journal.screen.start(c.status)
	}
	return err
}

// open makes a new connection ready: login, subscribe, each with its answer.
func (c *client) open(_ context.Context, o *reconnect.Opening) error {
	if err := o.Write(text(`{"op":"login","key":"open sesame"}`)); err != nil {
		return err
	}
	if err := await(o, "welcome"); err != nil {
		return err
	}
	if err := o.Write(subscribe); err != nil {
		return err
	}
	return await(o, "subscribed")
}

var subscribe = text(`{"op":"subscribe","book":"GO-USD"}`)

// await reads until the answer comes. What comes before it is part of the
// feed, and handed on.
func await(o *reconnect.Opening, answer string) error {
	for {
		m, err := o.Read()
		if err != nil {
			return err
		}
		var q quote
		switch err := json.Unmarshal(m.Data, &q); {
		case err != nil:
			return fmt.Errorf("while waiting for %q: %w", answer, err)
		case q.Type == answer:
			return nil
		case q.Type == "error":
			return fmt.Errorf("while waiting for %q: the venue says %q", answer, q.Text)
		}
		if err := o.Deliver(m); err != nil {
			return err
		}
	}
}

// read takes what comes, by whatever connection, until there will be nothing more.
func (c *client) read(ctx context.Context) error {
	for m, err := range c.feed.Messages(ctx) {
		var seam *reconnect.Seam
		switch {
		case errors.As(err, &seam): // a connection was lost, and with it whatever comes meanwhile
			if c.book == nil {
				c.journal.seam(seam.Session)
				continue
			}
			c.book.invalidate()
			c.asked = true // by open, on the next connection
		case err != nil:
			return err
		default:
			c.journal.message(m.Session)
			if c.book != nil {
				c.apply(ctx, m)
			}
		}
	}
	return nil
}

// apply brings the book up to date, or finds out that it cannot be.
func (c *client) apply(ctx context.Context, m reconnect.Message) {
	err := c.change(m)
	if err == nil {
		return
	}
	if !errors.Is(err, errStale) {
		c.book.invalidate()
		c.journal.wrong(m.Session, err)
	}
	// Ask for a snapshot. If that fails the session is not ready yet, and the next
	// update brings us here again; or it is lost, and a seam comes.
	if !c.asked {
		c.asked = c.feed.Write(ctx, subscribe) == nil
	}
}

func (c *client) change(m reconnect.Message) error {
	var q quote
	if err := json.Unmarshal(m.Data, &q); err != nil {
		return err
	}
	switch q.Type {
	case "update":
		return c.book.update(m.Session, &q)
	case "snapshot":
		missed, err := c.book.reset(m.Session, &q)
		if err == nil {
			c.asked = false
			c.journal.resync(m.Session, q.Seq, missed)
		}
		return err
	case "error": // so no snapshot will come
		c.feed.Redial(m.Session, fmt.Errorf("the venue says %q", q.Text))
	}
	return nil
}

// status is the line at the bottom of a terminal. One goroutine asks for it.
func (c *client) status() string {
	s := c.feed.Status()
	line := fmt.Sprintf("%7.3fs  %-10v  session %d, %.0f msg/s", time.Since(c.journal.start).Seconds(), s.State, s.Session,
		c.rate.of(c.feed.Stats().Received, time.Now()))
	if s.State == reconnect.StateWaiting {
		line += fmt.Sprintf(", next try in %.1fs", max(time.Until(s.Next), 0).Seconds())
	}
	if c.book != nil {
		line += ", " + c.book.view().String()
	}
	return short(line, 79)
}

// leave ends the connection politely, if the peer lets us.
func (c *client) leave() {
	c.journal.leaving()
	c.journal.line("leaving", "within 2s")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := c.feed.Shutdown(ctx); err != nil {
		c.journal.line("closed", "without the peer's answer: %v", err)
	}
}

func text(s string) conn.Message { return conn.Message{Type: conn.Text, Data: []byte(s)} }

// demo has a venue of its own, and a drill.
func demo(ctx context.Context, stdout *os.File) int {
	v, err := openVenue()
	if err != nil {
		fmt.Fprintln(stdout, "FAILED: venue:", err)
		return 1
	}
	defer v.close()
	c := &client{book: &book{}, journal: newJournal(stdout, true)}
	c.journal.line("VENUE", "opens at ws://%s/feed", v.addr)
	err = c.follow(&dialer.WebSocket{
		URL:  "ws://" + v.addr + "/feed",
		Conn: conn.WebSocketOptions{Limits: conn.Limits{ReadLimit: 1 << 20}}, // the default is 16 MiB
	}, &reconnect.Options{
		OnSession: c.open,
		// Small numbers, since there are 30 s for everything. A real feed keeps the
		// defaults, as live does: its server has to bear all its clients at once.
		Liveness: reconnect.Liveness{Limit: 1500 * time.Millisecond},
		Run: reconnect.RunOptions{
			Policy:      backoff.First(300*time.Millisecond, &backoff.Exponential{Base: 100 * time.Millisecond, Cap: time.Second}),
			StableAfter: stableAfter,
		},
	})
	if err != nil {
		fmt.Fprintln(stdout, "FAILED: client:", err)
		return 1
	}
	reading := make(chan error, 1)
	go func() { reading <- c.read(context.Background()) }() // received below
	d := &drill{venue: v, client: c}
	err = d.run(ctx)
	c.leave()
	<-reading
	c.journal.close()
	c.journal.table(stdout)
	d.table(stdout)
	switch {
	case errors.Is(err, errInterrupted):
		fmt.Fprintf(stdout, "\n%v after %d of %d\n", err, len(d.results), len(d.script()))
		return 1
	case err != nil:
		fmt.Fprintf(stdout, "\nFAILED: %v\n", err)
		return 1
	}
	fmt.Fprintf(stdout, "\nok: all %d survived, the book equals the venue's, no message of an old session was applied\n", len(d.results))
	return 0
}

const stableAfter = time.Second

const usage = `usage: marketdata [-url ADDRESS [-subscribe MESSAGE]]

Without flags it runs a client against a venue of its own that misbehaves, for at
most 30 s. With -url it follows a real feed until Ctrl-C and prints a line per second.

`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout *os.File, stderr io.Writer) int {
	flags := flag.NewFlagSet("marketdata", flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("url", "", "follow the feed at this `address`, which begins with ws:// or wss://")
	subscription := flags.String("subscribe", "", "send this `message` first on each new connection; needs -url")
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "marketdata: unexpected arguments %q: everything is given by flags, see -h\n", flags.Args())
		return 2
	case given["subscribe"] && !given["url"]:
		fmt.Fprintln(stderr, "marketdata: -subscribe needs -url, because the client of the built-in venue subscribes by itself")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills
	if given["url"] {
		return live(ctx, stdout, stderr, *url, *subscription)
	}
	return demo(ctx, stdout)
}
