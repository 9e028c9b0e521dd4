//go:build linux

package recipes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/internal/server"
)

// scene is a fleet, whose directory is dir.
type scene struct {
	t     *testing.T
	dir   string
	fleet *server.Server
	first *piped // the agent that was started first
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, dir: t.TempDir()}
	s.write("secret", "sesame", 0o600)
	s.write("command", "#!/bin/sh\necho \"$1\" >>\"$RAN\"\nsleep 0.02\necho done\n", 0o700)
	s.fleet = startPeer(t, "fleet", s.dir)
	return s
}

func (s *scene) write(name, text string, mode os.FileMode) {
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), mode))
}

// agent starts an agent. Its commands write their numbers to a file.
func (s *scene) agent(name string, logins int) *piped {
	dir := filepath.Join(s.dir, name)
	require.NoError(s.t, os.Mkdir(dir, 0o700))
	s.write(name+"/token", name+" sesame", 0o600)
	s.write(name+"/command", strings.ReplaceAll(s.read("command"), "$RAN", dir+"/ran"), 0o700)
	args := []string{"-url", "ws://" + s.fleet.Address, "-token", dir + "/token", "-dir", dir, "-do", dir + "/command", "-logins", strconv.Itoa(logins)}
	if s.first != nil {
		return s.first.twin(args...)
	}
	s.first = pipe(s.t, "agent", args...)
	return s.first
}

func (s *scene) read(name string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	require.NoError(s.t, err)
	return string(text)
}

// logged returns the lines of the log that begin so.
func (s *scene) logged(prefix string) (list []string) {
	for _, line := range linesOf(s.t, filepath.Join(s.dir, "log")) {
		if strings.HasPrefix(line, prefix) {
			list = append(list, line)
		}
	}
	return list
}

// The server and the agent are killed twice each. Each command has a result, none runs twice, and a command that did
// not run, or may not have, is reported.
func TestAgentRunsEachCommandOnce(t *testing.T) {
	s := newScene(t)
	a := s.agent("a1", 100)
	for kill := range 4 {
		before := len(s.logged("result a1"))
		eventually(t, "five results more", func() bool { return len(s.logged("result a1")) >= before+5 })
		if kill%2 == 0 {
			s.fleet.Kill()
			s.fleet.Start()
		} else {
			a.kill()
			a.start()
		}
	}
	eventually(t, "all results", func() bool { return len(s.logged("result a1")) >= commands })
	a.interrupt()
	ran := linesOf(t, filepath.Join(s.dir, "a1", "ran"))
	all := numbered("", 1, commands+1)
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	lost, doubled := tally(ran, all)
	unknown := 0
	for _, line := range s.logged("result a1") {
		if strings.Contains(line, "unknown") {
			unknown++
		}
	}
	t.Logf("%d commands, %d results, of which %d say that the outcome is unknown; not run %v, run twice %v; %d logins",
		commands, len(s.logged("result a1")), unknown, lost, doubled, len(s.logged("login a1")))
	require.Empty(t, doubled)
	require.LessOrEqual(t, len(lost), unknown, "each command that did not run is reported")
	require.LessOrEqual(t, unknown, 2, "one for each kill of the agent")
	require.Len(t, s.logged("result a1"), commands)
}

// The budget holds over restarts of the agent and of the server, to the login.
func TestAgentNeverExceedsItsLogins(t *testing.T) {
	const logins = 3
	s := newScene(t)
	a := s.agent("a1", logins)
	for i := range logins {
		eventually(t, "a login", func() bool { return len(s.logged("login a1")) == i+1 })
		if i == 1 {
			a.kill()
			a.start()
		} else {
			s.fleet.Kill()
			s.fleet.Start()
		}
	}
	a.noted(1, "no login")
	a.kill()
	a.start()
	a.noted(2, "no login")
	require.Len(t, s.logged("login a1"), logins)
}

// After the secret has changed, an agent is refused once or twice, until its file has the new one.
func TestAgentReadsItsTokenAnew(t *testing.T) {
	s := newScene(t)
	a := s.agent("a1", 100)
	eventually(t, "a login", func() bool { return len(s.logged("login a1")) == 1 })
	s.write("secret", "simsim", 0o600)
	s.fleet.Kill()
	s.fleet.Start()
	eventually(t, "a refusal", func() bool { return len(s.logged("refused a1")) >= 1 })
	s.write("a1/token", "a1 simsim", 0o600)
	eventually(t, "another login", func() bool { return len(s.logged("login a1")) == 2 })
	a.interrupt()
	require.LessOrEqual(t, len(s.logged("refused a1")), 2)
}

// Each of ten agents comes back after a deploy with one dial and one login.
func TestAgentsComeBackAfterADeploy(t *testing.T) {
	const agents = 10
	s := newScene(t)
	list := make([]*piped, agents)
	for i := range list {
		list[i] = s.agent(fmt.Sprintf("a%d", i), 100)
	}
	eventually(t, "all logins", func() bool { return len(s.logged("login")) == agents })
	dials := len(s.logged("dial"))
	s.fleet.Kill()
	s.fleet.Start()
	eventually(t, "all logins", func() bool { return len(s.logged("login")) == 2*agents })
	for _, a := range list {
		a.interrupt()
	}
	var first, last int64
	for _, line := range s.logged("dial")[dials:] {
		at, err := strconv.ParseInt(strings.Fields(line)[1], 10, 64)
		require.NoError(t, err)
		if last = at; first == 0 {
			first = at
		}
	}
	t.Logf("%d dials within %d ms", len(s.logged("dial"))-dials, last-first)
	require.Len(t, s.logged("dial"), dials+agents)
	require.Len(t, s.logged("login"), 2*agents)
}
