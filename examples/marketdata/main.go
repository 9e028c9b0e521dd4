//go:build !js

// Marketdata keeps order books over a connection that breaks.
//
//	go run ./examples/marketdata
//	go run ./examples/marketdata -url wss://feed.example/v1 -subscribe '{"op":"subscribe"}'
//
// Without flags it runs a drill. It opens a venue, which is a small exchange, on a loopback
// port. The venue misbehaves in seven ways, and the client must survive each. The drill
// takes at most 30 s. The exit code is 0 if the client's books are right in the end.
//
// With -page it shows the connection on a page at that address, such as -page :6060, for as long as
// the program runs.
//
// With -url it follows a real feed until you interrupt it. It prints one line per second:
// what has arrived, in which session, and how often something was missed.
//
// The client is in client.go, book.go and message.go: copy those. Package subscription keeps it
// subscribed to what it wants, and package replay finds the gaps and asks for snapshots. The
// server is in venue.go and member.go, and the drill in drill.go and audit.go. live.go follows
// a real feed; journal.go, table.go and printer.go record and print what happens.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/redial-go/redial/reconnect/debug"
)

const usage = `usage: marketdata [-url ADDRESS [-subscribe MESSAGE]] [-page ADDRESS]

Without flags it runs a client against a venue of its own that misbehaves, for at
most 30 s. With -url it follows a real feed until Ctrl-C and prints a line per second.

`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout *os.File, stderr io.Writer) int {
	flags := flag.NewFlagSet("marketdata", flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("url", "", "follow the feed at this `address`, which begins with ws:// or wss://")
	subscription := flags.String("subscribe", "", "send this `message` first on each new connection; needs -url")
	address := flags.String("page", "", "show the connection on a page at this `address`, such as :6060; without a host it is 127.0.0.1, and port 0 is any free port")
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
	page, err := debug.New(nil)
	if err == nil && given["page"] {
		var at string
		if at, err = page.Listen(*address); err == nil {
			fmt.Fprintln(stdout, "page:", at)
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "marketdata: -page:", err)
		return 2
	}
	defer page.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills
	if given["url"] {
		return live(ctx, stdout, stderr, page, *url, *subscription)
	}
	return demo(ctx, stdout, page)
}
