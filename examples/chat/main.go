//go:build !js

// Chat is a room to talk in, by connections that break: nothing said is lost
// silently, nothing is heard twice.
//
//	go run ./examples/chat serve [-addr 127.0.0.1:8000] [-log FILE]
//	go run ./examples/chat join [-url ws://127.0.0.1:8000/] [-name NAME]
//
// # The protocol
//
// A fate says what became of a message here; what became of it over there only
// the other side can say. So each line that is typed has a number, and the room
// acknowledges it:
//
//	-> hello   client, name, room, seen   first on each connection: seen is the last line heard
//	<- welcome room, id, seq, missed      id is the last number that the room has from us
//	-> say     id, text
//	<- ack     id                         said, and logged; so is everything before it
//	<- line    seq, from, id, name, text  to everybody, the author too; seq has no holes
//
// # How fates are used
//
// [reconnect.Conn.Send] queues a line, also while there is no session
// ([reconnect.WhenDownKeep]). Its fate then means:
//
//   - written: the journal keeps it until it is acknowledged;
//   - unknown: the same, since it may have arrived or not;
//   - dropped: it was not sent and never will be, and the user is told why.
//
// On each new connection, before the queue goes on, OnSession forgets what the room
// has, and sends again, under the same numbers and in order, what was written or
// unknown and is not acknowledged. The room drops what it has. So a line is said
// exactly once, in order. One that was written once is sent again however late it
// is; only one that never left can be too late (-keep).
//
// # What the server remembers
//
// With -log the room is restored from a file, to which each line goes before it is
// acknowledged: the server may be killed at any moment. (It is not synced: should
// the whole machine lose its power, the last lines may be gone; and one file is for
// one server.) Without -log a new
// server knows nothing. What nobody acknowledged is sent again, and whoever heard it
// from the old server does not hear it twice, since joiners know lines by author and
// number; but a line that the old server acknowledged and had not yet passed on to
// somebody who was away is lost to him, and he is told that the room is a new one.
// The last numbers of 10,000 authors are kept, and a history of 500 lines: whoever has
// missed more is told how many.
//
// Anybody may take any name. What to copy is in join.go and journal.go.
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
	"time"
)

func main() { os.Exit(program()) }

func program() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

const usage = `usage: chat serve [-addr 127.0.0.1:8000] [-log FILE]
       chat join [-url ws://127.0.0.1:8000/] [-name NAME] [-keep 5m]
`

// run returns the exit code: 0; 1 for a failure, or if something typed was not
// said; 2 for wrong arguments.
func run(ctx context.Context, args []string, stdin, stdout *os.File, stderr io.Writer) int {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("chat "+command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	var do func() error
	switch command {
	case "serve":
		addr := flags.String("addr", "127.0.0.1:8000", "listen on this `address`; port 0 means any free port")
		path := flags.String("log", "", "keep what is said in this `file`, and restore the room from it")
		do = func() error { return serve(ctx, *addr, *path, stdout) }
	case "join":
		url := flags.String("url", "ws://127.0.0.1:8000/", "the server's `address`")
		name := flags.String("name", userName(), "the `name` that others see")
		keep := flags.Duration("keep", 5*time.Minute, "how long a line may wait to be sent while the server is away")
		do = func() error { return join(ctx, *url, *name, *keep, stdin, stdout) }
	case "-h", "-help", "--help", "help":
		fmt.Fprint(stderr, usage)
		return 0
	default:
		fmt.Fprint(stderr, usage)
		return 2
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "chat %s: unexpected arguments %q: everything is given by flags, see -h\n", command, flags.Args())
		return 2
	}
	err := do()
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "chat %s: %v\n", command, err)
	if _, wrong := errors.AsType[*usageError](err); wrong {
		return 2
	}
	return 1
}

// usageError is an argument that cannot be right.
type usageError struct {
	flag string
	err  error
}

func (e *usageError) Error() string { return e.flag + ": " + e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func userName() string {
	for _, key := range []string{"USER", "USERNAME"} {
		if name := os.Getenv(key); checkName(name) == nil {
			return name
		}
	}
	return "guest"
}
