package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/command"
)

// get prints the answer of an HTTP server. While the server is away, it keeps dialing.
func get(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("lines get", flag.ContinueOnError)
	limit := flags.Duration("for", 0, "give up after this `long`; default: after 127 s")
	if err := command.Parse(flags, args, s, "URL"); err != nil {
		return err
	}
	d := &dialer.Dialer{
		MaxElapsed: *limit,
		OnProgress: func(p dialer.Progress) {
			if !p.Done {
				fmt.Fprintf(s.Notes, "-- away: %v; next try in %v\n", p.Err, p.Wait.Round(100*time.Millisecond))
			}
		},
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // which has HTTP/2, a proxy and limits
	transport.DialContext = d.DialContext
	defer transport.CloseIdleConnections() // also ends a dial that no request waits for any more
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, flags.Arg(0), nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", flags.Arg(0), answer.Status)
	}
	_, err = io.Copy(s.Out, answer.Body)
	return err
}
