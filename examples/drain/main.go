// Drain has a WebSocket server that can be replaced without a herd, and a demonstration of it.
//
//	drain serve [-addr 127.0.0.1:8080] [-window 60s] [-lead 15s]
//	drain demo [-n 200] [-window 5s] [-lead 1s] [-notice]
//
// The server to copy is in serve.go. It answers each message with the same message at /ws, and says
// at /ready whether it should get new connections. On SIGTERM or Ctrl-C it is not ready any
// more, and closes its connections one after another over the window. Then it ends with
// code 0.
//
// The demonstration has two such servers and 200 clients (-n 2000: 2,000 of them) in one process. The
// clients know both servers, and a client that is refused by one goes to the other. The
// demonstration ends the context of the server that has the clients, as SIGTERM does, and prints
// when they dial and what was lost. With -notice the server tells each client that it will close
// the connection, and the client goes to the other server before that. The test does the same with
// haproxy and two processes.
package main

import (
	"os"

	"github.com/redial-go/redial/examples/internal/command"
)

func main() { os.Exit(example.Main()) }

const usage = `usage: drain serve [-addr HOST:PORT] [-window DURATION] [-lead DURATION]
       drain demo [-n CLIENTS] [-window DURATION] [-lead DURATION] [-notice]
`

var example = command.Program{
	Name: "drain", Usage: usage,
	Commands: map[string]command.Func{"serve": serve, "demo": demo},
}
