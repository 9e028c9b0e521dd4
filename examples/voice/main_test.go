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
	program.Main(m, func() int { return command.Main("voice", run) })
}

func TestACallOnRealSocketsLosesNothing(t *testing.T) {
	t.Parallel()
	p := program.Start(t, "-for", "3s", "-life", "1500ms", "-warn", "1s")
	code := p.ExitCode() // which depends on the pauses, and so on the machine
	out := p.String()
	require.Equal(t, code == 0, strings.HasSuffix(out, "\nok: every frame came once, and no pause was more than 100ms longer than the sender's own\n"))
	require.Regexp(t, `(?m)^ +2 +[\d.]+s +rotation +[\d.]+s +read: closed by the peer: 1000 "the call has moved"$`, out)
	require.Regexp(t, `(?m)^\d sessions were replaced; 0 were to be replaced, and were not$`, out)
	require.Regexp(t, `(?m)^ +caller to service +150 +150 +0 +0 +\S+ +\S+$`, out)
	require.Regexp(t, `(?m)^ +service to caller +(\d+) +\d+ +0 +0 +\S+ +\S+$`, out)
}

func TestACallWithoutRotationIsCutAndFails(t *testing.T) {
	t.Parallel()
	p := program.Start(t, "-for", "2s", "-life", "700ms", "-warn", "100ms", "-rotate=false")
	require.Equal(t, 1, p.ExitCode(), p)
	require.Regexp(t, `(?m)^ +2 +[\d.]+s +redial `, p.String())
	require.Regexp(t, `\nvoice: caller to service: \d+ frames are missing, 0 came twice, the longest pause was `, p.String())
}

func TestAnInterruptedCallFailsAndShowsTheTables(t *testing.T) {
	t.Parallel()
	p := program.Start(t)
	p.Await("session 1 is ready")
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
		{"-overlap none", "must be hold, mix or break"},
		{"-for 10ms", "-for must be at least 20ms"},
		{"-warn 0s", "-warn must be above 0"},
		{"-life 1s -warn 1s", "-life must be longer than -warn"},
	} {
		p := program.Start(t, strings.Fields(c.args)...)
		require.Equal(t, 2, p.ExitCode(), c.args)
		require.Contains(t, p.String(), c.message)
	}
	p := program.StartFilter(t, "-h")
	require.Zero(t, p.ExitCode())
	require.Contains(t, p.Out.String(), "Usage of voice:")
	require.Empty(t, p.String())
}
