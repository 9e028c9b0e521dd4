package main

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/program"
)

// startOnTerminal starts the program on a pseudo-terminal, whose keyboard is stdin.
func startOnTerminal(t *testing.T, args ...string) *program.Program {
	t.Helper()
	keyboard, tty := openTerminal(t)
	p := program.StartWith(t, func(p *program.Program) {
		p.Stdin = keyboard
		p.Copying.Go(func() { io.Copy(p, keyboard) }) // until no process has the terminal open
		p.Cmd.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = tty, tty, tty
		p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}, args...)
	require.NoError(t, tty.Close())
	t.Cleanup(func() {
		p.Cmd.Process.Kill()
		p.ExitCode()
		keyboard.Close()
	})
	return p
}

func openTerminal(t *testing.T) (keyboard, tty *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminal on this machine: ", err)
	}
	var locked, number int32
	size := [4]uint16{24, 60, 0, 0}
	control(t, keyboard, syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	control(t, keyboard, syscall.TIOCGPTN, unsafe.Pointer(&number))
	control(t, keyboard, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return keyboard, tty
}

func control(t *testing.T, f *os.File, request uintptr, value unsafe.Pointer) {
	t.Helper()
	raw, err := f.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(value))
		require.Zero(t, errno)
	}))
}

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
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
	ann.Await(makeRoom + save + "\r" + insertRow + "bob: hello there, or wherever you are: I hope that this" + restore + down)
	ann.Await(insertRow + "   finds you well")
	server.Kill()
	ann.Await("-- away, next try in ")
	ann.Find(`\x1b7\r +next try in \d+ s > \x1b8`)
	ann.Press("ing\r")
	ann.Press("still?\r")
	serveIt(t, addr)
	hurry(ann, "-- 2 messages sent", 1)
	hurry(bob, "ann: still?\n", 1)
	require.Equal(t, []string{"I am typing", "still?"}, heard(bob, "ann"))
	require.Empty(t, heard(ann, "ann"), "the user sees it where it was typed")
	ann.Press(ctrlD)
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
	ann.Press(ctrlC)
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
	ann.Find(`lost\r\n\r +\w+ `) // the program has read it; Ctrl-C makes a terminal discard what is not read
	ann.Press(ctrlC)
	ann.Await(`-- not sent: no connection: "lost"`)
	require.Equal(t, 1, ann.ExitCode())
}
