package redisgate_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/budget/redisgate"
)

func TestTheEndOfTheContextEndsTheWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.hang = make(chan struct{})
		l := newLimiter(t, s, hundred())
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, cause)
		defer cancel()
		start := time.Now()
		_, err := l.Acquire(ctx)
		require.ErrorIs(t, err, cause)
		require.Equal(t, 100*time.Millisecond, time.Since(start))
		require.Zero(t, l.Status().Waiting)
		_, err = l.Acquire(ctx)
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, l.Wait(ctx), cause)
	})
}

// The answer is under way when one of two dials is canceled. The other one begins.
func TestWhatIsGrantedForACanceledDialIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		o := redisgate.Options{Key: "venue", Rate: budget.Window{N: 1, Per: time.Minute}}
		o.Timeout, o.Slack = time.Second, time.Second
		l := newLimiter(t, s, o)
		require.NoError(t, l.Wait(t.Context()))
		time.Sleep(61*time.Second - 100*time.Millisecond)
		s.set(func(s *server) { s.delay = 100 * time.Millisecond })
		ctx, cancel := context.WithCancel(t.Context())
		canceled := make(chan error)
		go func() { canceled <- l.Wait(ctx) }()
		time.Sleep(time.Millisecond) // it has asked
		passed := make(chan error)
		go func() { passed <- l.Wait(t.Context()) }()
		time.Sleep(150 * time.Millisecond) // the answer is on its way
		cancel()
		require.ErrorIs(t, <-canceled, context.Canceled)
		start := time.Now()
		require.NoError(t, <-passed)
		require.Less(t, time.Since(start), time.Second)
		require.EqualValues(t, 2, l.Status().Granted)
	})
}

func TestCloseEndsTheWaitsAndTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.hang = make(chan struct{})
		l := newLimiter(t, s, hundred())
		ended := make(chan error)
		go func() { ended <- l.Wait(t.Context()) }()
		synctest.Wait()
		require.Equal(t, 1, l.Status().Waiting)
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
		require.ErrorIs(t, l.Wait(t.Context()), net.ErrClosed)
		require.NoError(t, l.Close())
	})
}

// The bubble fails if a goroutine is left.
func TestAnIdleLimiterHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		o := hundred()
		o.Slots = 5
		l, err := redisgate.New(s, &o) // is not closed
		require.NoError(t, err)
		done, err := l.Acquire(t.Context())
		require.NoError(t, err)
		done()
		time.Sleep(time.Second)
	})
}

// The first window of a server that knows nothing is over before the first dial, because the dials of
// the last window may be forgotten.
func TestAnEmptyServerLetsNothingBeginAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		start := time.Now()
		l := newLimiter(t, s, hundred())
		require.NoError(t, l.Wait(t.Context()))
		want := 1050*time.Millisecond + redisgate.RetryEvery + 500*time.Millisecond // window, retry, timeout
		require.InDelta(t, want.Seconds(), time.Since(start).Seconds(), 0.03)
		require.NoError(t, newLimiter(t, s, hundred()).Wait(t.Context()))
		require.InDelta(t, want.Seconds(), time.Since(start).Seconds(), 0.03, "the others do not wait again")
	})
}

func TestBadOptionsAreNamed(t *testing.T) {
	rate := budget.Window{N: 10, Per: time.Second}
	for want, o := range map[string]redisgate.Options{
		"Options.Key is empty":                                        {Rate: rate},
		`Options.Key: "a{b}" contains a brace`:                        {Key: "a{b}", Rate: rate},
		"Options.Key is longer than 200 bytes: 201":                   {Key: strings.Repeat("k", 201), Rate: rate},
		"Options.Rate.N: -1 is not between 0 and 1073741824":          {Key: "k", Rate: budget.Window{N: -1}},
		"Options.Rate.Per without N":                                  {Key: "k", Rate: budget.Window{Per: 1}},
		"Options.Rate.Per: 9ms is not between 10ms and 30 days":       {Key: "k", Rate: budget.Window{N: 1, Per: 9 * time.Millisecond}},
		"Options.Rate.Per: 1440h0m0s is not between 10ms and 30 days": {Key: "k", Rate: budget.Window{N: 1, Per: 60 * 24 * time.Hour}},
		"Options.Slots: -2 is not between 0 and 1073741824":           {Key: "k", Slots: -2},
		"Options.Slots: 1073741825 is not between 0 and 1073741824":   {Key: "k", Slots: 1<<30 + 1},
		"neither Options.Rate nor Slots is set":                       {Key: "k"},
		"Options.Local.N: 11 is not between 0 and 10":                 {Key: "k", Rate: rate, Local: redisgate.Share{N: 11}},
		"Options.Local.Slots: -1 is not between 0 and 0":              {Key: "k", Rate: rate, Local: redisgate.Share{Slots: -1}},
		"Options.Lease: 4s is not between 5s and 720h0m0s":            {Key: "k", Slots: 1, Lease: 4 * time.Second},
		"Options.Lease: 5s is not between 6s and 720h0m0s":            {Key: "k", Slots: 1, Lease: 5 * time.Second, Timeout: 1500 * time.Millisecond},
		"Options.Slack: -1ns is not between 0s and 10s":               {Key: "k", Rate: rate, Slack: -1},
		"Options.Slack: 1s is not less than Rate.Per, 1s":             {Key: "k", Rate: rate, Slack: time.Second},
		"Options.Timeout: 1m0s is not between 50ms and 10s":           {Key: "k", Rate: rate, Timeout: time.Minute},
		"Options.Timeout: 10ms is not between 50ms and 10s":           {Key: "k", Rate: rate, Timeout: 10 * time.Millisecond},
	} {
		_, err := redisgate.New(newServer(), &o)
		require.EqualError(t, err, "redisgate: "+want)
	}
	_, err := redisgate.New(newServer(), nil)
	require.Error(t, err)
	_, err = redisgate.New(nil, &redisgate.Options{Key: "k", Slots: 1})
	require.EqualError(t, err, "redisgate: the client is nil")
}

func TestAClientThatCouldHangIsRefused(t *testing.T) {
	o := &redisgate.Options{Key: "k", Slots: 1}
	for _, c := range []interface {
		redisgate.Client
		Close() error
	}{
		redis.NewClient(&redis.Options{}),
		redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}),
		redis.NewRing(&redis.RingOptions{}),
	} {
		_, err := redisgate.New(c, o)
		require.ErrorContains(t, err, "ContextTimeoutEnabled")
		require.NoError(t, c.Close())
	}
}
