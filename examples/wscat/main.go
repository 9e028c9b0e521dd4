//go:build !js

// Wscat is a WebSocket client for the command line that comes back after a loss.
//
//	go run ./examples/wscat wss://feed.example/v1
//	go run ./examples/wscat -subscribe '{"op":"subscribe","channel":"trades"}' -json wss://feed.example/v1
//	go run ./examples/wscat -x '{"op":"ping"}' wss://feed.example/v1
//	echo '{"op":"ping"}' | go run ./examples/wscat -q 1s wss://feed.example/v1
//
// It writes each received message as a line to standard output, and sends each line of
// standard input as a message. Everything else goes to standard error: the state with the
// time until the next dial, where messages may be missing, and what became of each line that
// was not sent. On a terminal the state is the prompt. With -json it writes all of this to
// standard output, one JSON object per line. "wscat -h" lists the flags, the exit codes and
// the fields of these objects.
//
// # What others do, and what this does
//
// When a pipe ends, websocat closes the connection, and the answer to the last line is lost if it
// comes late (its issues 4 and 245). Here the end of a pipe ends nothing unless -q says so. -q counts
// silence: it begins when every line has its fate, and again with each message, and there is none
// while a message waits because standard output is not read.
//
// The wscat of Node.js ignores what comes in before it is connected (its issue 41), and ends with the
// connection. Here a line that is typed while the server is away is kept for up to 5 minutes. A line
// that was not written is named, and the exit code says so.
//
// On a terminal the control sequences in a message are shown as escapes. In a pipe or a file the
// bytes are as they came. There is no flag that accepts any certificate: on Linux the variable
// SSL_CERT_FILE names a file of certificates to trust.
//
// # Where to look
//
// client.go is the part to copy: a [reconnect.Conn] with its options, hooks and fates. talk.go
// feeds it with the input and ends it. options.go has the flags, event.go and report.go what
// the user sees, and form.go how binary messages are written.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/redial-go/redial/examples/internal/command"
)

func main() { os.Exit(start()) }

func start() int {
	signal.Ignore(syscall.SIGPIPE) // a write to a pipe that nobody reads fails instead, and the program can end well
	ctx, stop := command.Context()
	defer stop()
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// The exit codes, of which the first that applies is used.
const (
	codeOK          = 0
	codeUnreachable = 1 // there never was a connection
	codeUsage       = 2
	codeRefused     = 3 // the server's answer will not change by itself
	codeOutput      = 4 // standard output could not be written, or not in time
	codeLost        = 5 // with -once: the connection was lost
	codeUnsent      = 6 // not all lines were written to a connection
)

// run returns the exit code.
func run(ctx context.Context, args []string, stdin, stdout, stderr *os.File) int {
	o, err := parse(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return codeOK
	}
	var c *client
	if err == nil {
		show := newReporter(o.json, stdin, stdout, stderr)
		show.typed = show.typed && o.execute == nil
		c, err = newClient(o, show)
	}
	if err != nil {
		fmt.Fprintf(stderr, "wscat: %v\nwscat: see wscat -h\n", err)
		return codeUsage
	}
	code, err := c.talk(ctx, stdin)
	if err != nil {
		fmt.Fprintf(stderr, "wscat: %v\n", err)
	}
	return code
}
