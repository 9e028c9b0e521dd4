package queueing_test

import (
	"context"
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/queueing"
)

// reference is one row of the calibration series: what its columns hold, by name; NaN
// for nothing.
type reference map[string]float64

// calibration returns the series of the original (10,000 rps, mean of 5 seeds,
// buckets of 50 ms), by scenario and strategy.
func calibration(t *testing.T) map[[2]string][]reference {
	f, err := os.Open("testdata/calibration_50ms.csv")
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	series := map[[2]string][]reference{}
	for _, line := range lines[1:] {
		row := reference{}
		for i := 4; i < len(line); i++ {
			row[lines[0][i]] = math.NaN()
			if line[i] != "" {
				row[lines[0][i]], err = strconv.ParseFloat(line[i], 64)
				require.NoError(t, err)
			}
		}
		key := [2]string{line[0], line[1]}
		series[key] = append(series[key], row)
	}
	require.Len(t, series, 8)
	return series
}

// collect is the mean of ten seeds of one strategy at 10,000 rps.
func collect(t *testing.T, scenario, strategy string) *queueing.Series {
	key := [2]string{scenario, strategy}
	if series, ok := collected[key]; ok {
		return series
	}
	s, err := queueing.Find(scenario)
	require.NoError(t, err)
	y, err := s.Strategy(strategy)
	require.NoError(t, err)
	series, err := queueing.Collect(context.Background(), queueing.Setup{Scenario: s, Strategy: y, RPS: 10_000, Seed: 1}, 10, nil)
	require.NoError(t, err)
	collected[key] = series
	return series
}

// collected saves time: most of it goes by under the race detector.
var collected = map[[2]string]*queueing.Series{}

// The calibration series has noise of its own: 500 calls a bucket and 5 seeds are 2 %
// of standard deviation. So plateaus are compared, that is runs of rows in which it
// stays level, by their means, and single rows within four times that.
func TestTheCalibrationSeriesIsMet(t *testing.T) {
	for key, want := range calibration(t) {
		got := collect(t, key[0], key[1])
		require.Len(t, got.Rows, len(want), key)
		for from := 0; from < len(want); {
			to, load := plateau(want, from)
			ours := 0.0
			for _, r := range got.Rows[from:to] {
				ours += r.Amplification / float64(to-from)
			}
			if to-from >= 3 {
				require.InDelta(t, load, ours, max(5, 0.03*load), "%s: load from row %d to %d", key, from, to)
			}
			from = to
		}
		for i, w := range want {
			requireRow(t, key, &got.Rows[i], w)
		}
	}
}

// plateau returns the end of the longest run of rows from one on in which the load
// stays within 8 points or 5 % of its mean, and that mean.
func plateau(rows []reference, from int) (to int, load float64) {
	sum := 0.0
	for to = from; to < len(rows); to++ {
		next := rows[to]["amplification_pct"]
		mean := (sum + next) / float64(to-from+1)
		if to > from && math.Abs(next-mean) > max(8, 0.05*mean) {
			break
		}
		sum += next
	}
	return to, sum / float64(to-from)
}

func requireRow(t *testing.T, key [2]string, got *queueing.Row, want reference) {
	noise := 4 * max(2, want["amplification_sd"]/math.Sqrt(5)) * max(1, want["amplification_pct"]/200)
	require.InDelta(t, want["amplification_pct"], got.Amplification, max(8, noise), "%s: load at %v", key, got.T)
	require.InDelta(t, want["cpu_pct"], got.CPU, 7, "%s: CPU at %v", key, got.T)
	if want["client_done_pct"] >= 5 { // fewer say nothing about shares
		require.InDelta(t, want["client_ok_pct"], got.ClientOK, 1.5, "%s: success at %v", key, got.T)
	}
	if want["client_done_pct"] >= 50 && want["client_p99_ms"] < 3*want["client_p50_ms"] { // else there are two kinds of calls, and the median jumps between them
		require.InDelta(t, want["client_p50_ms"], got.P50, max(2, 0.1*got.P50), "%s: median at %v", key, got.T)
	}
}

// The outcomes of the original. Their peak is that in the failure; a Summary's is that of
// the whole run, which for limited calls is the surge after it.
func TestTheCalibrationOutcomesAreMet(t *testing.T) {
	never := time.Duration(-1)
	for _, w := range []struct {
		scenario, strategy string
		load, within, peak float64
		back               time.Duration
	}{
		{"simple_retry_vs_backoff", "retry-3x", 379, 402, 402, 1020 * time.Millisecond},
		{"simple_retry_vs_backoff", "retry-3x-with-exp-backoff", 210, 300, 300, 1420 * time.Millisecond},
		{"jitter_vs_no_jitter", "retry-3x-with-exp-backoff", 60, 100, 400, 1540 * time.Millisecond},
		{"jitter_vs_no_jitter", "retry-3x-with-exp-backoff+jitter", 98, 170, 400, 1200 * time.Millisecond},
		{"retry_cb_or_budget_vs_exp_backoff", "retry-budget-10%", 101, 110, 110, 1000 * time.Millisecond},
		{"retry_cb_or_budget_vs_exp_backoff", "retry-cb-10%", 104, 165, 165, 1000 * time.Millisecond},
		{"retry_cb_or_budget_vs_exp_backoff", "retry-2x-with-exp-backoff+jitter", 200, 220, 220, 1260 * time.Millisecond},
		{"mfs", "retry-3x", 197, 203, 203, never},
	} {
		series := collect(t, w.scenario, w.strategy)
		y, f := series.Summary(), series.Scenario.Failure
		within := slices.Max(series.Fine[f.From/queueing.FineBucket : f.To/queueing.FineBucket])
		require.InDelta(t, w.within, within, max(5, 0.04*w.within), w)
		require.InDelta(t, w.load, y.Load, 5, w)
		require.InDelta(t, w.peak, y.Peak, max(5, 0.04*w.peak), w)
		require.Equal(t, w.back != never, y.IsBack, w)
		if y.IsBack {
			require.InDelta(t, w.back.Seconds(), y.Back.Seconds(), 0.0401, w)
		}
	}
}
