//go:build !js

package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// joinIt starts somebody who joins the room at addr.
func joinIt(t *testing.T, addr, name string, args ...string) *running {
	t.Helper()
	return start(t, append([]string{"join", "-url", "ws://" + addr + "/", "-name", name}, args...)...)
}

// pair starts two who are in the room.
func pair(t *testing.T, addr string) (ann, bob *running) {
	t.Helper()
	ann, bob = joinIt(t, addr, "ann"), joinIt(t, addr, "bob")
	ann.await("-- here as ann")
	bob.await("-- here as bob")
	return ann, bob
}

func numbered(what string, from, to int) (texts []string) {
	for i := from; i <= to; i++ {
		texts = append(texts, fmt.Sprint(what, " ", i))
	}
	return texts
}

// Promises 4 and 6.
func TestWhatIsTypedWhileTheServerIsAwayArrivesOnceAndInOrder(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"with a log": {"-log", filepath.Join(t.TempDir(), "log")}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, addr := serveIt(t, "", args...)
			ann, bob := pair(t, addr)
			ann.say("before 1")
			bob.await("ann: before 1\n")
			server.kill()
			ann.await("-- away, next try in ")
			for _, text := range numbered("away", 1, 4) {
				ann.say(text)
			}
			serveIt(t, addr, args...)
			ann.hurry("-- back after ", 1)
			ann.find(`-- back after \d+ s, [45] messages to send\n`) // 5: the word that "before" was said was lost
			ann.find(`-- [45] messages sent\n`)
			ann.say("after 1")
			bob.hurry("ann: after 1\n", 1)
			require.Equal(t, []string{"before 1", "away 1", "away 2", "away 3", "away 4", "after 1"}, bob.heard("ann"))
		})
	}
}

// Promise 6, and what the room adds to it: each line once, whatever was on its way
// when the server died.
func TestNothingIsLostOrDoubledByAServerThatIsKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	const kills, lines = 4, 150
	log := filepath.Join(t.TempDir(), "log")
	server, addr := serveIt(t, "", "-log", log)
	ann, bob := pair(t, addr)
	for i := range kills {
		for _, text := range numbered("line", i*lines+1, (i+1)*lines) {
			ann.say(text)
		}
		bob.await(fmt.Sprintf("ann: line %d\n", i*lines+20+i*30)) // and the others are on their way
		server.kill()
		server, _ = serveIt(t, addr, "-log", log)
		ann.hurry("-- back after ", i+1)
		bob.hurry("-- back after ", i+1)
	}
	ann.say("the end")
	bob.await("ann: the end\n")
	require.Equal(t, append(numbered("line", 1, kills*lines), "the end"), bob.heard("ann"))
	require.NotContains(t, bob.String(), "missed")
}

func TestAServerThatCannotBeReachedIsTriedAgainUntilItCan(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	ann := joinIt(t, addr, "ann")
	require.Regexp(t, `^-- away, next try in \d+ s: dial ws://127\.0\.0\.1:\d+/: .*refused\n$`, ann.find(`.*\n`)[0])
	ann.say("first")
	serveIt(t, addr)
	ann.hurry("-- 1 message sent", 1)
	ann.eof()
	require.Zero(t, ann.exitCode())
}

func TestALineThatIsTooLateIsShownAndNeverSaid(t *testing.T) {
	t.Parallel()
	server, addr := serveIt(t, "")
	bob := joinIt(t, addr, "bob")
	bob.await("-- here as bob")
	ann := joinIt(t, addr, "ann", "-keep", "300ms")
	ann.await("-- here as ann")
	server.kill()
	ann.await("-- away")
	ann.say(`so "what"`)
	ann.await("-- not sent: it waited for more than 300ms: \"so \\\"what\\\"\"\n")
	serveIt(t, addr)
	ann.hurry("-- back after ", 1)
	ann.say("never mind")
	bob.hurry("ann: never mind\n", 1)
	require.Equal(t, []string{"never mind"}, bob.heard("ann"))
	ann.eof()
	require.Equal(t, 1, ann.exitCode(), "something was not said")
	require.Contains(t, ann.String(), "chat join: 1 message not sent\n")
}

// Promise 11: what Shutdown cannot send is told.
func TestWhatIsLeftUnsaidIsShownAtTheEnd(t *testing.T) {
	t.Parallel()
	server, addr := serveIt(t, "")
	ann, _ := pair(t, addr)
	server.kill()
	ann.await("-- away")
	ann.say("are you there?")
	ann.say("hello?")
	ann.eof()
	require.Equal(t, 1, ann.exitCode())
	require.Contains(t, ann.String(), "-- leaving within 3s, 2 messages to send\n")
	require.Contains(t, ann.String(), "-- not sent: no connection: \"are you there?\"\n-- not sent: no connection: \"hello?\"\n")
}

func TestAScriptMayEndBeforeItIsConnected(t *testing.T) {
	t.Parallel()
	_, addr := serveIt(t, "")
	bob := joinIt(t, addr, "bob")
	bob.await("-- here as bob")
	ann := joinIt(t, addr, "ann")
	ann.say("hello")
	_, err := ann.stdin.Write([]byte("bye")) // without an end
	require.NoError(t, err)
	ann.eof()
	require.Zero(t, ann.exitCode())
	bob.await("ann: bye\n")
	require.Equal(t, []string{"hello", "bye"}, bob.heard("ann"))
}

func TestAnInterruptedServerSaysGoodbye(t *testing.T) {
	t.Parallel()
	server, addr := serveIt(t, "")
	ann, bob := pair(t, addr)
	server.interrupt()
	require.Zero(t, server.exitCode())
	ann.await("closed by the peer: 1001")
	bob.await("closed by the peer: 1001")
}

func TestCommands(t *testing.T) {
	t.Parallel()
	_, addr := serveIt(t, "")
	ann, bob := pair(t, addr)
	ann.say("/who")
	ann.await("-- here: ann, bob\n")
	ann.say("/help")
	ann.await("-- what you type is sent to everybody")
	ann.say("/dance")
	ann.await("-- no such command: \"/dance\"\n")
	ann.say(strings.Repeat("x", maxText) + " and so on")
	ann.await("-- not sent: longer than 1000 bytes: it begins with \"xxxxxxxxxxxxxxxxxxxx\"\n")
	ann.say("bell \a, \x1b[2J, \u202e and \xff")
	ann.say("/quit")
	require.Zero(t, ann.exitCode())
	bob.await("\n")
	bob.await(`ann: bell \a, \x1b[2J, \u202e and ` + "\uFFFD\n")
}

func TestTheSameNameMayBeThereTwice(t *testing.T) {
	t.Parallel()
	_, addr := serveIt(t, "")
	one, two := joinIt(t, addr, "ann"), joinIt(t, addr, "ann")
	one.await("-- here as ann")
	two.await("-- here as ann")
	one.say("I am the first")
	two.await("ann: I am the first\n")
	two.say("/who")
	two.await("-- here: ann (2 times)\n")
}
