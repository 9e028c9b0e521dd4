// Chat is a room to talk in, over connections that break. No line is lost silently, and no
// line is shown twice.
//
//	go run ./examples/chat serve [-addr 127.0.0.1:8000] [-log FILE]
//	go run ./examples/chat join [-url ws://127.0.0.1:8000/] [-name NAME] [-keep 5m]
//
// The client is in client.go: copy that. protocol.go has the messages. serve.go and room.go are the
// server. join.go is the program around the client, for a user at a terminal.
//
// # The protocol
//
// The fate of a message says whether this side wrote it to a connection. Only the other side
// knows whether it arrived. So each line has a number, and the room acknowledges the number:
//
//	-> hello   client, name, room, seen   first on each connection; seen is the last line received
//	<- welcome room, id, seq, missed      id is the last number that the room has from this client
//	-> say     id, text
//	<- ack     id                         the room has logged this line and all lines before it
//	<- line    seq, from, id, name, text  to all members, the author too; seq has no gaps
//
// # The client
//
// A [ledger.Ledger] numbers the lines, and keeps each until the room has acknowledged it. On
// each new connection OnSession tells the Ledger the last number that the room has. The Ledger sends
// the later lines again, in order and under the same numbers. The room ignores numbers that it
// already has, so each line is said exactly once and in order. If the room has not acknowledged a
// line within -keep, or when the client leaves, the user sees it: "not sent" if no write of the line
// has begun, otherwise "perhaps not sent". The Ledger has no Store here, so its lines end with the
// program.
//
// A [bridge.Cursor] has the number up to which the client has received all lines of the room.
// The hello names the number, and the room goes on after it.
//
// # The server
//
// The room keeps the last numbers of 10,000 authors and the last 500 lines. With -log the server
// writes each line to a file before it acknowledges the line, and restores the room from the file, so
// the server may be killed at any moment. It does not sync the file: a machine that loses power may
// lose the last lines. Without -log a new server knows nothing. A line that the old server
// acknowledged is then lost for a client that was away, and the client tells its user that the room
// is a new one. The room lets anybody use any name.
package main

import (
	"fmt"
	"os"

	"github.com/redial-go/redial/examples/internal/command"
)

func main() { os.Exit(example.Main()) }

var example = command.Program{
	Name: "chat",
	Usage: `usage: chat serve [-addr 127.0.0.1:8000] [-log FILE]
       chat join [-url ws://127.0.0.1:8000/] [-name NAME] [-keep 5m]

"chat serve" is a room to talk in. "chat join" sends what you type to the room and prints what others
say. Each line is said once and in order, also when the connection or the server is lost.
"chat serve -h" and "chat join -h" list the flags.
`,
	Commands: map[string]command.Func{"serve": command.Checked(serve), "join": join},
}

// wrong returns the error of a flag whose value is wrong.
func wrong(flag string, err error) error {
	return &command.UsageError{Err: fmt.Errorf("%s: %w", flag, err)}
}
