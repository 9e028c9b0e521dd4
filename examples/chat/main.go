//go:build !js

// Chat is a room to talk in, over connections that break. No line is lost silently, and no
// line is shown twice.
//
//	go run ./examples/chat serve [-addr 127.0.0.1:8000] [-log FILE] [-page :6060]
//	go run ./examples/chat join [-url ws://127.0.0.1:8000/] [-name NAME] [-page :6061]
//
// The client is in client.go: copy that. protocol.go has the messages. serve.go and room.go are the
// server. join.go is the program around the client, for a user at a terminal. Its screen is in
// examples/internal/terminal.
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
// A [ledger.Ledger] numbers the lines, and keeps each until the room has acknowledged it. On
// each new connection OnSession tells the Ledger what the room has. The Ledger sends the other
// lines again, in order and under the same numbers, and then those that are new. The room
// ignores numbers that it already has, so each line is said exactly once and in order.
//
// A line that the room has not acknowledged within -keep, or when the client leaves, is given
// up, and the user sees it: "not sent" if no write of it has begun, otherwise "perhaps not
// sent". The Ledger has no Store here. If the client is killed, the lines that the room has not
// acknowledged are lost, and the client that is started next is another member of the room.
//
// A [bridge.Cursor] has the number up to which the client has received all lines of the room.
// The hello names it, and the room goes on after it.
//
// # What the server remembers
//
// The room keeps the last numbers of 10,000 authors and the last 500 lines. With -log the server
// writes each line to a file before it acknowledges it, and restores the room from that file, so
// that the server may be killed at any moment. It does not sync the file: if the machine loses
// power, the last lines may be gone. Each server needs its own file.
//
// Without -log a new server knows nothing. Clients send again what no server has acknowledged, and
// show no line twice, because they know lines by author and number. But a line that the old server
// acknowledged is lost for a client that was away at that time. Such a client tells its user that
// the room is a new one. The room lets anybody use any name.
package main

import (
	"fmt"
	"os"

	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/reconnect/debug"
)

func main() { os.Exit(example.Main()) }

const usage = `usage: chat serve [-addr 127.0.0.1:8000] [-log FILE] [-page ADDRESS]
       chat join [-url ws://127.0.0.1:8000/] [-name NAME] [-keep 5m] [-page ADDRESS]
`

var example = command.Program{
	Name: "chat", Usage: usage,
	Commands: map[string]command.Func{"serve": serve, "join": join},
}

const pageHelp = "show how it is on a page at this `address`, such as :6060; without a host it is 127.0.0.1, and port 0 is any free port"

// openPage opens a page at an address, which may be empty, and prints its URL. The caller closes the
// page.
func openPage(address string, print func(format string, args ...any)) (*debug.Page, error) {
	page, err := debug.New(nil)
	if err != nil || address == "" {
		return page, err
	}
	url, err := page.Listen(address)
	if err != nil {
		page.Close()
		return nil, wrong("-page", err)
	}
	print("page: %s", url)
	return page, nil
}

// wrong returns the error of a flag whose value is wrong.
func wrong(flag string, err error) error {
	return &command.UsageError{Err: fmt.Errorf("%s: %w", flag, err)}
}
