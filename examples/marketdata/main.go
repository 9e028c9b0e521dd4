//go:build !js

// Marketdata keeps an order book over a connection that breaks.
//
//	go run ./examples/marketdata
//	go run ./examples/marketdata -url wss://feed.example/v1 -subscribe '{"op":"subscribe"}'
//
// Without flags it runs a drill. It opens a venue, which is a small exchange, on a loopback
// port. The venue misbehaves in seven ways, and the client must survive each. The drill
// takes at most 30 s. The exit code is 0 if the client's book is right in the end.
//
// With -url it follows a real feed until you interrupt it. It prints one line per second:
// what has arrived, in which session, and how often something was missed.
//
// The client is in this file and in book.go: copy those. The server is in venue.go and
// member.go, and the drill in drill.go. live.go follows a real feed; journal.go, table.go
// and printer.go record and print what happens.
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
	"github.com/redial-go/redial/reconnect"
)

// client follows one feed and keeps its book.
type client struct {
	feed    *reconnect.Conn
	book    *book // nil if the feed's messages are not the venue's
	asked   bool  // a snapshot is on its way; only the goroutine in read uses it
	journal *journal
	rate    rate // of messages; only the goroutine that calls status uses it
}

// follow starts to keep a connection to a feed open.
func (c *client) follow(d reconnect.Dialer, o *reconnect.Options) (err error) {
	o.Run.Trace = c.journal.trace()
	c.asked = true // because open asks
	if c.feed, err = reconnect.New(d, o); err == nil {
		c.journal.printer.start(c.status)
	}
	return err
}

// open logs in and subscribes on a new connection. It waits for both answers.
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

// await reads until the answer arrives. Messages that arrive before it belong to the feed,
// so await delivers them to the reader.
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

// read applies messages until no more can come, on any number of connections. A seam is the
// place between the last message of one connection and the first of the next: messages may
// be missing there.
func (c *client) read(ctx context.Context) error {
	for m, err := range c.feed.Messages(ctx) {
		seam, lost := errors.AsType[*reconnect.Seam](err)
		switch {
		case lost && c.book == nil:
			c.journal.seam(seam.Session)
		case lost:
			c.book.invalidate()
			c.asked = true // because open asks on the next connection
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

// apply changes the book by one message. If it cannot, it asks for a snapshot.
func (c *client) apply(ctx context.Context, m reconnect.Message) {
	err := c.change(m)
	if err == nil {
		return
	}
	if !errors.Is(err, errStale) {
		c.book.invalidate()
		c.journal.wrong(m.Session, err)
	}
	// If Write fails, either the session is not ready yet, and the next update leads here
	// again; or the session is lost, and a seam follows.
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
	case "error": // no snapshot will come in this session
		c.feed.Redial(m.Session, fmt.Errorf("the venue says %q", q.Text))
	}
	return nil
}

// leave closes the connection. It gives the peer 2 s to answer the close frame.
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
