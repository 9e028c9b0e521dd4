//go:build !js

// Marketdata keeps order books over a connection that breaks.
//
//	go run ./examples/marketdata
//
// Without flags it runs a drill. It opens a venue, which is a small exchange, on a loopback
// port. The venue misbehaves in seven ways, and the client must survive each. The drill
// takes at most 30 s. The exit code is 0 if the client's books are right in the end.
//
// With -page it shows the connection on a page at that address, such as -page :6060, for as long as
// the program runs.
//
// The client is in client.go, book.go and message.go: copy those. Package subscription keeps it
// subscribed to what it wants, and package replay finds the gaps and asks for snapshots. The
// server is in venue.go and member.go, and the drill in drill.go and audit.go. journal.go, table.go and printer.go record and print what happens.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/reconnect/debug"
)

func main() { os.Exit(command.Main("marketdata", run)) }

func run(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("marketdata", flag.ContinueOnError)
	address := flags.String("page", "", "show the connection on a page at this `address`, such as :6060; without a host it is 127.0.0.1, and port 0 is any free port")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	page, err := debug.New(nil)
	if err != nil {
		return err
	}
	defer page.Close()
	if given["page"] {
		at, err := page.Listen(*address)
		if err != nil {
			return &command.UsageError{Err: fmt.Errorf("-page: %w", err)}
		}
		fmt.Fprintln(s.Out, "page:", at)
	}
	return demo(ctx, s.Out, page)
}
