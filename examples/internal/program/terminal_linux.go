package program

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// The keys that a terminal understands itself.
const (
	CtrlC = "\x03"
	CtrlD = "\x04"
)

// StartOnTerminal starts the program on a pseudo-terminal of 24 rows and 60 columns, whose keyboard is
// Stdin and whose screen is Output.
func StartOnTerminal(t *testing.T, args ...string) *Program {
	t.Helper()
	return StartOnTerminalWith(t, func(*Program) {}, args...)
}

// StartOnTerminalWith is StartOnTerminal, but connect may set some files of Cmd to others.
func StartOnTerminalWith(t *testing.T, connect func(*Program), args ...string) *Program {
	t.Helper()
	keyboard, tty := openTerminal(t)
	t.Cleanup(func() { keyboard.Close() })
	p := StartWith(t, func(p *Program) {
		p.Stdin = keyboard
		p.Copying.Go(func() { io.Copy(p, keyboard) }) // until no process has the terminal open
		p.Cmd.Stdin, p.Cmd.Stdout, p.Cmd.Stderr = tty, tty, tty
		p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		connect(p)
		if p.Cmd.Stdin != tty {
			p.Cmd.SysProcAttr.Ctty = 2 // standard error
		}
	}, args...)
	require.NoError(t, tty.Close())
	return p
}

// Resize changes the width of the program's terminal.
func (p *Program) Resize(columns uint16) {
	p.t.Helper()
	setSize(p.t, p.Stdin.(*os.File), columns)
}

func openTerminal(t *testing.T) (keyboard, tty *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminal on this machine: ", err)
	}
	var locked, number int32
	control(t, keyboard, syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	control(t, keyboard, syscall.TIOCGPTN, unsafe.Pointer(&number))
	setSize(t, keyboard, 60)
	tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return keyboard, tty
}

func setSize(t *testing.T, f *os.File, columns uint16) {
	t.Helper()
	size := [4]uint16{24, columns, 0, 0}
	control(t, f, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
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
