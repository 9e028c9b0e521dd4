//go:build !js

package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/program"
)

// pair starts two clients and waits until they are in the room.
func pair(t *testing.T, addr string) (ann, bob *program.Program) {
	t.Helper()
	ann, bob = joinIt(t, addr, "ann"), joinIt(t, addr, "bob")
	ann.Await("-- here as ann")
	bob.Await("-- here as bob")
	return ann, bob
}

func numbered(what string, from, to int) (texts []string) {
	for i := from; i <= to; i++ {
		texts = append(texts, fmt.Sprint(what, " ", i))
	}
	return texts
}

func TestWhatIsTypedWhileTheServerIsAwayArrivesOnceAndInOrder(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"with a log": {"-log", filepath.Join(t.TempDir(), "log")}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, addr := serveIt(t, "", args...)
			ann, bob := pair(t, addr)
			ann.Type("before 1")
			bob.Await("ann: before 1\n")
			server.Kill()
			ann.Await("-- away, next try in ")
			for _, text := range numbered("away", 1, 4) {
				ann.Type(text)
			}
			serveIt(t, addr, args...)
			hurry(ann, "-- back after ", 1)
			ann.Find(`-- back after \d+ s, [45] messages to send\n`) // 5 if the acknowledgement of "before 1" was lost
			ann.Type("after 1")
			hurry(bob, "ann: after 1\n", 1)
			require.Equal(t, []string{"before 1", "away 1", "away 2", "away 3", "away 4", "after 1"}, heard(bob, "ann"))
		})
	}
}

// Each line arrives once, whatever was on its way when the server was killed.
func TestNothingIsLostOrDoubledByAServerThatIsKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	const kills, lines = 4, 150
	log := filepath.Join(t.TempDir(), "log")
	server, addr := serveIt(t, "", "-log", log)
	ann, bob := pair(t, addr)
	for i := range kills {
		for _, text := range numbered("line", i*lines+1, (i+1)*lines) {
			ann.Type(text)
		}
		bob.Await(fmt.Sprintf("ann: line %d\n", i*lines+20+i*30)) // the other lines are on their way
		server.Kill()
		server, _ = serveIt(t, addr, "-log", log)
		hurry(ann, "-- back after ", i+1)
		hurry(bob, "-- back after ", i+1)
	}
	ann.Type("the end")
	bob.Await("ann: the end\n")
	require.Equal(t, append(numbered("line", 1, kills*lines), "the end"), heard(bob, "ann"))
	require.NotContains(t, bob.String(), "missed")
}

// A line that the room has stays said once. The client that is started next counts anew, as another member.
func TestAClientThatIsKilledComesBackAsAnotherMember(t *testing.T) {
	t.Parallel()
	_, addr := serveIt(t, "")
	ann, bob := pair(t, addr)
	ann.Type(numbered("old", 1, 100)...)
	bob.Await("ann: old 50\n") // the other lines are on their way
	ann.Kill()
	ann = joinIt(t, addr, "ann")
	ann.Await("-- here as ann")
	ann.Type(numbered("new", 1, 3)...)
	ann.CloseInput()
	require.Zero(t, ann.ExitCode())
	bob.Await("ann: new 3\n")
	got := heard(bob, "ann")
	old := len(got) - 3
	require.GreaterOrEqual(t, old, 50)
	require.Equal(t, append(numbered("old", 1, old), numbered("new", 1, 3)...), got)
}

func TestAServerThatCannotBeReachedIsTriedAgainUntilItCan(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	ann := joinIt(t, addr, "ann")
	require.Regexp(t, `^-- away, next try in \d+ s: dial ws://127\.0\.0\.1:\d+/: .*refused\n$`, ann.Find(`.*\n`)[0])
	ann.Type("first")
	serveIt(t, addr)
	hurry(ann, "-- here as ann", 1)
	ann.CloseInput()
	require.Zero(t, ann.ExitCode())
}

func TestALineThatIsTooLateIsShownAndNeverSaid(t *testing.T) {
	t.Parallel()
	server, addr := serveIt(t, "")
	bob := joinIt(t, addr, "bob")
	bob.Await("-- here as bob")
	ann := joinIt(t, addr, "ann", "-keep", "2s")
	ann.Await("-- here as ann")
	server.Kill()
	ann.Await("-- away")
	ann.Type(`so "what"`)
	ann.Await("-- not sent: it waited for more than 2s: \"so \\\"what\\\"\"\n")
	serveIt(t, addr)
	hurry(ann, "-- back after ", 1)
	ann.Type("never mind")
	hurry(bob, "ann: never mind\n", 1)
	require.Equal(t, []string{"never mind"}, heard(bob, "ann"))
	ann.CloseInput()
	require.Equal(t, 1, ann.ExitCode(), "a line was not acknowledged")
	require.Contains(t, ann.String(), "chat join: 1 message not acknowledged\n")
}

func TestWhatIsLeftUnsaidIsShownAtTheEnd(t *testing.T) {
	t.Parallel()
	server, addr := serveIt(t, "")
	ann, _ := pair(t, addr)
	server.Kill()
	ann.Await("-- away")
	ann.Type("are you there?")
	ann.Type("hello?")
	ann.CloseInput()
	require.Equal(t, 1, ann.ExitCode())
	require.Contains(t, ann.String(), "-- leaving within 3s, 2 messages to send\n")
	require.Contains(t, ann.String(), "-- not sent: the end came first: \"are you there?\"\n-- not sent: the end came first: \"hello?\"\n")
}

func TestTheInputMayEndBeforeTheClientIsConnected(t *testing.T) {
	t.Parallel()
	_, addr := serveIt(t, "")
	bob := joinIt(t, addr, "bob")
	bob.Await("-- here as bob")
	ann := joinIt(t, addr, "ann")
	ann.Type("hello")
	_, err := ann.Stdin.Write([]byte("bye")) // without a line feed
	require.NoError(t, err)
	ann.CloseInput()
	require.Zero(t, ann.ExitCode())
	bob.Await("ann: bye\n")
	require.Equal(t, []string{"hello", "bye"}, heard(bob, "ann"))
}

func TestAnInterruptedServerSaysGoodbye(t *testing.T) {
	t.Parallel()
	server, addr := serveIt(t, "")
	ann, bob := pair(t, addr)
	server.Interrupt()
	require.Zero(t, server.ExitCode())
	ann.Await("closed by the peer: 1001")
	bob.Await("closed by the peer: 1001")
}

func TestALineIsSafeAndNotTooLong(t *testing.T) {
	t.Parallel()
	_, addr := serveIt(t, "")
	ann, bob := pair(t, addr)
	ann.Type(strings.Repeat("x", maxText) + " and so on")
	ann.Await("-- not sent: longer than 1000 bytes: it begins with \"xxxxxxxxxxxxxxxxxxxx\"\n")
	ann.Type("bell \a, \x1b[2J, \u202e and \xff")
	ann.CloseInput()
	require.Zero(t, ann.ExitCode())
	bob.Await(`ann: bell \a, \x1b[2J, \u202e and ` + "\uFFFD\n")
}

func TestTheSameNameMayBeThereTwice(t *testing.T) {
	t.Parallel()
	_, addr := serveIt(t, "")
	one, two := joinIt(t, addr, "ann"), joinIt(t, addr, "ann")
	one.Await("-- here as ann")
	two.Await("-- here as ann")
	one.Type("I am the first")
	two.Await("ann: I am the first\n")
	two.Type("and I the second")
	one.Await("ann: and I the second\n")
}
