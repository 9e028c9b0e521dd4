// Lines has a TCP client for messages that are lines, and a download. Both keep trying while
// the server is away.
//
//	lines serve [-addr 127.0.0.1:7000]              answers each line with the same line, and PING with PONG
//	lines talk [-addr 127.0.0.1:7000] [-ping PING]  sends typed lines, prints received lines
//	lines get [-for 2m] URL                         prints the answer of an HTTP server
//
// The client to copy is in talk.go: a [reconnect.Conn] over [dialer.Framed] with
// [conn.Lines]. It keeps what is typed while the server is away, and sends it when the
// server is back. It shows which lines were not sent, and why. TCP has no ping. With -ping
// the client sends that line when it has received nothing for a while, and any answer shows
// that the server is alive.
//
// The download is in get.go. It gives the DialContext of [dialer.Dialer] to net/http. The
// rest of the program need not know that the server may be away. The server is in serve.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

const usage = `usage: lines serve [-addr HOST:PORT]
       lines talk [-addr HOST:PORT] [-ping LINE]
       lines get [-for DURATION] URL
`

// run returns the exit status: 0, 1 for a failure, 2 for wrong usage.
func run(ctx context.Context, args []string, in io.Reader, out, notes io.Writer) int {
	commands := map[string]func(context.Context, []string, io.Reader, io.Writer, io.Writer) error{
		"serve": serve, "talk": talk, "get": get,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		help := len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0])
		if len(args) > 0 && !help {
			fmt.Fprintf(notes, "lines: there is no command %q\n", args[0])
		}
		fmt.Fprint(notes, usage)
		if help {
			return 0
		}
		return 2
	}
	err := commands[args[0]](ctx, args[1:], in, out, notes)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	default:
		fmt.Fprintf(notes, "lines %s: %v\n", args[0], err)
		return 1
	}
}

var errUsage = errors.New("wrong usage")

// parse parses the flags in args. Exactly want arguments must be left.
func parse(flags *flag.FlagSet, args []string, notes io.Writer, want int) error {
	flags.SetOutput(notes)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	if n := flags.NArg(); n != want {
		if n < want {
			fmt.Fprintf(notes, "%s: the URL is missing\n", flags.Name())
		} else {
			fmt.Fprintf(notes, "%s: unexpected arguments %q\n", flags.Name(), flags.Args()[want:])
		}
		fmt.Fprint(notes, usage)
		return errUsage
	}
	return nil
}
