package tiers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/tiers"
)

// short is a scenario of the incident with a failure of a minute instead of ten.
func short(t *testing.T, name string) tiers.Scenario {
	s := find(t, name)
	s.Failure.To, s.Length = 6*time.Minute, 20*time.Minute
	return s
}

// A service that refuses what it could not answer in time is back with the rollback: what it serves
// succeeds, and so the tries become fewer.
func TestSheddingCuresTheIncident(t *testing.T) {
	for _, name := range []string{"retry", "no-retries", "retry+budget"} {
		s := short(t, "incident_shedding")
		r := run(t, s, strategy(t, s, name), 20)
		y := r.Summary()
		require.True(t, y.SuccessIsBack, name)
		require.LessOrEqual(t, y.SuccessBack, 6*time.Minute+s.Bucket, name)
		if name == "retry" {
			require.InDelta(t, 900, y.Peak[1], 60, "the tries are as many as ever")
			require.Positive(t, r.Total.Tiers[1].Refused)
		}
	}
	s := short(t, "incident")
	r := run(t, s, strategy(t, s, "retry"), 20)
	require.Positive(t, r.Total.Tiers[1].Refused, "a queue of 5 s refuses too")
	require.False(t, r.Summary().SuccessIsBack, "but what it serves is too late")
}

// CPUs for all nine tries end it, as soon as they are there; CPUs for eight do not.
func TestAutoscalingEndsTheIncidentWhenItHasCPUsForAllTries(t *testing.T) {
	s := short(t, "incident_autoscaling")
	r := run(t, s, strategy(t, s, "retry"), 20)
	y := r.Summary()
	require.True(t, y.SuccessIsBack)
	require.Equal(t, 4.0, y.CPUs[1])
	require.Equal(t, r.Buckets[0].Tiers[1].CPUs, r.Buckets[len(r.Buckets)-1].Tiers[1].CPUs, "they have gone")
	require.Greater(t, y.SuccessBack, 7*time.Minute, "a minute and more after the rollback")
	require.Less(t, y.SuccessBack, 9*time.Minute)

	s = find(t, "incident_autoscaling_to_eight_times")
	s.Length = 22 * time.Minute // 7 after the rollback
	y = run(t, s, strategy(t, s, "retry"), 20).Summary()
	require.False(t, y.SuccessIsBack)
	require.Equal(t, 2.0, y.CPUs[1])
	budget := run(t, s, strategy(t, s, "retry+budget"), 20).Summary()
	require.True(t, budget.SuccessIsBack)
	require.Less(t, budget.CPUs[1], 1.8)
}

// A tier of 12 CPUs that is always busy: each decision doubles what there is, new CPUs come after the delay, and all go
// when nothing has wanted them for the calm.
func TestCPUsComeAfterTheDelayAndGoAfterTheCalm(t *testing.T) {
	s := tiers.Scenario{
		Name: "x", RPS: 100, Length: 4 * time.Minute, Bucket: 10 * time.Second,
		Failure: tiers.Failure{From: 30 * time.Second, To: 60 * time.Second, Share: 1},
		Tiers: []tiers.Tier{{Name: "x", Capacity: 1.2, Service: 100 * ms, Queue: time.Second, Timeout: 10 * time.Second,
			Scaling: &tiers.Scaling{Target: 0.5, Every: 10 * time.Second, Delay: 15 * time.Second, Calm: time.Minute, Most: 3}}},
	}
	y := tiers.Strategy{Name: "x", Callers: make([]tiers.Caller, 1)}
	y.Callers[0].Retries = 5
	cpus := func() (all []int) {
		for _, b := range run(t, s, y, 100).Buckets {
			all = append(all, b.Tiers[0].CPUs)
		}
		return all
	}
	usual := cpus()
	require.Equal(t, []int{13, 13}, usual[:2], "1.2 times 10.3, rounded up; the first decision is at 10 s, and its CPUs come at 25 s")
	require.Greater(t, usual[2], 18, "busy for 80 %: 1.6 times as many")
	require.Less(t, usual[2], 24)
	require.Equal(t, 39, usual[7], "three times as many at most, in the failure")
	require.Equal(t, 39, usual[10], "still wanted within the calm")
	require.InDelta(t, 21, usual[len(usual)-1], 3, "as many as keep half of them busy")
	s.Tiers[0].Scaling.Most = 1
	for _, n := range cpus() {
		require.Equal(t, 13, n)
	}
}
