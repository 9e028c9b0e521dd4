//go:build !js

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/internal/program"
)

// The program must leave no goroutine (promise 11 of package reconnect).
func TestMain(m *testing.M) {
	program.Main(m, func() int { return command.Main("marketdata", run) })
}

func TestTheClientSurvivesEveryMisbehaviour(t *testing.T) {
	t.Parallel()
	p := program.Start(t)
	require.Zero(t, p.ExitCode(), p)
	out := p.String()
	for _, f := range []fault{killed, silent, restarts, busy, drops, shouts, skips} {
		require.Regexp(t, `(?m)^ +\d+\.\d{3}s  VENUE +`+regexp.QuoteMeta(string(f))+`$`, out)
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(string(f))+` +survived +\S+ +\d x `, out)
	}
	require.Regexp(t, `(?m)^ +session +downtime +ready +messages +gaps +missed +resyncs +ended by$`, out)
	require.Regexp(t, `(?m)waiting +1s as the server asks, then \S+ before attempt \d \(overload\)$`, out)
	require.Contains(t, out, "\nok: all 7 survived, the rotation lost nothing, the books equal the venue's, no message of an old session was applied\n")
	require.Regexp(t, `(?m)held +session \d+: ADA-USD$`, out, "added while the connection lives")
	require.Regexp(t, `(?m)released +session \d+: C-USD$`, out)
	require.Regexp(t, `(?m)out of sync +\S+: numbers (\d+) to \d+ are missing$`, out)
	require.NotContains(t, out, "\x1b", "the output is not a terminal")
	require.NotContains(t, out, secret)
}

func TestAnInterruptedDrillFailsAndShowsTheTables(t *testing.T) {
	t.Parallel()
	p := program.Start(t)
	p.Await("VENUE")
	p.Interrupt()
	require.Equal(t, 1, p.ExitCode(), p)
	require.Contains(t, p.String(), "ended by")
	require.Contains(t, p.String(), "not tried")
	require.Regexp(t, `\nmarketdata: interrupted after \d of 7\n$`, p.String())
}

func TestWrongFlagsAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, message string }{
		{"-bogus", "flag provided but not defined: -bogus"},
		{"wss://feed.example", `unexpected arguments ["wss://feed.example"]`},
	} {
		p := program.Start(t, strings.Fields(c.args)...)
		require.Equal(t, 2, p.ExitCode(), c.args)
		require.Contains(t, p.String(), c.message)
		require.NotContains(t, p.String(), "hush", "no secret is printed")
	}
	p := program.StartFilter(t, "-h")
	require.Zero(t, p.ExitCode())
	require.Contains(t, p.Out.String(), "  -page ")
	require.Empty(t, p.String())
}
