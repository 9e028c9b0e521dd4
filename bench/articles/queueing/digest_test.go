package queueing_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/queueing"
)

// The digests are of the code of November 2026, in which scenarios were functions. A change of how a scenario is written
// down must not change a bit of its series.
func TestEachScenarioGivesTheSeriesItAlwaysGave(t *testing.T) {
	text, err := os.ReadFile("testdata/digests.txt")
	require.NoError(t, err)
	named := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		s, err := queueing.Find(words[0])
		require.NoError(t, err)
		y, err := s.Strategy(words[1])
		require.NoError(t, err)
		r, err := queueing.Run(queueing.Setup{Scenario: s, Strategy: y, RPS: 1500, Seed: 27})
		require.NoError(t, err)
		require.Equal(t, words[2], digest(r), "%s: %s", s.Name, y.Name)
		named[words[0]+" "+words[1]] = true
	}
	for _, s := range queueing.Scenarios() {
		for _, y := range s.Strategies {
			require.True(t, named[s.Name+" "+y.Name], "%s: %s", s.Name, y.Name)
		}
	}
}

func digest(r *queueing.Result) string {
	h := sha256.New()
	for _, b := range append(r.Buckets, r.Total) {
		fmt.Fprintln(h, b.Arrived, b.Offered, b.Completed, b.OK, b.First, b.FirstOK, b.RetryOK, b.Ended, b.Succeeded,
			b.Unmet, int64(b.P50), int64(b.P99), b.QueueSum, b.QueueMax, math.Float64bits(b.CPU))
	}
	fmt.Fprintln(h, r.CPUs, r.Fine, r.Ended, r.OK)
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}
