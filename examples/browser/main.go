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
// copy. The exchange is in venue, and site serves both.
//
// # In a browser
//
// What a page can and cannot do, as seen in Chromium 156 by the tests in bench/browser. See also
// the documentation of conn.WebSocket for GOOS=js.
//
//   - There is no header, so a token goes in the first message or in a subprotocol.
//   - There is no ping. Set Liveness.Probe, or a dead connection is never noticed.
//   - A dial that has failed says nothing: no status, no Retry-After, no reason. A 401, a 503 and
//     a port that is closed look alike, so a server that wants a page to wait accepts it and then
//     closes with 1013.
//   - A connection that ends without a close frame says nothing either (1006).
//   - A page can send the close codes 1000 and 3000 to 4999. What would be 1009 is 4009. A
//     connection that is cut sends none, so that the server sees 1005, and when the tab is closed
//     or leaves the page it sees 1001 or, here, 1000.
//   - Nothing slows the server down for a page that is slow to read. More than 32 MiB of unread
//     messages end the connection, with 4008.
//   - In a hidden tab messages come as ever, but a timer fires once a second at most, and once a
//     minute after the first minutes (here one, or five), with an open WebSocket too. A loss that
//     the browser reports is noticed at once, the silence of a peer after minutes (30 s became
//     183 s), and a wait before a dial may end a minute late (1 s became 50 s). The test of this
//     takes 10 minutes: TestTimersOfAHiddenTab.
//   - A page that is frozen gets nothing. Its connection stays open, for the server too (for a
//     minute and more), and ends when the page goes on. So a server needs a limit of its own on
//     clients that do not answer.
//   - A page that the user leaves may be kept in the back/forward cache, with its connection open.
//     This one ends its session in the event pagehide, and dials anew in pageshow.
//   - The events online and offline say what the browser believes, and cut nothing. Offline, as
//     the developer tools make it, the connection stays open and brings nothing; Check ends it
//     after 5 s.
//
// The program of the page is 13 MB without symbols (-ldflags="-s -w"), and 3.4 MB compressed by
// gzip, which this server sends and reports at its start. Most of it is Go's runtime and
// net/http, which dialer needs.
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
	"github.com/redial-go/redial/examples/browser/venue"
	"github.com/redial-go/redial/examples/internal/command"
)

func main() { os.Exit(command.Main("browser", run)) }

func run(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("browser", flag.ContinueOnError)
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
	fmt.Fprintln(stdout, "building the page ...")
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
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }() // <-ended waits for it
	fmt.Fprintf(stdout, "open http://%v/ (%.1f MB of program, %.1f MB compressed); Ctrl-C ends it\n",
		listener.Addr(), float64(len(program.WASM))/1e6, float64(len(program.GZIP))/1e6)
	select {
	case err = <-ended:
		return err
	case <-ctx.Done():
	}
	server.Close()
	<-ended
	return nil
}
