package ratelimit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/articles/ratelimit"
	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(t *testing.T, o ratelimit.Options) *ratelimit.Result {
	t.Helper()
	y, err := ratelimit.Run(t.Context(), o)
	require.NoError(t, err)
	return y
}

// 1000 clients call at the same instants, and a window allows 100 calls. So 100 clients succeed with
// each try, the last of them with the tenth. There are 1000 + 900 + ... + 100 calls, however long the
// clients wait between two tries.
func TestClientsInStepAreServedByTheWindow(t *testing.T) {
	for name, c := range map[string]struct {
		policy backoff.Policy
		last   time.Duration
	}{
		"fixed":       {&classic.Fixed{}, 9 * time.Second},
		"exponential": {&backoff.Exponential{Jitter: backoff.JitterNone}, 151 * time.Second}, // 0, 1, 3, 7, 15, 31, 61, 91, 121, 151
	} {
		y := run(t, ratelimit.Options{Policy: c.policy})
		require.Equal(t, c.last, y.After(1), name)
		require.Equal(t, 5500, y.Calls, name)
		require.Equal(t, 4500, y.Vain, name)
		require.Equal(t, 1000, y.Peak(), name)
		require.Len(t, y.Done, 1000)
	}
}

func TestABookedTimeCostsOneCallInVain(t *testing.T) {
	o := ratelimit.Options{Policy: &classic.Fixed{}, Heed: ratelimit.HeedLonger, Limit: ratelimit.Limit{Tell: ratelimit.TellBooked}}
	y := run(t, o)
	require.Equal(t, 900, y.Vain)
	require.Equal(t, 9*time.Second, y.After(1), "the ideal time")
	ideal, err := o.Limit.Ideal(1000)
	require.NoError(t, err)
	require.Equal(t, y.After(1), ideal)
	o.Heed = ratelimit.HeedNot
	require.Equal(t, 4500, run(t, o).Vain, "a client that does not heed Retry-After gains nothing")
}

// If the server tells all clients the same Retry-After, a client that waits exactly so long comes back
// together with the others. A client of the library adds a random wait, so that the clients come back
// one after another.
func TestWhatIsToldToAllNeedsJitter(t *testing.T) {
	o := ratelimit.Options{Policy: &classic.Fixed{}, Heed: ratelimit.HeedLonger, Limit: ratelimit.Limit{Tell: ratelimit.TellSame}, Seed: 1}
	alike := run(t, o)
	require.Equal(t, 900, alike.Bins[10], "all that were told 1 s")
	o.Policy, o.Heed = nil, ratelimit.HeedAdd
	library := run(t, o)
	require.Less(t, slices.Max(library.Bins[1:]), 150)
	require.Less(t, library.Vain, alike.Vain)
}

func TestABucketAllowsABurstAndThenTheRate(t *testing.T) {
	l := ratelimit.Limit{Rate: 10, Window: -1, Burst: 3, Tell: ratelimit.TellSame}
	api, err := l.New()
	require.NoError(t, err)
	allowed := func(now time.Duration) (n int) {
		for {
			ok, after := api.Call(now)
			if !ok {
				require.Equal(t, time.Second, after, "whole seconds, rounded up")
				return n
			}
			n++
		}
	}
	require.Equal(t, 3, allowed(0))
	require.Equal(t, 0, allowed(99*time.Millisecond))
	require.Equal(t, 1, allowed(100*time.Millisecond))
	require.Equal(t, 2, allowed(300*time.Millisecond))
	require.Equal(t, 3, allowed(time.Hour), "the bucket holds no more than 3")
	ideal, err := l.Ideal(103)
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, ideal)
}

func TestABucketBooksOneTimeAfterAnother(t *testing.T) {
	api, err := ratelimit.Limit{Rate: 2, Window: -1, Tell: ratelimit.TellBooked}.New()
	require.NoError(t, err)
	ok, _ := api.Call(0)
	require.True(t, ok)
	for _, want := range []int{1, 1, 2, 2, 3} { // 0.5, 1, 1.5, 2 and 2.5 s, rounded up
		ok, after := api.Call(0)
		require.False(t, ok)
		require.Equal(t, time.Duration(want)*time.Second, after)
	}
}

// answered is the error that a user's program makes of a response with status 429.
type answered struct {
	code  int
	after time.Duration
}

func (a answered) Error() string                     { return http.StatusText(a.code) }
func (a answered) StatusCode() int                   { return a.code }
func (a answered) RetryAfter() (time.Duration, bool) { return a.after, a.after > 0 }

// Real clients, each with a retry.Loop, call a real HTTP handler in virtual time. They need about as much
// time and as many calls as the model says.
func TestRealRetriersAgreeWithTheModel(t *testing.T) {
	for _, tell := range []ratelimit.Tell{ratelimit.TellNothing, ratelimit.TellSame, ratelimit.TellBooked} {
		o := ratelimit.Options{Clients: 400, Limit: ratelimit.Limit{Rate: 20, Tell: tell}, Seed: 1}
		model := run(t, o)
		var last time.Duration
		vain := 0
		synctest.Test(t, func(t *testing.T) { last, vain = realRetriers(t, o) })
		require.InEpsilon(t, model.After(1).Seconds(), last.Seconds(), 0.15, tell)
		require.InEpsilon(t, model.Vain, vain, 0.1, tell)
	}
}

// realRetriers returns when the last client has succeeded, and how many calls were in vain.
func realRetriers(t *testing.T, o ratelimit.Options) (last time.Duration, vain int) {
	h, err := newHandler(o.Limit)
	require.NoError(t, err)
	began := time.Now()
	var (
		mu     sync.Mutex // guards last and vain
		group  sync.WaitGroup
		errors = make([]error, o.Clients)
	)
	for i := range o.Clients {
		group.Go(func() {
			retrier := retry.Loop{Rand: rand.NewPCG(7, uint64(i))}
			errors[i] = retrier.Do(t.Context(), func(ctx context.Context) error {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
				mu.Lock()
				defer mu.Unlock()
				if w.Code == http.StatusNoContent {
					last = time.Since(began)
					return nil
				}
				vain++
				after, _ := backoff.ParseRetryAfter(w.Header().Get("Retry-After"), time.Now())
				return answered{w.Code, after}
			})
		})
	}
	group.Wait()
	for _, err := range errors {
		require.NoError(t, err)
	}
	return last, vain
}

func TestARunIsTheSameEachTime(t *testing.T) {
	o := ratelimit.Options{Clients: 300, Seed: 3, Spread: time.Second}
	require.Equal(t, run(t, o), run(t, o))
	other := o
	other.Seed++
	require.NotEqual(t, run(t, o).Done, run(t, other).Done)
}

func TestARunEnds(t *testing.T) {
	y := run(t, ratelimit.Options{Watch: 5 * time.Second, Policy: &classic.Fixed{}})
	require.Len(t, y.Done, 500)
	require.Equal(t, ratelimit.Never, y.After(1))
	require.Equal(t, 4*time.Second, y.After(0.5))

	y = run(t, ratelimit.Options{Policy: backoff.Limit(&classic.Fixed{}, 2, 0)})
	require.Equal(t, []int{300, 700}, []int{len(y.Done), y.GaveUp})

	y = run(t, ratelimit.Options{Clients: 200, Policy: &classic.Fixed{Wait: -1}, Watch: time.Minute})
	require.Len(t, y.Done, 200, "without a pause")

	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	_, err := ratelimit.Run(ctx, ratelimit.Options{})
	require.ErrorIs(t, err, enough)
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for want, o := range map[string]ratelimit.Options{
		"simulate calls: want at most 1000000 clients, not -1":                                  {Clients: -1},
		"simulate calls: a time is negative":                                                    {Spread: -1},
		"simulate calls: the rate must be above 0 and at most 1000000 calls per second, not -2": {Limit: ratelimit.Limit{Rate: -2}},
		"simulate calls: a window of 100ms with 5 calls per second allows no call":              {Limit: ratelimit.Limit{Rate: 5, Window: 100 * time.Millisecond}},
		"simulate calls: there is no such Heed: kind 9":                                         {Heed: 9},
		"simulate calls: there is no such Tell: kind 9":                                         {Limit: ratelimit.Limit{Tell: 9}},
	} {
		_, err := ratelimit.Run(t.Context(), o)
		require.EqualError(t, err, want)
	}
}
