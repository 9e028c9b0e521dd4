//go:build !js

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shown returns what a screen writes for the events that play sends.
func shown(terminal bool, prompt string, play func(s *screen)) string {
	var out strings.Builder
	s := &screen{
		out: &out, terminal: terminal, columns: func() int { return 21 },
		events: make(chan event, 64), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	play(s)
	for len(s.events) > 0 {
		s.show(<-s.events, prompt)
	}
	return out.String()
}

func TestInAPipeThereAreLinesOnly(t *testing.T) {
	require.Equal(t, "bob: hello, this is a long line\n-- away: refused\n-- away: refused\n", shown(false, "> ", func(s *screen) {
		s.line("bob: hello, this is a long line")
		s.entered()
		s.away("away", "refused")
		s.away("away", "refused")
	}))
}

func TestOnATerminalALineGoesAboveTheTypedText(t *testing.T) {
	above := func(row string) string { return "\x1bD\x1b[A\x1b7\r\x1b[L" + row + "\x1b8\x1b[B" }
	require.Equal(t, above("bob: hello, this is")+above("   long"), shown(true, "> ", func(s *screen) {
		s.line("bob: hello, this is long")
	}))
}

func TestOnATerminalEachLineBeginsWithThePrompt(t *testing.T) {
	require.Equal(t, "\rready > ", shown(true, "ready > ", (*screen).entered))
}

func TestOnATerminalTheSameCauseIsShownOnceInARow(t *testing.T) {
	out := shown(true, "> ", func(s *screen) {
		s.away("away 1", "eof")
		s.away("away 2", "refused")
		s.entered()
		s.away("away 3", "refused")
		s.note("back")
		s.away("away 4", "refused")
	})
	require.Contains(t, out, "away 1: eof")
	require.Contains(t, out, "away 2: refused")
	require.NotContains(t, out, "away 3")
	require.Contains(t, out, "away 4: refused")
}

func TestRowsAreCutBetweenWordsIfPossible(t *testing.T) {
	require.Equal(t, []string{""}, wrap("", 10))
	require.Equal(t, []string{"1234567890"}, wrap("1234567890", 10))
	require.Equal(t, []string{"12345", "   67890", "   abc"}, wrap("12345 67890 abc", 10))
	require.Equal(t, []string{"1234567890", "   1234567", "   890"}, wrap(strings.Repeat("1234567890", 2), 10))
	require.Equal(t, []string{"王王王王王", "   王"}, wrap("王王王王王王", 10))
}

func FuzzWrap(f *testing.F) {
	f.Add("ann: hello there", uint8(20))
	f.Add(strings.Repeat(" ", 100), uint8(20))
	f.Fuzz(func(t *testing.T, text string, columns uint8) {
		rows := wrap(text, max(int(columns), 19))
		require.Equal(t, strings.ReplaceAll(text, " ", ""), strings.ReplaceAll(strings.Join(rows, ""), " ", ""))
	})
}
