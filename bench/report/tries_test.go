package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/queueing"
	"github.com/redial-go/redial/bench/internal/chart"
)

// drawn is a strategy's series in small.
func drawn(t *testing.T, scenario, strategy string) (queueing.Scenario, *queueing.Series) {
	s, err := queueing.Find(scenario)
	require.NoError(t, err)
	y, err := s.Strategy(strategy)
	require.NoError(t, err)
	series, err := queueing.Collect(t.Context(), queueing.Setup{Scenario: s, Strategy: y, RPS: 1000, Seed: 1, Bucket: queueing.FineBucket}, 1, nil)
	require.NoError(t, err)
	return s, series
}

func TestTheTriesAreStackedUpToTheLoad(t *testing.T) {
	s, series := drawn(t, "simple_retry_only", "retry-3x")
	layers := triesPanel(s, series).Layers
	require.Len(t, layers, 1+len(parts))
	whole := layers[1].(chart.Bars)
	require.Equal(t, parts[len(parts)-1].style, whole.Style, "the last part is seen above the others")
	for i, v := range whole.Values {
		require.InDelta(t, series.Rows[i].Amplification, v, 1e-9)
	}
	for n := 2; n <= len(parts); n++ {
		below, above := layers[n].(chart.Bars), layers[n-1].(chart.Bars)
		for i, v := range below.Values {
			require.LessOrEqual(t, v, above.Values[i]+1e-9, "each covers the lower part of the one before")
		}
	}
	first := layers[len(layers)-1].(chart.Bars)
	require.Equal(t, "first tries, succeeded", first.Style.Name)
	require.Zero(t, first.Values[int(750*time.Millisecond/queueing.FineBucket)], "in the failure none does")
}

func TestEachStrategyHasAPanelOfItsTries(t *testing.T) {
	s, one := drawn(t, "simple_retry_vs_backoff", "retry-3x")
	_, two := drawn(t, "simple_retry_vs_backoff", "retry-3x-with-exp-backoff")
	pic := triesPicture(s, []*queueing.Series{one, two, one})
	require.Len(t, pic.Panels, 3)
	require.Equal(t, []string{"retry-3x", "retry-3x-with-exp-backoff", "retry-3x"}, []string{pic.Panels[0].Title, pic.Panels[1].Title, pic.Panels[2].Title})
	require.True(t, pic.Panels[0].X.Bare)
	require.Equal(t, "time, s", pic.Panels[1].X.Label, "there is no panel below it")
}
