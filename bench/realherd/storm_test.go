package realherd_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/realherd"
	"github.com/redial-go/redial/bench/retrystorm"
)

// A storm in a glass: requests come often and are given up soon.
func glass(kind retrystorm.Client) realherd.Storm {
	return realherd.Storm{
		Client: kind, Clients: 50, Think: 200 * time.Millisecond, Timeout: 300 * time.Millisecond,
		Stop: 1100 * time.Millisecond, Watch: 2 * time.Second,
	}
}

func TestAServerThatWasStoppedGoesOn(t *testing.T) {
	t.Parallel()
	for _, kind := range retrystorm.Clients() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			s := glass(kind)
			told := 0
			s.Each = func(realherd.StormSecond) { told++ }
			y, err := realherd.RunStorm(t.Context(), s)
			require.NoError(t, err)
			require.Len(t, y.Seconds, told)
			require.False(t, y.Cut)
			require.False(t, y.Recovered, "it was not watched for long enough to say so")
			var stopped, ok, late, failed int
			for _, x := range y.Seconds {
				ok, late, failed = ok+x.OK, late+x.TimedOut, failed+x.Failed
				if x.Stopped {
					stopped++
				}
				require.Equal(t, retrystorm.Delay(x.InFlight), x.Delay)
				require.LessOrEqual(t, x.InFlight, y.Peak)
			}
			require.Positive(t, stopped)
			require.Positive(t, ok)
			require.Positive(t, late, "nobody was answered while it was stopped")
			require.Zero(t, failed)
		})
	}
}

func TestAStormThatIsCutKeepsItsSeconds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := glass(retrystorm.Fixed)
	s.Stop, s.Watch = time.Minute, time.Minute
	s.Each = func(realherd.StormSecond) { cancel() }
	y, err := realherd.RunStorm(ctx, s)
	require.NoError(t, err)
	require.True(t, y.Cut)
	require.False(t, y.Recovered)
	require.Len(t, y.Seconds, 1)
	require.True(t, y.Seconds[0].Stopped)
}

func TestABadStormIsAnError(t *testing.T) {
	for _, change := range []func(*realherd.Storm){
		func(s *realherd.Storm) { s.Clients = 0 },
		func(s *realherd.Storm) { s.Think = 0 },
		func(s *realherd.Storm) { s.Timeout = 0 },
		func(s *realherd.Storm) { s.Stop = -1 },
		func(s *realherd.Storm) { s.Watch = 0 },
	} {
		s := glass(retrystorm.Fixed)
		change(&s)
		_, err := realherd.RunStorm(t.Context(), s)
		require.Error(t, err)
	}
}
