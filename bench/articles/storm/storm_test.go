package storm_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/articles/storm"
	"github.com/redial-go/redial/bench/internal/policy"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var original storm.Server

func TestTheServersDelayIsThatOfTheOriginal(t *testing.T) {
	require.Equal(t, 100*time.Millisecond, original.Delay(0))
	require.Equal(t, 100*time.Millisecond, original.Delay(30))
	require.Equal(t, "2.671444385s", original.Delay(1040).String(), "the article's log")
	for n, want := range map[int]float64{1599: 16.46, 1925: 47.5, 2231: 128.6} {
		require.InEpsilon(t, want, original.Delay(n).Seconds(), 1e-3, n)
	}
	require.InDelta(t, 2, original.Delay(951).Seconds(), 1e-4, "the timeout")
	require.InDelta(t, 475.5, original.Throughput(951), 0.1)
	require.Equal(t, 307, original.Best())
	require.InDelta(t, 1247, original.Throughput(307), 1)
	tips, ok := original.Tipping(2 * time.Second)
	require.True(t, ok)
	require.Equal(t, 952, tips, "with 951 of them a request takes 1.99996 s")
	require.Less(t, original.Delay(7792), time.Duration(math.MaxInt64))
	require.Equal(t, time.Duration(math.MaxInt64), original.Delay(7793), "where the original overflows")
}

func run(t *testing.T, client storm.Client, stop time.Duration, seed uint64) *storm.Result {
	y, err := storm.Run(storm.Options{Client: client, Stop: stop, Seed: seed})
	require.NoError(t, err)
	return y
}

func TestTheSteadyStateIsAHundredRequestsASecond(t *testing.T) {
	for _, client := range storm.Clients() {
		y := run(t, client, 0, 1)
		var sent, ok, late, concurrent int
		for _, s := range y.Seconds {
			sent, ok, late, concurrent = sent+s.Sent, ok+s.OK, late+s.TimedOut, concurrent+s.Concurrent
		}
		seconds := float64(len(y.Seconds))
		require.Equal(t, 615, len(y.Seconds), "the warm-up, and ten minutes that are watched")
		require.InDelta(t, 1000/10.1, float64(ok)/seconds, 1.5, "thinking takes 10 s, a request 0.1 s")
		require.Zero(t, late)
		require.InDelta(t, 10, float64(concurrent)/seconds, 0.5)
		require.True(t, y.Recovered)
		require.InDelta(t, sent, ok, 30)
	}
}

// The original shows that a fixed interval never recovers.
func TestAFixedIntervalNeverRecoversFromALongStop(t *testing.T) {
	for seed := range uint64(3) {
		short, long := run(t, storm.Simple, 3*time.Second, seed), run(t, storm.Simple, 10*time.Second, seed)
		require.True(t, short.Recovered)
		require.True(t, short.AllServed)
		require.False(t, long.Recovered)
		require.False(t, long.AllServed)
		require.Greater(t, long.Backlog, 1500, "at most 476 come in a second")
	}
}

func TestTheClientAsCodedRecoversWhereTheOneDescribedDoesNot(t *testing.T) {
	for seed := range uint64(3) {
		require.False(t, run(t, storm.Described, 10*time.Second, seed).Recovered)
		coded := run(t, storm.Coded, 10*time.Second, seed)
		require.True(t, coded.Recovered)
		require.Less(t, coded.Back, 5*time.Second)
		require.True(t, coded.AllServed)
		require.Greater(t, coded.Everyone, time.Minute, "its first pause is 27 s on average, the second 73 s")
	}
}

func TestWhatTheBacklogCannotHoldIsLost(t *testing.T) {
	y, err := storm.Run(storm.Options{Stop: 5 * time.Second, Backlog: 50, Seed: 1})
	require.NoError(t, err)
	require.Greater(t, y.Lost, 100)
	require.InDelta(t, 60, y.Backlog, 15, "50, and those that were under way before")
	require.True(t, y.Recovered, "so few make no storm")
}

func TestAStormIsTheSameEachTime(t *testing.T) {
	first := run(t, storm.Described, 4*time.Second, 5)
	require.Equal(t, first, run(t, storm.Described, 4*time.Second, 5))
	require.NotEqual(t, first.Seconds, run(t, storm.Described, 4*time.Second, 6).Seconds)
}

func TestTheBorderIsFoundByHalving(t *testing.T) {
	runs := 0
	b, err := storm.FindBorder(context.Background(), storm.Options{Client: storm.Simple, Seed: 1},
		16*time.Second, time.Second, 1, func() { runs++ })
	require.NoError(t, err)
	require.Equal(t, b.Longest+time.Second, b.Shortest)
	require.InDelta(t, 4, b.Longest.Seconds(), 1)
	require.LessOrEqual(t, runs, 5)

	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	cancel(enough)
	_, err = storm.FindBorder(ctx, storm.Options{}, time.Minute, time.Second, 1, nil)
	require.ErrorIs(t, err, enough)
}

// 1,000 clients that wait 2 s for a response and pause for 0.1 s send 476 requests per second until the watch ends.
// None of these requests ends.
func TestStormCountedUntilWatchEnds(t *testing.T) {
	for _, watch := range []time.Duration{time.Minute, 10 * time.Minute} {
		y, err := storm.Run(storm.Options{Stop: 10 * time.Second, Watch: watch, Seed: 1})
		require.NoError(t, err)
		require.False(t, y.Recovered)
		require.Len(t, y.Seconds, int((storm.WarmUp + 10*time.Second + watch).Seconds()))
		sent, ended := 0, y.Wasted
		for _, s := range y.Seconds {
			sent, ended = sent+s.Sent, ended+s.OK
		}
		require.Equal(t, sent-ended-y.Lost, y.Peak, "requests that have not ended are at the server")
		require.InEpsilon(t, y.Backlog+int(watch.Seconds()*1000/2.1), y.Peak, 0.05, watch)
		last10 := y.Seconds[len(y.Seconds)-10:]
		for _, s := range last10 {
			require.InDelta(t, 476, s.TimedOut, 100, "the clients continue to the end")
		}
	}
}

// These are rows of ARTICLES.md. Where chance decides, a run with one seed shows nothing.
func TestOutcomeOfSomeSettingsOverManySeeds(t *testing.T) {
	for _, c := range []struct {
		client      storm.Client
		limit       int
		seeds       int
		least, most int // runs that recovered
	}{
		{storm.Simple, 10, 20, 0, 0},
		{storm.Client{Kind: "redial"}, 10, 100, 40, 75},
		{storm.Simple, 100, 20, 0, 0},
		{storm.Simple, 400, 20, 20, 20},
		{storm.Client{Kind: "simple", Params: policy.Params{Base: 3 * time.Second}}, 10, 20, 20, 20},
	} {
		backs, err := storm.Backs(t.Context(), storm.Options{
			Client:  c.client,
			Server:  storm.Server{Limit: c.limit, Base: 50 * time.Millisecond, Factor: 1.2},
			Clients: 200,
			Think:   2 * time.Second,
			Timeout: 500 * time.Millisecond,
			Before:  3 * time.Second,
			Stop:    2 * time.Second,
			Watch:   2 * time.Minute,
			Seed:    1,
		}, c.seeds, nil)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(backs), c.least, "%v, limit %d", c.client, c.limit)
		require.LessOrEqual(t, len(backs), c.most, "%v, limit %d", c.client, c.limit)
	}
}

// With a server that has room for all, or is quick enough, the same stop makes no storm; and
// with a slower one a shorter stop does.
func TestTheServersParametersDecideWhichStopItSurvives(t *testing.T) {
	recovers := func(s storm.Server, stop time.Duration) bool {
		y, err := storm.Run(storm.Options{Server: s, Stop: stop, Seed: 1})
		require.NoError(t, err)
		return y.Recovered
	}
	require.False(t, recovers(storm.Server{}, 10*time.Second))
	require.True(t, recovers(storm.Server{Limit: 2500}, 10*time.Second))
	require.True(t, recovers(storm.Server{Factor: 1}, 10*time.Second))
	require.True(t, recovers(storm.Server{}, 3*time.Second))
	require.False(t, recovers(storm.Server{Factor: 1.1}, 3*time.Second))
	require.False(t, recovers(storm.Server{Base: 500 * time.Millisecond}, 3*time.Second))
}

func TestTheTippingPointFollowsTheParameters(t *testing.T) {
	tips := func(s storm.Server, timeout time.Duration) int {
		n, ok := s.Tipping(timeout)
		require.True(t, ok)
		require.Greater(t, s.Delay(n), timeout)
		require.LessOrEqual(t, s.Delay(n-1), max(timeout, s.Delay(0)))
		return n
	}
	require.Equal(t, 952+270, tips(storm.Server{Limit: 300}, 2*time.Second))
	require.Equal(t, 31+5*15, tips(storm.Server{Factor: 2}, 3200*time.Millisecond), "2^5")
	require.Equal(t, 31+5*3, tips(storm.Server{Factor: 2, Every: 3}, 3200*time.Millisecond), "2^5, with every 3 more")
	require.Equal(t, 34, tips(storm.Server{Factor: 1e6}, 2*time.Second))
	tips(storm.Server{Factor: 1 + 1e-15}, 2*time.Second)
	require.Equal(t, 30, storm.Server{Factor: 2}.Best())
	require.Equal(t, 205, storm.Server{Every: 10}.Best(), "10/ln 1.05; the original's is 307")
	require.Equal(t, 1, tips(storm.Server{Base: 3 * time.Second}, 2*time.Second))
	_, ok := storm.Server{Factor: 1}.Tipping(2 * time.Second)
	require.False(t, ok)
	require.Equal(t, 30, storm.Server{Factor: 1}.Best())
	require.Equal(t, 10*time.Hour, storm.Server{Base: 10 * time.Hour}.Delay(30))
}

func TestClientsWaitByTheirParameters(t *testing.T) {
	first := func(c storm.Client) (waits []float64) {
		p, err := c.Policy()
		require.NoError(t, err)
		r, a := rand.New(rand.NewPCG(1, 2)), backoff.History{}
		for a.N = range 4 {
			s, _ := p.Next(a, r)
			a.Prev = s.Wait
			waits = append(waits, s.Wait.Seconds())
		}
		return waits
	}
	require.Equal(t, []float64{0.1, 0.1, 0.1, 0.1}, first(storm.Client{}), "the zero value is simple")
	require.Equal(t, []float64{3, 3, 3, 3}, first(storm.Client{Kind: "simple", Params: policy.Params{Base: 3 * time.Second}}))
	require.Equal(t, []float64{1, 1, 1, 1}, first(storm.Client{Kind: "fixed"}), "as everywhere else")
	described := storm.Client{Kind: "described", Params: policy.Params{Base: time.Second, Factor: 3, Cap: 9 * time.Second, Jitter: -1}}
	require.Equal(t, []float64{1, 3, 9, 9}, first(described))
	require.Equal(t, "described:base=1s,factor=3,cap=9s,jitter=0", described.String())
	require.Equal(t, []float64{1, 2, 4, 8}, first(storm.Client{Kind: "exponential"}), "a rule of package policy")

	coded, err := storm.Client{Kind: "coded", Params: policy.Params{Factor: 2, Jitter: -1, Cap: 5 * time.Second}}.Policy()
	require.NoError(t, err)
	coded.(*storm.AsCoded).Think(time.Second)
	for _, want := range []time.Duration{2 * time.Second, 4 * time.Second, 5 * time.Second} {
		s, _ := coded.Next(backoff.History{}, rand.New(rand.NewPCG(1, 2)))
		require.Equal(t, want, s.Wait)
	}
	for _, r := range storm.Kinds() {
		require.Equal(t, r.Name, storm.Of(policy.Choice{Rule: r}).String())
	}
}

// connect_retry gives up after one wait of 1 s: then the client thinks again, and does not ask
// at once.
func TestAClientThatGivesUpThinksAgain(t *testing.T) {
	run := func(server storm.Server) *storm.Result {
		c := storm.Client{Kind: "connect-retry", Params: policy.Params{Cap: 2 * time.Second}}
		y, err := storm.Run(storm.Options{Client: c, Server: server, Think: 17 * time.Second, Before: time.Minute, Watch: time.Minute, Seed: 1})
		require.NoError(t, err)
		return y
	}
	require.Zero(t, run(storm.Server{}).GaveUp)
	never := run(storm.Server{Base: time.Hour})
	sent := 0
	for _, s := range never.Seconds {
		sent += s.Sent
	}
	require.InDelta(t, 2*1000*120/(17+2+1+2), sent, 600, "two requests, and the next two 22 s later; else one each 2 s")
	require.InDelta(t, sent/2, never.GaveUp, 300)
}

func TestAsCodedPausesAsItIsCoded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	wait := func(a *storm.AsCoded) float64 {
		s, ok := a.Next(backoff.History{}, r)
		require.True(t, ok)
		return s.Wait.Seconds()
	}
	var first float64
	for range 20_000 {
		a := &storm.AsCoded{}
		a.Think(time.Duration(r.ExpFloat64() * float64(10*time.Second)))
		first += wait(a) / 20_000
	}
	require.InDelta(t, 27.18, first, 0.6)

	a := &storm.AsCoded{}
	a.Think(10 * time.Second)
	require.InDelta(t, 27.18, wait(a), 0.5)
	require.InDelta(t, 73.9, wait(a), 1.5)
	require.InDelta(t, 200.8, wait(a), 4)
	require.InDelta(t, 300, wait(a), 0.5, "the noise does not grow with the delay")

	a.Think(-time.Minute)
	require.Zero(t, wait(a), "a negative sum fires at once")
}

func TestWrongOptionsAreNamed(t *testing.T) {
	_, err := storm.Run(storm.Options{Stop: -time.Second})
	require.EqualError(t, err, "simulate storm: negative time -1s")
	_, err = storm.Run(storm.Options{Client: storm.Client{Kind: "x"}})
	require.ErrorContains(t, err, `simulate storm: there is no client "x": there are redial, `)
	_, err = storm.Run(storm.Options{Server: storm.Server{Factor: 0.5}})
	require.EqualError(t, err, "simulate storm: want a limit, a delay and a number of requests from 0 on and a factor of at least 1, not 30, 100ms, 15 and 0.5")
	_, err = storm.Run(storm.Options{Clients: -1})
	require.Error(t, err)
}
