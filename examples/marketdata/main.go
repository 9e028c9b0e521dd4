//go:build !js

// Marketdata keeps order books over a connection that breaks.
//
//	go run ./examples/marketdata
//
// It opens a small exchange on a loopback port (package examples/venue), follows it, and has it
// misbehave in seven ways, one after the other. After each the books must be right again. Then the
// client replaces its session, by which no book becomes stale. The exit code is 0 if the books are
// those of the exchange in the end. All of it takes about 17 s. It prints a line for each trouble, and
// at the end a table: what happened, after which time the client had noticed it and was back, how many
// updates it had missed, and after which time all books were right. With -v it also prints the log of
// the connection.
//
// With -page it shows the connection on a page at that address, such as -page :6060, and repeats all
// this until it is interrupted. It prints the link with which a browser may open the page.
//
// The client is package examples/books: copy that. trouble.go has the ways in which the exchange
// misbehaves, and market.go its server and the login.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/redial-go/redial/examples/books"
	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/venue"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/debug"
)

func main() { os.Exit(command.Main("marketdata", command.Checked(run))) }

func run(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("marketdata", flag.ContinueOnError)
	command.About(flags, `Keeps order books over a connection to an exchange on this machine, which misbehaves in seven ways.
Ends after about 17 s (with -page: when it is interrupted), with exit code 0 if the books are those of the exchange.
`)
	address := flags.String("page", "", "show the connection on a page at this `address`, such as :6060, until the program is interrupted; without a host it is 127.0.0.1, and port 0 is any free port")
	verbose := flags.Bool("v", false, "print the log of the connection and of the books")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	token := rand.Text()
	page := debug.New(&debug.Options{Token: token})
	defer page.Close()
	if *address != "" {
		at, err := page.Listen(*address)
		if err != nil {
			return &command.UsageError{Err: fmt.Errorf("-page: %w", err)}
		}
		fmt.Fprintln(s.Out, "page:", at+"?token="+token) // for who runs it, and for this run only
	}
	m, err := openMarket(venue.New(&venue.Options{Tick: 5 * time.Millisecond}))
	if err != nil {
		return fmt.Errorf("venue: %w", err)
	}
	defer m.close()
	log := slog.New(slog.DiscardHandler)
	if *verbose {
		log = slog.New(slog.NewTextHandler(s.Out, nil))
	}
	return trade(ctx, m, page, *address != "", log, newReport(s.Out))
}

// trade follows m while it misbehaves, once or again and again.
func trade(ctx context.Context, m *market, page *debug.Page, again bool, log *slog.Logger, r *report) error {
	c, err := books.Follow(m.dialer(), &reconnect.Options{
		// The venue allows 5 messages in any second, by the time at which they arrive. The interval is
		// longer here, for a network whose delay varies by 200 ms at most.
		Pace: budget.Window{N: 5, Per: 1200 * time.Millisecond},
		// These numbers are small so that the program ends soon. Keep the defaults for a real feed,
		// because its server must serve all its clients at once.
		Liveness: reconnect.Liveness{Limit: 1500 * time.Millisecond},
		Rotate:   reconnect.Rotation{After: 24 * time.Hour, Drain: 300 * time.Millisecond}, // then the venue ends a connection
		Run: reconnect.RunOptions{
			Policy: backoff.First(300*time.Millisecond, &backoff.Exponential{Base: 100 * time.Millisecond, Cap: time.Second}),
			Trace:  reconnect.Log(log),
		},
	})
	if err != nil {
		return err
	}
	page.Register("feed", c.Feed, &debug.ConnOptions{Subscriptions: func() (wanted, held int) {
		stats := c.Set.Stats()
		return stats.Wanted, stats.Held
	}})
	defer c.Feed.Watch(r.trace())()
	t := &tour{market: m, client: c, log: log, report: r}
	read := make(chan error, 1)
	go func() { read <- c.Read(context.Background(), t.seen) }() // <-read waits for it
	for err = t.run(ctx); again && err == nil; err = t.run(ctx) {
		m.Resume()
	}
	leave, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c.Feed.Shutdown(leave) // its error is that the venue has not answered in time
	<-read
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}
