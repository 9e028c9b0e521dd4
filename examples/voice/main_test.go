//go:build !js

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/internal/program"
)

// The program must leave no goroutine.
func TestMain(m *testing.M) {
	program.Main(m, func() int { return command.Main("voice", command.Checked(run)) })
}

func TestACallOnRealSocketsLosesNothing(t *testing.T) {
	t.Parallel()
	p := program.Start(t, "-for", "3s", "-life", "1500ms")
	require.Zero(t, p.ExitCode())
	require.Contains(t, p.String(), `msg="session ended" session=1 `)
	require.Contains(t, p.String(), `cause="read: closed by the peer: 1000 \"the call has moved\""`)
	require.Contains(t, p.String(), "\ncaller to service: 150 sent, 150 received, 0 missing, 0 twice, longest pause ")
	require.Regexp(t, `\nservice to caller: (\d+) sent, \d+ received, 0 missing, 0 twice, longest pause `, p.String())
}

func TestACallWithoutRotationIsCutAndFails(t *testing.T) {
	t.Parallel()
	p := program.Start(t, "-for", "2s", "-life", "700ms", "-rotate=false")
	require.Equal(t, 1, p.ExitCode(), p)
	require.Contains(t, p.String(), "waiting to redial")
	require.Regexp(t, `\ncaller to service: .* received, \d+ missing, 0 twice`, p.String())
	// The last frames may be lost.
	require.Regexp(t, `\nvoice: (not every frame came once|the last frames have not come within 10 s)\n`, p.String())
}

func TestAnInterruptedCallFailsAndShowsTheCounts(t *testing.T) {
	t.Parallel()
	p := program.Start(t)
	p.Await("session ready")
	p.Interrupt()
	require.Equal(t, 1, p.ExitCode(), p)
	require.Contains(t, p.String(), "longest pause")
	require.Contains(t, p.String(), "voice: interrupted\n")
}

func TestWrongFlagsAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, message string }{
		{"-bogus", "flag provided but not defined: -bogus"},
		{"now", `unexpected arguments ["now"]`},
		{"-for 10ms", "-for and -life must be at least 20ms, which is a frame: they are 10ms and 10s\n"},
		{"-life 0s", "-for and -life must be at least 20ms, which is a frame: they are 1m0s and 0s\n"},
	} {
		p := program.Start(t, strings.Fields(c.args)...)
		require.Equal(t, 2, p.ExitCode(), c.args)
		require.Contains(t, p.String(), c.message)
	}
	p := program.StartFilter(t, "-h")
	require.Zero(t, p.ExitCode())
	require.Contains(t, p.Out.String(), "usage: voice [flags]\n\nHolds a call ")
	require.Empty(t, p.String())
}
