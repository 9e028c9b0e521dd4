//go:build linux

package recipes_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/internal/server"
)

// startNode starts a server for Node, which has the port as its first argument.
func startNode(t *testing.T, directory, library string, args ...string) *server.Server {
	node := server.Find(t, "node", "")
	if _, err := os.Stat(directory + "/node_modules/" + library); err != nil {
		t.Skipf("%s is not installed: run npm ci in bench/interop/recipes/%s", library, directory)
	}
	s := server.New(t, func(port string) *exec.Cmd {
		return exec.Command(node, append([]string{directory + "/server.mjs", port}, args...)...)
	})
	s.Start()
	return s
}

// awaitOutput waits until the server has written a text since it was started.
func awaitOutput(t *testing.T, s *server.Server, text string) {
	for deadline := time.Now().Add(patience); !strings.Contains(s.Output(), text); time.Sleep(5 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "the server does not write %q", text)
	}
}

// say writes lines to the standard input of a server, which sends them to its clients.
func say(t *testing.T, s *server.Server, lines ...string) {
	for _, line := range lines {
		_, err := s.In.Write([]byte(line + "\n"))
		require.NoError(t, err)
	}
}

// liveThroughKills kills a server three times, each time with messages on their way, and starts it again. The recipe prints
// a line that begins with "snapshot" when its subscription has begun. From there until the kill nothing may be lost, and
// nothing may come twice. send sends to those who are subscribed, and form is a line as the recipe prints it.
func liveThroughKills(t *testing.T, s *server.Server, r *recipe, begun func(n int), send func(lines ...string), form func(string) string) {
	var sent []string
	const pattern = "(line|kill) [0-9]+"
	for i := range 4 {
		begun(i + 1)
		steady, atKill := numbered("line", i*100, i*100+100), numbered("kill", i*100, i*100+100)
		before := len(r.matches("line [0-9]+"))
		send(steady...)
		r.await(before+100, "line [0-9]+")
		sent = append(sent, steady...)
		if i == 3 {
			break
		}
		send(atKill...)
		sent = append(sent, atKill...)
		s.Kill()
		s.Start()
	}
	var want []string
	for _, line := range sent {
		want = append(want, form(line))
	}
	lost, doubled := tally(r.matches(pattern), want)
	require.Empty(t, doubled)
	require.Equal(t, slices.DeleteFunc(want, func(line string) bool { return slices.Contains(lost, line) }), r.matches(pattern), "in order")
	for _, line := range lost {
		require.Contains(t, line, "kill")
	}
	t.Logf("%d of the 300 that were sent just before a kill are lost, none of the 400 others; none came twice", len(lost))
}
