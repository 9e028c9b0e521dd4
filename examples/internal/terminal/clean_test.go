package terminal

import (
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

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
