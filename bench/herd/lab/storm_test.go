package lab_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/storm"
	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/bench/internal/policy"
)

// A storm in a glass: requests come often and are given up soon.
func glass(kind storm.Client) storm.Options {
	return storm.Options{
		Client: kind, Clients: 50, Think: 200 * time.Millisecond, Timeout: 300 * time.Millisecond,
		Before: -1, Stop: 1100 * time.Millisecond, Watch: 2 * time.Second,
	}
}

func TestAServerThatWasStoppedGoesOn(t *testing.T) {
	t.Parallel()
	for _, kind := range storm.Clients() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			s := glass(kind)
			s.Timeout, s.Stop = time.Second, 3100*time.Millisecond // three seconds end in it
			told := 0
			y, err := lab.RunStorm(t.Context(), s, func(lab.StormSecond) { told++ })
			require.NoError(t, err)
			require.Len(t, y.Seconds, told)
			require.False(t, y.Cut)
			require.True(t, y.Unknown, "it was not watched for long enough to say whether it has recovered")
			var stopped, ok, late, failed int
			for _, x := range y.Seconds {
				ok, late, failed = ok+x.OK, late+x.TimedOut, failed+x.Failed
				if x.Stopped {
					stopped++
				}
				require.Equal(t, s.Server.Delay(x.InFlight), x.Delay)
				require.LessOrEqual(t, x.InFlight, y.Peak)
			}
			require.Positive(t, stopped)
			require.Positive(t, ok)
			require.Positive(t, late, "nobody was answered while it was stopped")
			require.Zero(t, failed)
		})
	}
}

// A server process takes as long as its parameters say: here longer than anybody waits.
func TestTheServersParametersReachItsProcess(t *testing.T) {
	t.Parallel()
	s := glass(storm.Simple)
	s.Server = storm.Server{Base: 10 * time.Second}
	s.Stop, s.Watch = 0, time.Second
	y, err := lab.RunStorm(t.Context(), s, nil)
	require.NoError(t, err)
	late := 0
	for _, x := range y.Seconds {
		require.Zero(t, x.OK)
		require.GreaterOrEqual(t, x.Delay, s.Server.Base)
		late += x.TimedOut
	}
	require.Positive(t, late)
}

// Clients that pause for an hour after a failure fail once each.
func TestTheClientsParametersHoldOnRealSockets(t *testing.T) {
	t.Parallel()
	s := glass(storm.Client{Kind: "simple", Params: policy.Params{Base: time.Hour}})
	s.Server = storm.Server{Base: 10 * time.Second}
	s.Stop, s.Watch = 0, 3*time.Second
	y, err := lab.RunStorm(t.Context(), s, nil)
	require.NoError(t, err)
	late := 0
	for _, x := range y.Seconds {
		late += x.TimedOut
	}
	require.Positive(t, late)
	require.LessOrEqual(t, late, s.Clients)
	require.Equal(t, y.Seconds[len(y.Seconds)-1].Away, late)
}

// A policy that gives up at once would otherwise ask without a pause.
func TestAClientThatGivesUpThinksOnRealSockets(t *testing.T) {
	t.Parallel()
	s := glass(storm.Client{Kind: "connect-retry", Params: policy.Params{Cap: time.Second}})
	s.Server = storm.Server{Base: 10 * time.Second}
	s.Think, s.Stop, s.Watch = 2*time.Second, 0, 3*time.Second
	y, err := lab.RunStorm(t.Context(), s, nil)
	require.NoError(t, err)
	late := 0
	for _, x := range y.Seconds {
		late += x.TimedOut
	}
	require.Positive(t, late)
	require.Less(t, late, 120, "a request each 2.3 s; without thinking it would be one each 0.3 s, 300 in all")
}

func TestAStormThatIsCutKeepsItsSeconds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := glass(storm.Simple)
	s.Stop, s.Watch = time.Minute, time.Minute
	y, err := lab.RunStorm(ctx, s, func(lab.StormSecond) { cancel() })
	require.NoError(t, err)
	require.True(t, y.Cut)
	require.True(t, y.Unknown)
	require.Len(t, y.Seconds, 1)
	require.True(t, y.Seconds[0].Stopped)
}

// A server and its clients can be two programs: here two goroutines.
func TestClientsFindAServerThatIsAProgramOfItsOwn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address, ended := make(chan string, 1), make(chan error, 1)
	var served []lab.ServedSecond
	go func() {
		ended <- lab.ServeStorm(ctx, "127.0.0.1:0", storm.Server{Base: 10 * time.Millisecond}, func(a string) { address <- a }, func(s lab.ServedSecond) { served = append(served, s) })
	}()
	o := glass(storm.Simple)
	o.Watch = 2500 * time.Millisecond
	connected, told := 0, 0
	y, err := lab.ConnectStorm(t.Context(), <-address, o, func() { connected++ }, func(lab.StormSecond) { told++ })
	require.NoError(t, err)
	cancel()
	require.NoError(t, <-ended)
	require.Equal(t, 1, connected)
	require.Len(t, y.Seconds, told)
	require.False(t, y.Cut)
	require.True(t, y.Unknown, "three seconds are not ten")
	ok, answered := 0, 0
	for _, s := range y.Seconds {
		ok += s.OK
	}
	for _, s := range served {
		require.Zero(t, s.Halted)
		answered += s.Answered
	}
	require.Positive(t, ok)
	require.Positive(t, answered)
}

// A server that leaves ends the requests that it has, however long they would take.
func TestAServerOfAStormLeaves(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- lab.ServeStorm(ctx, "127.0.0.1:0", storm.Server{Base: time.Hour}, func(a string) { address <- a }, func(s lab.ServedSecond) {
			if s.InFlight > 0 {
				cancel()
			}
		})
	}()
	answer, err := http.Get("http://" + <-address)
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
	require.NoError(t, <-ended)
	http.DefaultClient.CloseIdleConnections()
}

func TestAnAddressInUseIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	require.ErrorContains(t, lab.ServeStorm(t.Context(), l.Addr().String(), storm.Server{}, nil, nil), "address already in use")
}

func TestABadStormIsAnError(t *testing.T) {
	for _, change := range []func(*storm.Options){
		func(s *storm.Options) { s.Clients = -1 },
		func(s *storm.Options) { s.Think = -1 },
		func(s *storm.Options) { s.Timeout = -1 },
		func(s *storm.Options) { s.Stop = -1 },
		func(s *storm.Options) { s.Watch = -1 },
		func(s *storm.Options) { s.Client.Kind = "x" },
		func(s *storm.Options) { s.Server.Factor = 0.5 },
	} {
		s := glass(storm.Simple)
		change(&s)
		_, err := lab.RunStorm(t.Context(), s, nil)
		require.Error(t, err)
	}
}
