//go:build !js

// Chat is a room to talk in, over connections that break. No line is lost silently, and no
// line is shown twice.
//
//	go run ./examples/chat serve [-addr 127.0.0.1:8000] [-log FILE] [-page :6060]
//	go run ./examples/chat join [-url ws://127.0.0.1:8000/] [-name NAME] [-page :6061]
//
// The client is in client.go: copy that. protocol.go has the messages. serve.go, room.go and
// logfile.go are the server. join.go and talk.go are the program around the client, for a user
// at a terminal. Its screen is in examples/internal/terminal.
//
// # The protocol
//
// The fate of a message says whether this side wrote it to a connection. Only the other side
// knows whether it arrived. So each line that a user types has a number, and the room
// acknowledges the number:
//
//	-> hello   client, name, room, seen   first on each connection; seen is the last line received
//	<- welcome room, id, seq, missed      id is the last number that the room has from this client
//	-> say     id, text
//	<- ack     id                         the room has logged this line and all lines before it
//	<- line    seq, from, id, name, text  to all members, the author too; seq has no gaps
//
// # What the client keeps
//
// A [replay.Ledger] numbers the lines, and keeps each until the room has acknowledged it. On
// each new connection OnSession tells the Ledger what the room has. The Ledger sends the other
// lines again, in order and under the same numbers, and then those that are new. The room
// ignores numbers that it already has, so each line is said exactly once and in order.
//
// A line that the room has not acknowledged within -keep, or when the client leaves, is given
// up, and the user sees it: "not sent" if no write of it has begun, otherwise "perhaps not
// sent". The Ledger has no Store here. If the client is killed, the lines that the room has not
// acknowledged are lost, and the client that is started next is another member of the room.
//
// A [replay.Cursor] has the number up to which the client has received all lines of the room.
// The hello names it, and the room goes on after it.
//
// # What the server remembers
//
// With -log the server writes each line to a file before it acknowledges it, and restores the
// room from that file. So the server may be killed at any moment. It does not sync the file:
// if the machine loses power, the last lines may be gone. Each server needs its own file.
//
// Without -log a new server knows nothing. Clients send again what no server has
// acknowledged, and show no line twice, because they know lines by author and number. But a
// line that the old server acknowledged is lost for a client that was away at that time. Such
// a client tells its user that the room is a new one.
//
// # The page
//
// With -page both commands show how they are on a page, on 127.0.0.1 if the address has no host.
// The page of a client has its connection and its lines under way. The server keeps no connection
// open, so its page has the room: its members, how many lines were said, and how much waits to
// be sent to the member that reads most slowly.
//
// The room keeps the last numbers of 10,000 authors and the last 500 lines. A client that has
// missed more than these tells its user how many. The room does not check who uses a name.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/redial-go/redial/examples/internal/command"
)

func main() { os.Exit(example.Main()) }

const usage = `usage: chat serve [-addr 127.0.0.1:8000] [-log FILE] [-page ADDRESS]
       chat join [-url ws://127.0.0.1:8000/] [-name NAME] [-keep 5m] [-page ADDRESS]
`

var example = command.Program{
	Name: "chat", Usage: usage,
	Commands: map[string]command.Func{"serve": runServe, "join": runJoin},
}

const pageHelp = "show how it is on a page at this `address`, such as :6060; without a host it is 127.0.0.1, and port 0 is any free port"

func runServe(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("chat serve", flag.ContinueOnError)
	page := flags.String("page", "", pageHelp)
	addr := flags.String("addr", "127.0.0.1:8000", "listen on this `address`; port 0 means any free port")
	path := flags.String("log", "", "keep what is said in this `file`, and restore the room from it")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	return serve(ctx, *addr, *path, *page, s.Out)
}

func runJoin(ctx context.Context, args []string, s command.Streams) error {
	flags := flag.NewFlagSet("chat join", flag.ContinueOnError)
	page := flags.String("page", "", pageHelp)
	url := flags.String("url", "ws://127.0.0.1:8000/", "the server's `address`")
	name := flags.String("name", userName(), "the `name` that others see")
	keep := flags.Duration("keep", 5*time.Minute, "how long to try to send a line")
	if err := command.Parse(flags, args, s); err != nil {
		return err
	}
	return join(ctx, *url, *name, *keep, *page, s)
}

// wrong returns the error of a flag whose value is wrong.
func wrong(flag string, err error) error {
	return &command.UsageError{Err: fmt.Errorf("%s: %w", flag, err)}
}

func userName() string {
	for _, key := range []string{"USER", "USERNAME"} {
		if name := os.Getenv(key); checkName(name) == nil {
			return name
		}
	}
	return "guest"
}
