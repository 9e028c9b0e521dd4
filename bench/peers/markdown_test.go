package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTableOfTheREADMEHasMediansAndTheNoise(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, filled(t).WriteMarkdown(&b))
	require.Equal(t, `|  | receive 128 B | allocations | silence noticed |
| --- | --- | --- | --- |
| coder, absolute | 150 ns |  |  |
| coder | 1.00 | 1.00 | not in time |
| coder (A/A) | 1.00 to 1.10 | 1.00 |  |
| gws | 0.25 | 0.50 |  |
| redial-push | 0.12 | 0.00 |  |
| nats |  |  | 240.0 s |

Measured 2026-01-02, a machine, load average 0.50 to 1.00, 1 to 2 rounds.
`, b.String())
}

// What "go run . -from ../peers.json -markdown -" prints.
func TestTheTableOfTheREADMEIsThatOfTheSavedFigures(t *testing.T) {
	saved, err := ReadFile("../peers.json")
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, saved.WriteMarkdown(&b))
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	require.Contains(t, string(text), b.String())
}
