// Lines has a TCP client for messages that are lines. It keeps trying while the server is away.
//
//	lines serve [-addr 127.0.0.1:7000]              answers each line with the same line, and PING with PONG
//	lines talk [-addr 127.0.0.1:7000] [-ping PING]  sends typed lines, prints received lines
//
// The client to copy is in talk.go: a [reconnect.Conn] over [dialer.Framed] with
// [conn.Lines]. It keeps the lines that are typed while the server is away, and sends them when the
// server is back. It shows which lines were not sent, and why. TCP has no ping. With -ping
// the client sends that line when it has received nothing for a while, and any answer shows
// that the server is alive. The server is in serve.go.
package main

import (
	"os"

	"github.com/redial-go/redial/examples/internal/command"
)

func main() { os.Exit(example.Main()) }

var example = command.Program{
	Name: "lines",
	Usage: `usage: lines serve [-addr HOST:PORT]
       lines talk [-addr HOST:PORT] [-ping LINE]

"lines serve" answers each line with the same line, over TCP. "lines talk" sends what you type and
prints what comes, and dials again when the connection is lost.
"lines serve -h" and "lines talk -h" list the flags.
`,
	Commands: map[string]command.Func{"serve": serve, "talk": talk},
}
