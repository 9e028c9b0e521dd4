package timeline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/articles/timeline"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	immediate = backoff.Limit(&backoff.Exponential{Base: -1}, 3, 0)
	deferred  = backoff.Limit(&backoff.Exponential{Base: time.Second, Cap: -1, Jitter: backoff.JitterNone}, 3, 0)
)

// The load is k in second k up to 4x in second 4.
func TestImmediateRetriesAmplifyFourTimes(t *testing.T) {
	require.Equal(t, []int{1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}, timeline.Draw(immediate, 13).Amplification())
}

// 2x from second 3, 3x from second 6, 4x from second 11.
func TestDeferredRetriesAmplifyAsHighOnlyLater(t *testing.T) {
	require.Equal(t, []int{1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4}, timeline.Draw(deferred, 13).Amplification())
}

// The attempts start at +0, +2, +5, +10 s.
func TestTriesBeginWhereTheirPausesEnd(t *testing.T) {
	var begins []int
	for second, at := range timeline.Draw(deferred, 20).Seconds {
		for _, l := range at {
			if l.Request == 0 {
				require.Equal(t, len(begins), l.Try)
				begins = append(begins, second)
			}
		}
	}
	require.Equal(t, []int{0, 2, 5, 10}, begins)
}

func TestTheDiagramIsDrawnWithLetters(t *testing.T) {
	var b strings.Builder
	n, err := timeline.Draw(deferred, 6).WriteTo(&b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), n)
	require.Equal(t, strings.Join([]string{
		"                              F",
		"                  C   D   E   d",
		"          A   B   a   b   c   a",
		"second    1   2   3   4   5   6",
		"load     1x  1x  2x  2x  2x  3x",
		"",
	}, "\n"), b.String())
}

func TestAnEmptyDiagramHasNoSeconds(t *testing.T) {
	require.Empty(t, timeline.Draw(deferred, 0).Amplification())
	var b strings.Builder
	_, err := timeline.Draw(deferred, -1).WriteTo(&b)
	require.NoError(t, err)
}
