package retrystorm_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/retrystorm"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheServersDelayIsThatOfTheOriginal(t *testing.T) {
	require.Equal(t, 100*time.Millisecond, retrystorm.Delay(0))
	require.Equal(t, 100*time.Millisecond, retrystorm.Delay(30))
	require.Equal(t, "2.671444385s", retrystorm.Delay(1040).String(), "the article's log")
	for n, want := range map[int]float64{1599: 16.46, 1925: 47.5, 2231: 128.6} {
		require.InEpsilon(t, want, retrystorm.Delay(n).Seconds(), 1e-3, n)
	}
	require.InDelta(t, 2, retrystorm.Delay(951).Seconds(), 1e-4, "the timeout")
	require.InDelta(t, 475.5, 951/retrystorm.Delay(951).Seconds(), 0.1)
	best := 0
	for n := range 2000 {
		if throughput(n) > throughput(best) {
			best = n
		}
	}
	require.Equal(t, 307, best)
	require.InDelta(t, 1247, throughput(best), 1)
	require.Less(t, retrystorm.Delay(7792), time.Duration(math.MaxInt64))
	require.Equal(t, time.Duration(math.MaxInt64), retrystorm.Delay(7793), "where the original overflows")
}

func throughput(n int) float64 { return float64(n) / retrystorm.Delay(n).Seconds() }

func run(t *testing.T, client retrystorm.Client, stop time.Duration, seed uint64) *retrystorm.Result {
	y, err := retrystorm.Run(retrystorm.Options{Client: client, Stop: stop, Seed: seed})
	require.NoError(t, err)
	return y
}

func TestTheSteadyStateIsAHundredRequestsASecond(t *testing.T) {
	for _, client := range retrystorm.Clients() {
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
		short, long := run(t, retrystorm.Fixed, 3*time.Second, seed), run(t, retrystorm.Fixed, 10*time.Second, seed)
		require.True(t, short.Recovered)
		require.True(t, short.AllServed)
		require.False(t, long.Recovered)
		require.False(t, long.AllServed)
		require.Greater(t, long.Backlog, 1500, "at most 476 come in a second")
	}
}

func TestTheClientAsCodedRecoversWhereTheOneDescribedDoesNot(t *testing.T) {
	for seed := range uint64(3) {
		require.False(t, run(t, retrystorm.Described, 10*time.Second, seed).Recovered)
		coded := run(t, retrystorm.Coded, 10*time.Second, seed)
		require.True(t, coded.Recovered)
		require.Less(t, coded.Back, 5*time.Second)
		require.True(t, coded.AllServed)
		require.Greater(t, coded.Everyone, time.Minute, "its first pause is 27 s on average, the second 73 s")
	}
}

func TestWhatTheBacklogCannotHoldIsLost(t *testing.T) {
	y, err := retrystorm.Run(retrystorm.Options{Stop: 5 * time.Second, Backlog: 50, Seed: 1})
	require.NoError(t, err)
	require.Greater(t, y.Lost, 100)
	require.InDelta(t, 60, y.Backlog, 15, "50, and those that were under way before")
	require.True(t, y.Recovered, "so few make no storm")
}

func TestAStormIsTheSameEachTime(t *testing.T) {
	first := run(t, retrystorm.Described, 4*time.Second, 5)
	require.Equal(t, first, run(t, retrystorm.Described, 4*time.Second, 5))
	require.NotEqual(t, first.Seconds, run(t, retrystorm.Described, 4*time.Second, 6).Seconds)
}

func TestTheBorderIsFoundByHalving(t *testing.T) {
	runs := 0
	b, err := retrystorm.FindBorder(context.Background(), retrystorm.Options{Client: retrystorm.Fixed, Seed: 1},
		16*time.Second, time.Second, 1, func() { runs++ })
	require.NoError(t, err)
	require.Equal(t, b.Longest+time.Second, b.Shortest)
	require.InDelta(t, 4, b.Longest.Seconds(), 1)
	require.LessOrEqual(t, runs, 5)

	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	cancel(enough)
	_, err = retrystorm.FindBorder(ctx, retrystorm.Options{}, time.Minute, time.Second, 1, nil)
	require.ErrorIs(t, err, enough)
}

func TestAnEndThatCannotChangeIsNotWaitedFor(t *testing.T) {
	y, err := retrystorm.Run(retrystorm.Options{Stop: 20 * time.Second, Watch: 2 * time.Hour, Seed: 1})
	require.NoError(t, err)
	require.False(t, y.Recovered)
	require.Less(t, len(y.Seconds), 1000)
}

func TestAsCodedPausesAsItIsCoded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	wait := func(a *retrystorm.AsCoded) float64 {
		s, ok := a.Next(backoff.Attempt{}, r)
		require.True(t, ok)
		return s.Wait.Seconds()
	}
	var first float64
	for range 20_000 {
		a := &retrystorm.AsCoded{}
		a.Think(time.Duration(r.ExpFloat64() * float64(10*time.Second)))
		first += wait(a) / 20_000
	}
	require.InDelta(t, 27.18, first, 0.6)

	a := &retrystorm.AsCoded{}
	a.Think(10 * time.Second)
	require.InDelta(t, 27.18, wait(a), 0.5)
	require.InDelta(t, 73.9, wait(a), 1.5)
	require.InDelta(t, 200.8, wait(a), 4)
	require.InDelta(t, 300, wait(a), 0.5, "the noise does not grow with the delay")

	a.Think(-time.Minute)
	require.Zero(t, wait(a), "a negative sum fires at once")
}

func TestWrongOptionsAreNamed(t *testing.T) {
	_, err := retrystorm.Run(retrystorm.Options{Stop: -time.Second})
	require.EqualError(t, err, "simulate storm: negative time -1s")
	_, err = retrystorm.Run(retrystorm.Options{Client: 7})
	require.EqualError(t, err, "simulate storm: there is no client 7")
	_, err = retrystorm.Run(retrystorm.Options{Clients: -1})
	require.Error(t, err)
	for _, c := range retrystorm.Clients() {
		parsed, err := retrystorm.ParseClient(c.String())
		require.NoError(t, err)
		require.Equal(t, c, parsed)
	}
	_, err = retrystorm.ParseClient("x")
	require.EqualError(t, err, `find client "x": there are fixed, described, coded`)
}
