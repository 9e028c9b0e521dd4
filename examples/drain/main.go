// Drain has a WebSocket server that can be replaced without a herd, and a demonstration of it.
//
//	drain serve [-addr 127.0.0.1:8080] [-window 60s] [-lead 15s]
//	drain demo [-n 200] [-window 5s] [-lead 1s] [-notice]
//
// The server to copy is in serve.go. It answers each message with the same message at /ws, and says
// at /ready whether it should get new connections. On SIGTERM or Ctrl-C it is not ready any more,
// and closes its connections one after another over the window. Then it ends with code 0.
//
// The demonstration has two such servers and 200 clients in one process. The clients know both
// servers. The first server drains, as by SIGTERM, and the clients go to the second. The
// demonstration prints when they dial, and how many messages are unacknowledged. With -notice the
// server tells each client when it will close the connection, and the client goes to the other
// server before that. The test does the same with haproxy and two processes.
package main

import (
	"os"

	"github.com/redial-go/redial/examples/internal/command"
)

func main() { os.Exit(example.Main()) }

var example = command.Program{
	Name: "drain",
	Usage: `usage: drain serve [-addr HOST:PORT] [-window DURATION] [-lead DURATION]
       drain demo [-n CLIENTS] [-window DURATION] [-lead DURATION] [-notice]

"drain serve" is a WebSocket server that closes its connections one after another after
SIGTERM or Ctrl-C. "drain demo" lets one such server drain, and prints how its clients go to another.
"drain serve -h" and "drain demo -h" list the flags.
`,
	Commands: map[string]command.Func{"serve": command.Checked(serve), "demo": command.Checked(demo)},
}
