// Lines is a line-based TCP client that survives its server, and a download that
// waits for one.
//
//	lines serve [-addr 127.0.0.1:7000]              answer each line with the same line, and PING with PONG
//	lines talk [-addr 127.0.0.1:7000] [-ping PING]  send what is typed, print what comes
//	lines get [-for 2m] URL                         print what an HTTP server answers, once it does
//
// Talk is a [reconnect.Conn] over [dialer.Framed] with [conn.Lines]: what is typed
// while the server is away is kept and sent when it is back, and of what was not
// sent the user is told why. TCP has no ping; with -ping that line is sent when
// nothing has come for a while, and any answer is life.
//
// Get hands [dialer.Dialer]'s DialContext to net/http: nothing else of the program
// knows that the server may be away.
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
		fmt.Fprint(notes, usage)
		if len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
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

// parse takes the flags out of args, and wants exactly that many arguments to be
// left.
func parse(flags *flag.FlagSet, args []string, notes io.Writer, want int) error {
	flags.SetOutput(notes)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	if flags.NArg() != want {
		fmt.Fprint(notes, usage)
		return errUsage
	}
	return nil
}
