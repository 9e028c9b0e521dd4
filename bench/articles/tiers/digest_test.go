package tiers_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/tiers"
)

// The digests are of the code of November 2026, in which scenarios were functions. They must stay the same to the last
// request.
func TestTheIncidentGivesTheSeriesItAlwaysGave(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("math.Exp has other last bits here")
	}
	text, err := os.ReadFile("testdata/digests.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		s, err := tiers.Find(words[0])
		require.NoError(t, err)
		r, err := tiers.Run(t.Context(), tiers.Setup{Scenario: s, Strategy: strategy(t, s, words[1]), RPS: s.RPS / 20, Seed: 27})
		require.NoError(t, err)
		require.Equal(t, words[2], digest(r), "%s: %s", s.Name, words[1])
	}
}

func digest(r *tiers.Result) string {
	h := sha256.New()
	for _, b := range append(r.Buckets, r.Total) {
		fmt.Fprintln(h, b.Arrived, b.Ended, b.Succeeded, b.Turned)
		for _, t := range b.Tiers {
			fmt.Fprintln(h, t.Sent, t.Completed, t.Refused, t.Queue)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}
