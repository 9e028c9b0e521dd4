//go:build !js

package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/internal/program"
	"github.com/redial-go/redial/examples/venue"
	"github.com/redial-go/redial/reconnect/debug"
)

// The program must leave no goroutine (promise 11 of package reconnect).
func TestMain(m *testing.M) {
	program.Main(m, func() int { return command.Main("marketdata", command.Checked(run)) })
}

func TestTheProgramSurvivesEveryTrouble(t *testing.T) {
	t.Parallel()
	p := program.Start(t, "-v")
	require.Zero(t, p.ExitCode(), p)
	out := p.String()
	for _, trouble := range (&market{Venue: new(venue.Venue)}).troubles() {
		require.Contains(t, out, `msg="the venue `+trouble.name+`"`)
	}
	require.Equal(t, 3, strings.Count(out, `msg="the venue behaves again"`))
	require.Regexp(t, `retry_after=1s verdict=overload cause="dial `, out)
	require.Regexp(t, `msg="book is stale" book=\S+ cause="numbers (\d+) to \d+ are missing"`, out)
	_, after, ok := strings.Cut(out, `msg="ok: the books are those of the venue"`)
	require.True(t, ok, out)
	require.NotContains(t, after, "book is stale")
}

// Without -v there is a line for each trouble, and a table of them at the end.
func TestTheProgramPrintsATableOfTheTroubles(t *testing.T) {
	t.Parallel()
	p := program.Start(t)
	require.Zero(t, p.ExitCode(), p)
	lines := strings.Split(strings.TrimSpace(p.String()), "\n")
	var names []string
	for _, trouble := range (&market{Venue: new(venue.Venue)}).troubles() {
		names = append(names, "the venue "+trouble.name)
	}
	names = append(names, "the client replaces its session")
	require.Len(t, lines, 2*len(names)+3, p)
	require.Equal(t, names, lines[:len(names)])
	table := lines[len(names):]
	require.Empty(t, table[0])
	require.Regexp(t, `^what happened +noticed after +back after +missed and fetched +books right after$`, table[1])
	const after = ` +\d[\d.]*m?s`
	for i, name := range names {
		line := table[i+2]
		require.LessOrEqual(t, len(line), 120)
		switch {
		case strings.HasSuffix(name, "leaves an update out"):
			require.Regexp(t, `^`+regexp.QuoteMeta(name)+after+` +- +\d+ updates`+after+`$`, line)
		case i == len(names)-1:
			require.Regexp(t, `^`+regexp.QuoteMeta(name)+` +-`+after+` +0 updates +-$`, line)
		default:
			require.Regexp(t, `^`+regexp.QuoteMeta(name)+after+after+` +\d+ updates`+after+`$`, line)
		}
	}
	require.Equal(t, "ok: the books are those of the venue", lines[len(lines)-1])
}

// The page can be opened at any time, and there are always troubles to see in it.
func TestWithAPageTheTroublesAreRepeated(t *testing.T) {
	t.Parallel()
	p := program.Start(t, "-page", ":0")
	p.Await("ok: the books are those of the venue")
	p.Find(`(?s)ok: the books are those of the venue.*the venue is killed.*the venue falls silent`)
	p.Interrupt()
	require.Equal(t, 1, p.ExitCode(), p)
	require.Contains(t, p.String(), "marketdata: interrupted\n")
}

func TestThePageShowsTheClientUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	p := program.Start(t, "-page", ":0")
	link := p.Find(`(?m)^page: (http://127\.0\.0\.1:\d+/)\?token=(\w+)$`)
	ask, err := http.NewRequest(http.MethodGet, link[1]+"?json", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(ask)
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	ask.Header.Set("Authorization", "Bearer "+link[2])
	p.Await("the venue is killed")
	var got debug.Snapshot
	require.Eventually(t, func() bool {
		resp, err := http.DefaultClient.Do(ask)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		got = debug.Snapshot{}
		return json.NewDecoder(resp.Body).Decode(&got) == nil && len(got.Conns) == 1 && got.Conns[0].Session > 0
	}, 30*time.Second, 10*time.Millisecond)
	require.Equal(t, "feed", got.Conns[0].Name)
	require.NotNil(t, got.Conns[0].Subscriptions)
	p.Interrupt()
	require.Equal(t, 1, p.ExitCode(), p)
	require.Contains(t, p.String(), "marketdata: interrupted\n")
}

func TestWrongFlagsAreNamed(t *testing.T) {
	t.Parallel()
	for args, message := range map[string]string{
		"-bogus":             "flag provided but not defined: -bogus",
		"wss://feed.example": `unexpected arguments ["wss://feed.example"]`,
		"-page nonsense":     `marketdata: -page: debug: the address "nonsense" has not the form host:port`,
		"-page 127.0.0.1:x":  "marketdata: -page: ",
	} {
		p := program.Start(t, strings.Fields(args)...)
		require.Equal(t, 2, p.ExitCode(), args)
		require.Contains(t, p.String(), message)
	}
	p := program.StartFilter(t, "-h")
	require.Zero(t, p.ExitCode())
	require.Contains(t, p.Out.String(), "usage: marketdata [flags]\n\nKeeps order books ")
	require.Contains(t, p.Out.String(), "  -page ")
	require.Empty(t, p.String())
}
