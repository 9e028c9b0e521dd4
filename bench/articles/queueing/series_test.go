package queueing_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/queueing"
)

// setup is the first strategy of a scenario.
func setup(t *testing.T, scenario string, seed uint64) queueing.Setup {
	s, err := queueing.Find(scenario)
	require.NoError(t, err)
	return queueing.Setup{Scenario: s, Strategy: s.Strategies[0], RPS: 2000, Seed: seed, Bucket: 20 * time.Millisecond}
}

func written(t *testing.T, o queueing.Setup, seeds int) string {
	series, err := queueing.Collect(context.Background(), o, seeds, nil)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, queueing.CSV([]*queueing.Series{series}).WriteCSV(&b))
	return b.String()
}

func TestASeedRepeatsItselfToTheByte(t *testing.T) {
	for _, s := range queueing.Scenarios() {
		for _, y := range s.Strategies {
			o := queueing.Setup{Scenario: s, Strategy: y, RPS: 500, Seed: 7}
			first := written(t, o, 2)
			require.Equal(t, first, written(t, o, 2), "%s: %s", s.Name, y.Name)
			o.Seed = 70
			require.NotEqual(t, first, written(t, o, 2), "%s: %s", s.Name, y.Name)
		}
	}
}

// If this fails on another machine only, a seed means something else there.
func TestASeedIsTheSameOnEveryMachine(t *testing.T) {
	r, err := queueing.Run(setup(t, "simple_retry_only", 1))
	require.NoError(t, err)
	sum := int64(0)
	for _, b := range r.Buckets {
		sum += int64(b.P50) + int64(b.P99)
	}
	require.Equal(t, queueing.Bucket{
		Arrived: 3000, Offered: 5785, Completed: 5785, OK: 2134, First: 3000, FirstOK: 2033, RetryOK: 101, Ended: 3000, Succeeded: 2134,
		UnderWay: 92057779861, InSystem: 92057779861, QueueSum: 27006, QueueMax: 41,
	}, r.Total)
	require.Equal(t, int64(6229914990), sum, "sum of the quantiles in ns")
}

func TestTheCSVHasTheColumnsOfTheReference(t *testing.T) {
	f, err := os.Open("testdata/calibration_50ms.csv")
	require.NoError(t, err)
	defer f.Close()
	want, err := csv.NewReader(f).Read()
	require.NoError(t, err)
	lines, err := csv.NewReader(bytes.NewBufferString(written(t, setup(t, "jitter_vs_no_jitter", 1), 2))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, want, lines[0][:len(want)], "what it lacks follows")
	require.Len(t, lines, 1+88, "1.75 s in buckets of 20 ms, the last one short")
	require.Equal(t, []string{"jitter_vs_no_jitter", "retry-3x-with-exp-backoff", "2000", "2", "0.02"}, lines[2][:5])
	for _, line := range lines[1:] {
		if line[8] == "0" {
			require.Empty(t, line[9]+line[10]+line[11], "no call ended: nothing to say about success and times")
		}
	}
}

func TestAnInterruptedCollectionKeepsWhatIsDone(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	enough := errors.New("enough")
	series, err := queueing.Collect(ctx, setup(t, "mfs", 1), 1000, func() { cancel(enough) })
	require.ErrorIs(t, err, enough)
	require.NotNil(t, series)
	require.Less(t, series.Seeds, 20)
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	_, err := queueing.Find("nonsense")
	require.EqualError(t, err, `find scenario "nonsense": there is none of that name: -list names them`)
	o := setup(t, "mfs", 1)
	_, err = o.Scenario.Strategy("nonsense")
	require.EqualError(t, err, `there is no strategy of mfs "nonsense": there are retry-3x, retry-budget-grpc, retry-budget-aws, retry-budget-aws-2026, retry-budget-envoy`)
	o.RPS = 0
	_, err = queueing.Run(o)
	require.EqualError(t, err, "simulate mfs: want 1 to 10000000 calls per second, not 0")
	o.RPS, o.Bucket = 1000, time.Minute
	_, err = queueing.Collect(context.Background(), o, 3, nil)
	require.EqualError(t, err, "simulate mfs: want buckets of 1ms to 1.5s, not 1m0s")
}

func TestThereAreSeventeenScenarios(t *testing.T) {
	runs, names := 0, map[string]bool{}
	for _, s := range queueing.Scenarios() {
		names[s.Name] = true
		runs += len(s.Strategies)
	}
	require.Len(t, names, 17)
	require.Equal(t, 44, runs)
	s, err := queueing.Find("retry_cb_vs_budget")
	require.NoError(t, err)
	require.Len(t, s.Strategies, 2)
}

func TestCPUsAreCountedAsInTheOriginal(t *testing.T) {
	for coef, want := range map[float64]int{1: 412, 0.5: 206, 0.54: 222, 0.58: 239} {
		s := queueing.Scenario{Capacity: 4 * coef}
		require.Equal(t, want, s.CPUs(10_000))
	}
	s := queueing.Scenario{Limit: 0.3}
	require.Equal(t, 3000, s.Permits(10_000))
}
