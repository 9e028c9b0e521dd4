package contention_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/articles/contention"
	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mean is that of 20 runs of each rule.
func mean(t *testing.T, clients int) map[string]contention.Result {
	results := map[string]contention.Result{}
	for _, p := range contention.Policies() {
		y, err := contention.Mean(t.Context(), p.Policy, clients, 20, 1)
		require.NoError(t, err)
		results[p.Name] = y
	}
	require.Len(t, results, 5)
	return results
}

// The figures are those that the original computes for 100 clients.
func TestTheCalibrationRowIsMet(t *testing.T) {
	got := mean(t, 100)
	for name, want := range map[string]struct{ ms, calls float64 }{
		"none": {2023, 2419}, "exponential": {63_472, 1850}, "full": {4895, 796},
	} {
		require.InEpsilon(t, want.ms, got[name].Time.Seconds()*1000, 0.05, name)
		require.InEpsilon(t, want.calls, got[name].Calls, 0.03, name)
	}
}

// The shape of the original's curves.
func TestJitterNeedsTheFewestCalls(t *testing.T) {
	for _, clients := range []int{50, 100} {
		got := mean(t, clients)
		for name, y := range got {
			if name != "none" {
				require.Less(t, got["none"].Time, y.Time, "no backoff finishes first: %s, %d", name, clients)
			}
			if name != "exponential" {
				require.Greater(t, got["exponential"].Time, 3*y.Time, "exponential is by far the slowest: %s, %d", name, clients)
			}
			if name != "equal" && name != "full" {
				require.Greater(t, y.Calls, 1.03*max(got["equal"].Calls, got["full"].Calls), "%s, %d", name, clients)
			}
		}
		require.Greater(t, got["none"].Calls, 1.8*got["full"].Calls, "at several times the calls: %d", clients)
		require.Less(t, got["full"].Time, got["equal"].Time, "full is the quicker of the two: %d", clients)
	}
}

func TestALoneClientTakesOneTry(t *testing.T) {
	y := contention.Run(contention.Policies()[0].Policy, 1, 1)
	require.Equal(t, 1.0, y.Calls)
	require.InDelta(t, 40, y.Time.Seconds()*1000, 15, "four messages")
}

func TestARunIsTheSameEachTime(t *testing.T) {
	full := contention.Policies()[3]
	require.Equal(t, "full", full.Name)
	require.Equal(t, contention.Run(full.Policy, 50, 3), contention.Run(full.Policy, 50, 3))
	require.NotEqual(t, contention.Run(full.Policy, 50, 3), contention.Run(full.Policy, 50, 4))
}

// Ethernet's stations give up after 16 attempts, and its slots are far shorter than a try: so clients take
// turns in losing. A client that gives up has not won.
func TestAClientThatGivesUpHasNotWon(t *testing.T) {
	y, err := contention.Mean(t.Context(), &classic.Ethernet{}, 100, 20, 1)
	require.NoError(t, err)
	require.Greater(t, y.GaveUp, 10.0)
	for name, y := range mean(t, 50) {
		require.Zero(t, y.GaveUp, name)
	}
	once := contention.Run(backoff.Limit(&backoff.Exponential{Base: time.Millisecond}, 1, 0), 100, 1)
	require.Less(t, once.GaveUp, 100.0, "somebody wins")
	require.GreaterOrEqual(t, once.Calls, 100+once.GaveUp, "who gives up has written twice")
	require.LessOrEqual(t, once.Calls, 200.0)
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	_, err := contention.Mean(t.Context(), nil, 0, 1, 1)
	require.EqualError(t, err, "simulate contention: want clients and runs, not 0 and 1")
}
