package main

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/examples/internal/program"
)

func TestMain(m *testing.M) {
	program.Main(m, example.Main, goleak.IgnoreAnyFunction("github.com/redial-go/redial/examples/internal/terminal.(*Input).read"))
}

// freeAddr returns an address without a listener.
func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func serving(t *testing.T, addr string) *program.Program {
	p := program.StartFilter(t, "serve", "-addr", addr)
	p.WantLines("listening on " + addr)
	return p
}

func TestTypedLinesWaitForTheServer(t *testing.T) {
	addr := freeAddr(t)
	server := serving(t, addr)
	client := program.StartFilter(t, "talk", "-addr", addr)
	client.Await("-- connected\n")
	client.Type("one")
	client.WantLines("one")

	server.Kill()
	client.Await("-- away: ")
	client.Type("two", "three")
	serving(t, addr)
	client.WantLines("two", "three")
	client.Type("four")
	client.CloseInput()
	client.WantLines("four")
	require.Equal(t, 0, client.ExitCode())
}

// A pipe may end before the server is there for the first time.
func TestTheEndOfTheInputWaitsForTheAnswers(t *testing.T) {
	addr := freeAddr(t)
	client := program.StartFilter(t, "talk", "-addr", addr)
	client.Type("one", "two")
	client.Await("next try in")
	client.CloseInput()
	serving(t, addr)
	client.WantLines("one", "two")
	require.Equal(t, 0, client.ExitCode())
}

// A pipe brings more lines than the client keeps.
func TestAPipeIsSentWhole(t *testing.T) {
	addr := freeAddr(t)
	serving(t, addr)
	client := program.StartFilter(t, "talk", "-addr", addr)
	for i := range 100 {
		client.Type(strings.Repeat("x\n", 99) + fmt.Sprint(i))
	}
	client.CloseInput()
	require.Equal(t, 0, client.ExitCode())
	require.NotContains(t, client.String(), "not sent")
	require.Equal(t, 10_000, strings.Count(client.Out.String(), "\n"))
}

func TestLinesThatWereNotSentAreShown(t *testing.T) {
	client := program.StartFilter(t, "talk", "-addr", freeAddr(t))
	client.Type("one", strings.Repeat("x", maxLine+1))
	client.Await("next try in")
	client.CloseInput() // and not Ctrl-C, which may come before the second line was read
	require.Equal(t, 1, client.ExitCode())
	require.Contains(t, client.String(), "-- not sent: \"one\": the end came first\n")
	require.Contains(t, client.String(), "lines talk: lines that were not sent: 2\n")
}

// The connection survives a line that is too long to send.
func TestALineThatIsTooLongIsRefusedWithAReason(t *testing.T) {
	addr := freeAddr(t)
	serving(t, addr)
	client := program.StartFilter(t, "talk", "-addr", addr)
	client.Type(strings.Repeat("x", maxLine+1), "after")
	client.WantLines("after")
	client.Await("-- not sent: \"xxx")
	client.CloseInput()
	require.Equal(t, 1, client.ExitCode())
	client.Await("lines talk: lines that were not sent: 1\n")
}

func TestAFullDiskIsAFailure(t *testing.T) {
	addr := freeAddr(t)
	serving(t, addr)
	client := program.StartWith(t, program.FullDisk(t), "talk", "-addr", addr)
	client.Type("one")
	require.Equal(t, 4, client.ExitCode())
	require.Contains(t, client.String(), "lines talk: standard output: write /dev/stdout: "+syscall.ENOSPC.Error()+"\n")
}

func TestAnInterruptEndsEveryCommand(t *testing.T) {
	addr := freeAddr(t)
	for _, p := range []*program.Program{serving(t, addr), program.StartFilter(t, "talk", "-addr", addr)} {
		if p.Cmd.Args[1] == "talk" {
			p.Await("-- ")
		}
		p.Interrupt()
		require.Zero(t, p.ExitCode())
	}
}

func TestWrongUsageIsAnError(t *testing.T) {
	for _, c := range []struct{ args, said string }{
		{"", "usage: lines serve"},
		{"sing", `lines: there is no command "sing"`},
		{"talk -x", "flag provided but not defined: -x"},
		{"serve extra", `lines serve: unexpected arguments ["extra"]`},
	} {
		p := program.StartFilter(t, strings.Fields(c.args)...)
		require.Equal(t, 2, p.ExitCode())
		require.Contains(t, p.String(), c.said)
	}
	p := program.StartFilter(t, "talk", "-addr", "nowhere")
	require.Equal(t, 1, p.ExitCode())
	require.Contains(t, p.String(), "Address")
	p = program.StartFilter(t, "serve", "-addr", "127.0.0.1:x")
	require.Equal(t, 1, p.ExitCode())
}

func TestHelpIsNoError(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"help"}, {"talk", "-h"}} {
		p := program.StartFilter(t, args...)
		require.Equal(t, 0, p.ExitCode())
		require.Contains(t, strings.ToLower(p.Out.String()), "usage")
		require.Empty(t, p.String())
	}
}
