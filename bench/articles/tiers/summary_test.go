package tiers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/tiers"
)

// sample is a result of 6 buckets of a second, at 10 calls per second, with a failure from 1
// to 3 s: of the ten calls that end in each so many succeed, after so many tries at the tier.
func sample(succeeded, sent []int) *tiers.Result {
	r := &tiers.Result{Setup: tiers.Setup{RPS: 10, Scenario: tiers.Scenario{
		Length: 6 * time.Second, Bucket: time.Second, Failure: tiers.Failure{From: time.Second, To: 3 * time.Second},
		Tiers: make([]tiers.Tier, 1),
	}}}
	r.Total.Tiers = []tiers.TierBucket{{Queue: 7, CPUs: 8}}
	for i := range succeeded {
		b := tiers.Bucket{Arrived: 10, Ended: 10, Succeeded: succeeded[i], Tiers: []tiers.TierBucket{{Sent: sent[i], CPUs: 4 + i/3*4}}} // twice as many from 3 s on
		if succeeded[i] < 0 {
			b.Ended, b.Succeeded = 0, 0
		}
		r.Buckets = append(r.Buckets, b)
		r.Total.Ended += b.Ended
		r.Total.Succeeded += b.Succeeded
	}
	return r
}

func TestASummaryOfTiersSaysWhenAllIsWellForGood(t *testing.T) {
	y := sample([]int{10, 0, 0, 9, 10, 10}, []int{10, 30, 40, 20, 12, 11}).Summary()
	require.Equal(t, tiers.Summary{
		Load: []float64{350}, Peak: []float64{400}, Queue: []int{7}, CPUs: []float64{2}, CPUsMean: []float64{1.5},
		LoadBack: 5 * time.Second, LoadIsBack: true, SuccessBack: 4 * time.Second, SuccessIsBack: true,
		Success: y.Success, Up: 50, Lost: 21, LostFor: 2100 * time.Millisecond,
	}, y)
	require.InDelta(t, 65, y.Success, 1e-9)
}

func TestABucketInWhichNoCallEndsSaysNothing(t *testing.T) {
	y := sample([]int{10, -1, -1, 10, -1, 10}, []int{10, 10, 10, 10, 10, 10}).Summary()
	require.True(t, y.SuccessIsBack)
	require.Equal(t, 3*time.Second, y.SuccessBack)
	require.False(t, sample([]int{10, 0, 0, 10, -1, 9}, []int{10, 10, 10, 10, 10, 10}).Summary().SuccessIsBack)
}

func TestTimesAreInTheScenariosUnit(t *testing.T) {
	two, incident := find(t, "two_tiers"), find(t, "incident")
	require.Equal(t, "1.54 s", two.When(1540*time.Millisecond, true))
	require.Equal(t, "not within 3 s", two.When(0, false))
	require.Equal(t, "63.5 min", incident.When(63*time.Minute+30*time.Second, true))
	require.Equal(t, "not within 75 min", incident.When(0, false))
}
