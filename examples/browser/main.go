//go:build !js

// Browser follows a feed from a page, by redial on js/wasm.
//
//	go run ./examples/browser
//
// It builds the program of the page with the go tool, serves it on a loopback port together with
// a small exchange, and prints the address. Open that in a browser. The page shows three order
// books, the state of its connection with a countdown to the next dial, each seam, and what the
// browser reports: a book in which something may be missing is marked stale until it is whole
// again. Buttons make the exchange misbehave. It ends by Ctrl-C.
//
// The program is in the directory page, of which client.go and lifecycle.go are the parts to
// copy, beside package examples/books. The page is in site/static; its script draws what the program knows. The exchange is package examples/venue, and site serves both.
//
// # In a browser
//
// reconnect/README.md says what a page can and cannot do, and bench/interop/browser has the tests, in
// Chromium 156. For a server that has pages as clients:
//
//   - A failed dial tells a page nothing: a 401, a 503 and a closed port look alike. To make a page
//     wait, accept it and then close with 1013.
//   - A frozen page keeps its connection open for a minute and more, and answers nothing. Limit how
//     long a client may be silent.
//   - When a tab is closed, or leaves the page, the server sees the close code 1001 or, here, 1000.
//     A page that cuts its connection sends none: 1005.
//   - In a hidden tab a silence of 30 s was noticed after 183 s, and a wait of 1 s took 50 s, because
//     timers fire once a minute. A loss that the browser reports is noticed at once.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/redial-go/redial/examples/browser/site"
	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/venue"
)

func main() { os.Exit(command.Main("browser", run)) }

func run(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("browser", flag.ContinueOnError)
	command.About(flags, `Serves a page that follows an exchange on this machine, by redial on js/wasm, and prints the address of the page.
Buttons on the page make the exchange misbehave. Ctrl-C ends it.
`)
	addr := flags.String("addr", "127.0.0.1:0", "serve at this `address`")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	return serve(ctx, *addr, s.Out)
}

// serve builds the page, and serves it until ctx ends.
func serve(ctx context.Context, addr string, stdout io.Writer) error {
	listener, err := net.Listen("tcp", addr) // first, because the build takes long
	if err != nil {
		return err
	}
	defer listener.Close()
	if _, err := fmt.Fprintln(stdout, "building the page ..."); err != nil {
		return &command.OutputError{Err: err}
	}
	program, err := site.Build(ctx)
	if ctx.Err() != nil {
		return nil // Ctrl-C during the build
	}
	if err != nil {
		return err
	}
	v := venue.New(nil)
	defer v.Close()
	server := &http.Server{Handler: site.New(program, v), ReadHeaderTimeout: 10 * time.Second}
	_, err = fmt.Fprintf(stdout, "open http://%v/ (%.1f MB of program, %.1f MB compressed); Ctrl-C ends it\n",
		listener.Addr(), float64(len(program.WASM))/1e6, float64(len(program.GZIP))/1e6)
	if err != nil {
		return &command.OutputError{Err: err}
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }() // <-ended waits for it
	select {
	case err = <-ended:
		return err
	case <-ctx.Done():
	}
	server.Close()
	<-ended
	return nil
}
