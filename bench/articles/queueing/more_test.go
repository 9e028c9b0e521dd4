package queueing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/queueing"
)

// The overload that lasts without limits ends with any of them: what the server still holds is done in
// time for those who wait.
func TestALimitEndsAnOverloadThatWouldLast(t *testing.T) {
	const scenario = "concurrency_limits"
	none := collect(t, scenario, "retry-3x").Summary()
	require.False(t, none.SuccessIsBack)
	require.Greater(t, none.Queue, 20_000.0)
	for strategy, queue := range map[string]float64{
		"retry-3x+limit-of-calls":       500 - 206, // of 0.05 s worth of calls those that have no CPU
		"retry-3x+fixed-concurrency":    206,       // twice the CPUs
		"retry-3x+adaptive-concurrency": 1000 - 206,
	} {
		y := collect(t, scenario, strategy).Summary()
		require.True(t, y.SuccessIsBack, strategy)
		require.InDelta(t, 1.0, y.SuccessBack.Seconds(), 0.061, strategy)
		require.LessOrEqual(t, y.Queue, queue, strategy)
	}
	waits := collect(t, scenario, "retry-3x+limit-of-calls")
	refuses := collect(t, scenario, "retry-3x+fixed-concurrency")
	require.Greater(t, waits.Success, refuses.Success+5, "calls that wait for a permit are made later")
	refused := 0.0
	for i := range refuses.Rows {
		require.Zero(t, waits.Rows[i].Refused)
		refused = max(refused, refuses.Rows[i].Refused)
	}
	require.Greater(t, refused, 100.0)
}

// The failing shard's host is left alone, and the others are not: a breaker for all stops them too.
func TestEjectionSparesTheOthersWhereABreakerDoesNot(t *testing.T) {
	const scenario = "one_shard_of_five"
	plain, breaker, eject := collect(t, scenario, "retry-2x").Summary(), collect(t, scenario, "retry-2x-circuit-breaker-10%").Summary(), collect(t, scenario, "retry-2x+ejection").Summary()
	require.InDelta(t, 80, plain.Success, 2)
	require.Less(t, breaker.Success, 30.0)
	require.InDelta(t, 80, eject.Success, 2, "only those fail that must")
	require.InDelta(t, 140, plain.Load, 3)
	require.InDelta(t, 80, eject.Load, 5, "and they cost next to nothing")
	require.Greater(t, eject.SuccessBack, plain.SuccessBack, "its users wait until the ejection ends")
}

// Where the hosts are alike, ejection is a cure without a retry.
func TestEjectionOfOneOfHostsThatAreAlikeIsACure(t *testing.T) {
	const scenario = "one_host_of_five"
	for strategy, want := range map[string]float64{
		"no-retries": 80, "retry-2x": 100 * (1 - 0.2*0.2*0.2), "no-retries+ejection": 98, "retry-2x+ejection": 100,
	} {
		require.InDelta(t, want, collect(t, scenario, strategy).Summary().Success, 1, strategy)
	}
	require.InDelta(t, 124, collect(t, scenario, "retry-2x").Summary().Load, 3, "1 + 0.2 + 0.04")
	require.InDelta(t, 101, collect(t, scenario, "retry-2x+ejection").Summary().Load, 3)
	require.Less(t, collect(t, scenario, "retry-2x-circuit-breaker-10%").Summary().Success, 50.0)
}

func TestStrategiesThatMakeNoSenseAreNamed(t *testing.T) {
	for want, change := range map[string]func(*queueing.Scenario){
		"strategy retry-2x: eject wants a number of errors, and 2 hosts or more":  func(s *queueing.Scenario) { s.Strategies[0].Eject, s.Hosts = 5, 1 },
		"strategy retry-2x: want a concurrency, or adaptive":                      func(s *queueing.Scenario) { s.Strategies[0].Adaptive, s.Strategies[0].Concurrency = true, 1 },
		"strategy retry-2x: want 0 to 3600 s worth of calls as the limit, not -1": func(s *queueing.Scenario) { s.Strategies[0].Limit = -1 },
		"a failure by_host wants 2 hosts or more, and not by_user":                func(s *queueing.Scenario) { s.Failure.ByHost = true },
		"want 0 to 100 hosts, not 101":                                            func(s *queueing.Scenario) { s.Hosts = 101 },
		"want a length of 1ms to 1h, not 0s":                                      func(s *queueing.Scenario) { s.Length = 0 * time.Second },
	} {
		s := mustFind(t, "one_shard_of_five")
		change(&s)
		require.EqualError(t, s.Check(), want)
	}
}
