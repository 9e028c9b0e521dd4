package terminal

import (
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

func TestTheStateHasOneWidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := func(d time.Duration) string {
			return State(reconnect.Status{State: reconnect.StateWaiting, Next: time.Now().Add(d)})
		}
		require.Equal(t, "             ready", State(reconnect.Status{State: reconnect.StateReady}))
		require.Equal(t, "   next try in 3 s", waiting(2500*time.Millisecond))
		require.Equal(t, "next try in 3610 s", waiting(time.Hour+10*time.Second), "the longest: a server may ask for an hour")
		require.Equal(t, "   next try in 1 s", waiting(0), "there is no try in 0 s")
	})
}

func TestControlSequencesAreEscaped(t *testing.T) {
	require.Equal(t, `a\x1b]0;x\aä\u202e\n`, Clean("a\x1b]0;x\aä\u202e\n"))
	require.Equal(t, `\u009b2J 王 é`, Clean("\u009b2J 王 é"))
	require.Equal(t, `\xff\x9b`+"\uFFFD", Clean("\xff\x9b\uFFFD"))
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[2J")
	f.Add("\xff\u200d")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range Clean(text) {
			require.True(t, unicode.IsPrint(r), "%+q", r)
		}
	})
}
