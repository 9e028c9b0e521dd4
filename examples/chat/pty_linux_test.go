package main

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// startOnTerminal starts the program on a pseudo-terminal, whose keyboard is stdin.
func startOnTerminal(t *testing.T, args ...string) *running {
	t.Helper()
	keyboard, tty := openTerminal(t)
	p := startWith(t, func(p *running) {
		p.stdin = keyboard
		p.copied.Go(func() { io.Copy(p, keyboard) }) // until no program has the terminal
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}, args...)
	require.NoError(t, tty.Close())
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.exitCode()
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

func (p *running) press(keys string) {
	p.t.Helper()
	_, err := io.WriteString(p.stdin, keys)
	require.NoError(p.t, err)
}

func TestOnATerminalThePromptCountsDownAndWhatIsTypedArrives(t *testing.T) {
	t.Parallel()
	server, addr := serveIt(t, "")
	ann := startOnTerminal(t, "join", "-url", "ws://"+addr+"/", "-name", "ann")
	bob := joinIt(t, addr, "bob")
	bob.await("-- here as bob")
	ann.await("  ready > ")
	ann.press("I am typ")
	ann.await("I am typ")
	bob.say("hello " + "there, or wherever you are: I hope that this finds you well")
	ann.await(makeRoom + save + "\r" + insertRow + "bob: hello there, or wherever you are: I hope that this" + restore + down)
	ann.await(insertRow + "   finds you well")
	server.kill()
	ann.await("-- away, next try in ")
	ann.find(`\x1b7\r +next try in \d+ s > \x1b8`)
	ann.press("ing\r")
	ann.press("still?\r")
	serveIt(t, addr)
	ann.hurry("-- 2 messages sent", 1)
	bob.hurry("ann: still?\n", 1)
	require.Equal(t, []string{"I am typing", "still?"}, bob.heard("ann"))
	require.Empty(t, ann.heard("ann"), "what was typed stands there already")
	ann.press(ctrlD)
	require.Zero(t, ann.exitCode())
}

func TestCtrlCLeaves(t *testing.T) {
	t.Parallel()
	_, addr := serveIt(t, "")
	ann := startOnTerminal(t, "join", "-url", "ws://"+addr+"/", "-name", "ann")
	ann.await("  ready > ")
	ann.say("hello")
	ann.press("and")
	ann.await("and")
	ann.press(ctrlC)
	require.Zero(t, ann.exitCode())
}

func TestCtrlCLeavesAlsoWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	server, addr := serveIt(t, "")
	ann := startOnTerminal(t, "join", "-url", "ws://"+addr+"/", "-name", "ann")
	ann.await("  ready > ")
	server.kill()
	ann.find(`next try in \d+ s > `)
	ann.press("lost\r")
	ann.find(`lost\r\n\r +\w+ `) // it was taken in: Ctrl-C makes a terminal forget what was not
	ann.press(ctrlC)
	ann.await(`-- not sent: no connection: "lost"`)
	require.Equal(t, 1, ann.exitCode())
}
