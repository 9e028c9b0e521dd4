package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/program"
)

// startOnTerminal starts the program on a pseudo-terminal.
func startOnTerminal(t *testing.T, args ...string) *program.Program {
	t.Helper()
	return program.StartOnTerminal(t, args...)
}

// The screen writes these before and after a row that it inserts.
const (
	above = "\x1bD\x1b[A\x1b7\r\x1b[L"
	below = "\x1b8\x1b[B"
)

func TestOnATerminalThePromptCountsDownAndTypedLinesArrive(t *testing.T) {
	t.Parallel()
	server, addr := serveIt(t, "")
	ann := startOnTerminal(t, "join", "-url", "ws://"+addr+"/", "-name", "ann")
	bob := joinIt(t, addr, "bob")
	bob.Await("-- here as bob")
	ann.Await("  ready > ")
	ann.Press("I am typ")
	ann.Await("I am typ")
	bob.Type("hello " + "there, or wherever you are: I hope that this finds you well")
	ann.Await(above + "bob: hello there, or wherever you are: I hope that this" + below)
	ann.Await("\x1b[L   finds you well")
	server.Kill()
	ann.Await("-- away, next try in ")
	ann.Find(`\x1b7\r +next try in \d+ s > \x1b8`)
	ann.Press("ing\r")
	ann.Press("still?\r")
	serveIt(t, addr)
	hurry(ann, "-- back after ", 1)
	hurry(bob, "ann: still?\n", 1)
	require.Equal(t, []string{"I am typing", "still?"}, heard(bob, "ann"))
	require.Empty(t, heard(ann, "ann"), "the user sees it where it was typed")
	ann.Press(program.CtrlD)
	require.Zero(t, ann.ExitCode())
}

func TestCtrlCLeaves(t *testing.T) {
	t.Parallel()
	_, addr := serveIt(t, "")
	ann := startOnTerminal(t, "join", "-url", "ws://"+addr+"/", "-name", "ann")
	ann.Await("  ready > ")
	ann.Type("hello")
	ann.Press("and")
	ann.Await("and")
	ann.Press(program.CtrlC)
	require.Zero(t, ann.ExitCode())
}

func TestCtrlCLeavesAlsoWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	server, addr := serveIt(t, "")
	ann := startOnTerminal(t, "join", "-url", "ws://"+addr+"/", "-name", "ann")
	ann.Await("  ready > ")
	server.Kill()
	ann.Find(`next try in \d+ s > `)
	ann.Press("lost\r")
	// The program has read it when the prompt is there anew, perhaps after the line of a failed dial. (Ctrl-C makes a
	// terminal discard what is not read.)
	ann.Find(`(?s)lost\r\n(.*[^7])?\r +\w+ `)
	ann.Press(program.CtrlC)
	ann.Await(`-- not sent: the end came first: "lost"`)
	require.Equal(t, 1, ann.ExitCode())
}
