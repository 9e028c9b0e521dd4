package terminal

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shown returns what a screen writes for the events that play sends.
func shown(terminal bool, prompt string, play func(s *Screen)) string {
	var out strings.Builder
	s := NewPlain(&out)
	s.terminal, s.columns = terminal, func() int { return 21 }
	play(s)
	for len(s.events) > 0 {
		s.show(<-s.events, prompt)
	}
	s.flush()
	return out.String()
}

func TestInAPipeThereAreLinesOnly(t *testing.T) {
	require.Equal(t, "bob: hello, this is a long line\n-- away: refused\n-- away: refused\n", shown(false, "> ", func(s *Screen) {
		s.Line("bob: hello, this is a long line")
		s.Entered()
		s.Away("away", "refused")
		s.Away("away", "refused")
	}))
}

func TestAWriteThatFailsIsReportedAndNothingWaitsForIt(t *testing.T) {
	s := NewPlain(brokenPipe{})
	s.Start(nil)
	s.Line("one")
	<-s.Failed()
	require.ErrorIs(t, s.Err(), io.ErrClosedPipe)
	for range 1000 {
		s.Line("more")
	}
	s.Close()
	s.Line("after the end")
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestTheEndShowsTheLinesThatAreLeft(t *testing.T) {
	var out strings.Builder
	s := NewPlain(&out)
	s.terminal = true
	s.Line("one")
	close(s.stop)
	s.run(func() string { return "> " })
	require.True(t, strings.HasSuffix(out.String(), "\r\x1b[Kone\n") || strings.HasSuffix(out.String(), "one\x1b8\x1b[B\r\x1b[K"), "%q", out.String())
}

func TestOnATerminalALineGoesAboveTheTypedText(t *testing.T) {
	above := func(row string) string { return "\x1bD\x1b[A\x1b7\r\x1b[L" + row + "\x1b8\x1b[B" }
	require.Equal(t, above("bob: hello, this is")+above("   long"), shown(true, "> ", func(s *Screen) {
		s.Line("bob: hello, this is long")
	}))
}

func TestOnATerminalEachLineBeginsWithThePrompt(t *testing.T) {
	require.Equal(t, "\rready > ", shown(true, "ready > ", (*Screen).Entered))
}

func TestOnATerminalTheSameCauseIsShownOnceInARow(t *testing.T) {
	out := shown(true, "> ", func(s *Screen) {
		s.Away("away 1", "eof")
		s.Away("away 2", "refused")
		s.Entered()
		s.Away("away 3", "refused")
		s.Note("back")
		s.Away("away 4", "refused")
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

// A copy of the rest for each row would be 300 GB.
func TestAVeryLongLineIsCutInOnePass(t *testing.T) {
	rows := wrap(strings.Repeat("x", 8<<20), 59)
	require.InDelta(t, 8<<20/56, len(rows), 1)
}

func FuzzWrap(f *testing.F) {
	f.Add("ann: hello there", uint8(20))
	f.Add(strings.Repeat(" ", 100), uint8(20))
	f.Fuzz(func(t *testing.T, text string, columns uint8) {
		rows := wrap(text, max(int(columns), 19))
		require.Equal(t, strings.ReplaceAll(text, " ", ""), strings.ReplaceAll(strings.Join(rows, ""), " ", ""))
	})
}
