package waits_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/waits"
	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/reconnect/backoff"
)

func outage(t *testing.T, name string) waits.Outage {
	o, err := pick.One("outage", name, waits.Outages(), func(o waits.Outage) string { return o.Name })
	require.NoError(t, err)
	return o
}

func draw(t *testing.T, o waits.Options) *waits.Result {
	y, err := waits.Draw(t.Context(), o)
	require.NoError(t, err)
	return y
}

func TestAFixedWaitIsDrawnAsItIs(t *testing.T) {
	y := draw(t, waits.Options{Policy: &classic.Fixed{}, Outage: outage(t, "refused"), Seeds: 3, Retries: 4, Until: 10 * time.Second})
	want := waits.Stats{P5: 1, Median: 1, P95: 1, Mean: 1, Alike: 1, N: 3}
	wait, begins := y.Retry(4)
	require.Equal(t, want, wait)
	require.Equal(t, waits.Stats{P5: 4, Median: 4, P95: 4, Mean: 4, Alike: 1, N: 3}, begins)
	wait, begun := y.At(3500 * time.Millisecond)
	require.Equal(t, want, wait)
	require.Equal(t, waits.Stats{P5: 3, Median: 3, P95: 3, Mean: 3, Alike: 1, N: 3}, begun)
	require.Len(t, y.Clients[0], 11, "until one begins later than 10 s")
	wait, _ = y.At(time.Hour)
	require.Zero(t, wait.N, "nobody knows")
}

// SIP's retransmissions over UDP, with T1 and T2 (RFC 3261, section 17.1.2.1).
func TestSIPRetransmitsAfterHalfASecondAndUpToFour(t *testing.T) {
	y := draw(t, waits.Options{Policy: &backoff.Exponential{Base: 500 * time.Millisecond, Cap: 4 * time.Second, Jitter: backoff.JitterNone}, Seeds: 1, Retries: 6, Until: time.Second})
	for i, want := range []float64{0.5, 1, 2, 4, 4, 4} {
		wait, _ := y.Retry(i + 1)
		require.Equal(t, want, wait.Mean)
	}
}

func TestASilentDialTakesAsLongAsItMay(t *testing.T) {
	fixed := waits.Options{Policy: &classic.Fixed{}, Outage: outage(t, "silent"), Seeds: 1, Retries: 3, Until: 1}
	_, begins := draw(t, fixed).Retry(3)
	require.Equal(t, 1+16+1+16+1., begins.Mean, "the library's limit, where the policy has none")
	fixed.Connect = 2 * time.Second
	_, begins = draw(t, fixed).Retry(3)
	require.Equal(t, 1+2+1+2+1., begins.Mean)
	doubling := fixed
	doubling.Policy = &backoff.Exponential{Jitter: backoff.JitterNone}
	wait, begun := draw(t, doubling).At(2 * time.Second)
	require.Equal(t, []float64{1, 1}, []float64{wait.Mean, begun.Mean}, "a dial is under way; its wait was the last")

	fixed.Policy = &classic.GRPC{}
	_, begins = draw(t, fixed).Retry(2)
	require.InDelta(t, 1+20+1.6, begins.Mean, 0.33, "gRPC's own limit counts")
}

// The library's default looks at how a dial fails: at most 10 s after a refusal and 15 s
// after an overload; and by then a silent server has taken 16 s of each dial.
func TestTheDefaultWaitsByTheKindOfTheOutage(t *testing.T) {
	longest := map[string]float64{}
	for _, o := range waits.Outages() {
		y := draw(t, waits.Options{Policy: backoff.Default(), Outage: o, Seeds: 300, Seed: 1, Until: 5 * time.Minute})
		wait, _ := y.At(5 * time.Minute)
		longest[o.Name] = wait.P95
		_, first := y.Retry(1)
		require.Less(t, first.P95, 2.)
	}
	require.InDelta(t, 9.75, longest["refused"], 0.15)
	require.InDelta(t, 14.6, longest["503"], 0.2)
	require.InDelta(t, 14.6, longest["silent"], 0.2)
}

func TestARuleThatGivesUpHasNoFurtherRetries(t *testing.T) {
	y := draw(t, waits.Options{Policy: &classic.ConnectRetry{}, Seeds: 2, Retries: 20})
	wait, begins := y.Retry(7)
	require.Equal(t, []float64{64, 127}, []float64{wait.Mean, begins.Mean})
	wait, _ = y.Retry(8)
	require.Zero(t, wait.N)
	wait, _ = y.At(128 * time.Second)
	require.Zero(t, wait.N)
}

// With the jitter first and the cap after it a herd gathers at the cap: for the retry r, from
// 0 on, (2^r - 29)/(2^r + 1) of the waits of the older Celery are exactly 30 s.
func TestCapsAfterTheJitterMakeClientsAlike(t *testing.T) {
	y := draw(t, waits.Options{Policy: &classic.CeleryOld{Maximum: 30}, Seeds: 20_000, Seed: 1, Until: 1})
	for _, r := range []int{6, 10} {
		wait, _ := y.Retry(r + 1)
		power := float64(int(1) << r)
		require.InDelta(t, (power-29)/(power+1), wait.Alike, 0.02, "54 and 97 %")
		require.Equal(t, 30., wait.P95)
	}
	y = draw(t, waits.Options{Policy: &classic.Celery{Maximum: 30}, Seeds: 20_000, Seed: 1, Until: 1})
	wait, _ := y.Retry(11)
	require.InDelta(t, 1./31, wait.Alike, 0.01, "with the cap first no wait is commoner than another")
}

func TestTheSameSeedDrawsTheSame(t *testing.T) {
	o := waits.Options{Policy: backoff.Default(), Seeds: 3, Seed: 5}
	require.Equal(t, draw(t, o), draw(t, o))
	next := o
	next.Seed++
	require.Equal(t, draw(t, o).Clients[1], draw(t, next).Clients[0], "seeds count up")
}

func TestOptionsThatMeanNothingAreErrors(t *testing.T) {
	for want, o := range map[string]waits.Options{
		"draw waits: there is no policy":                                         {},
		"draw waits: want times and numbers from 0 on, and at most 5000 retries": {Policy: backoff.Default(), Retries: 5001},
	} {
		_, err := waits.Draw(t.Context(), o)
		require.EqualError(t, err, want)
	}
	_, err := waits.Draw(t.Context(), waits.Options{Policy: &classic.Fixed{}, Retries: 5000, Seeds: 10_000})
	require.ErrorContains(t, err, "want at most 20000000 waits in all")
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	_, err = waits.Draw(ctx, waits.Options{Policy: backoff.Default()})
	require.ErrorIs(t, err, enough)
}
