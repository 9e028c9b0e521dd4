//go:build linux

package recipes_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// peers are servers that are Go libraries, by name. A peer serves on a port of 127.0.0.1 until its process is killed.
// This test binary is such a server if serverEnv holds the name of one, because a process can be killed. Its arguments are
// the port, and those of the test.
var peers = map[string]func(port string, args []string) error{
	"exchange":  serveExchange,
	"telephone": serveTelephone,
	"fleet":     serveFleet,
}

const serverEnv = "REDIAL_RECIPES_SERVER"

func TestMain(m *testing.M) {
	name := os.Getenv(serverEnv)
	if name == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := peers[name](os.Args[1], os.Args[2:]); err != nil {
		os.Stderr.WriteString(name + ": " + err.Error() + "\n")
		os.Exit(1)
	}
}
