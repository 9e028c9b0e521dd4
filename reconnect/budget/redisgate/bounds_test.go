package redisgate_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/numeric"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/budget/redisgate"
)

// rate lets n dials begin in 10 s.
func rate(n int) budget.Window { return budget.Window{N: n, Per: 10 * time.Second} }

// bounds are the limits on dials that options set.
var bounds = []struct {
	name string
	n    int
	o    redisgate.Options
	away bool // Redis is
}{
	{"Rate.N", 3, redisgate.Options{Rate: rate(3)}, false},
	{"Slots", 3, redisgate.Options{Slots: 3}, false},
	{"Local.N", 3, redisgate.Options{Rate: rate(100), Local: redisgate.Share{N: 3}}, true},
	{"Local.N by default", 10, redisgate.Options{Rate: rate(100)}, true},
	{"Local.N by default, at least", 1, redisgate.Options{Rate: rate(9)}, true},
	{"Local.Slots", 3, redisgate.Options{Slots: 100, Local: redisgate.Share{Slots: 3}}, true},
	{"Local.Slots by default", 10, redisgate.Options{Slots: 100}, true},
	{"Local.Slots by default, at least", 1, redisgate.Options{Slots: 9}, true},
}

// Each bound holds exactly: one less and the bound itself are within it, and one more is not.
func TestBoundsAreExact(t *testing.T) {
	for _, b := range bounds {
		for k := b.n - 1; k <= b.n+1; k++ {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				if b.away {
					s.err = errRefused
				}
				l := newLimiter(t, s, keyed(b.o))
				for range k {
					acquire(t, l)
				}
				time.Sleep(15 * time.Second) // the first window passes without a dial, and the second is not over
				status := l.Status()
				require.EqualValues(t, min(k, b.n), status.Granted+status.Shared, "%s: %d of %d", b.name, k, b.n)
				require.Equal(t, k-min(k, b.n), status.Waiting)
				require.Equal(t, b.away && k > 0, status.Away)
			})
		}
	}
}

// keyed returns o with a key.
func keyed(o redisgate.Options) redisgate.Options {
	o.Key = "venue"
	return o
}

// acquire begins a dial, which lasts until the end of the test.
func acquire(t *testing.T, l *redisgate.Limiter) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = l.Acquire(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	synctest.Wait()
}

// opened returns a Limiter whose key Redis knows, so that the next dial begins immediately.
func opened(t *testing.T, s *server, o redisgate.Options) *redisgate.Limiter {
	t.Helper()
	l := newLimiter(t, s, keyed(o))
	require.NoError(t, l.Wait(t.Context()))
	time.Sleep(o.Rate.Per + o.Slack + 5*time.Second)
	synctest.Wait()
	return l
}

// timeBounds are the times that options set.
var timeBounds = []struct {
	name string
	n    time.Duration
	step time.Duration // the distance of the times that are tried
	at   bool          // the event has happened at n itself

	// happened reports whether the event has happened with k.
	happened func(t *testing.T, n, k time.Duration) bool
}{
	{"Timeout", 3 * time.Second, 1, true, func(t *testing.T, n, k time.Duration) bool {
		return awayAfter(t, redisgate.Options{Slots: 3, Timeout: n}, k)
	}},
	{"Timeout by default", 500 * time.Millisecond, 1, true, func(t *testing.T, _, k time.Duration) bool {
		return awayAfter(t, redisgate.Options{Rate: hundred().Rate}, k)
	}},
	{"Timeout by default, Slack", 2 * time.Second, 1, true, func(t *testing.T, n, k time.Duration) bool {
		return awayAfter(t, redisgate.Options{Slots: 3, Slack: n}, k)
	}},
	{"Slack", 200 * time.Millisecond, 2, false, func(t *testing.T, n, k time.Duration) bool {
		return voids(t, redisgate.Options{Rate: hundred().Rate, Slack: n}, k)
	}},
	{"Slack by default", time.Second, 2, false, func(t *testing.T, _, k time.Duration) bool {
		return voids(t, redisgate.Options{Slots: 3, Timeout: 2 * time.Second}, k)
	}},
	{"Slack by default, of a rate", 50 * time.Millisecond, 2, false, func(t *testing.T, _, k time.Duration) bool {
		return voids(t, redisgate.Options{Rate: hundred().Rate}, k)
	}},
	{"Slack by default, of a rate at least", 5 * time.Millisecond, 2, false,
		func(t *testing.T, _, k time.Duration) bool {
			return voids(t, redisgate.Options{Rate: budget.Window{N: 1, Per: 20 * time.Millisecond}}, k)
		}},
	{"Slack by default, of a rate at most", time.Second, 2, false, func(t *testing.T, _, k time.Duration) bool {
		return voids(t, redisgate.Options{Rate: budget.Window{N: 1, Per: time.Minute}, Timeout: 2 * time.Second}, k)
	}},
	{"LoginsOptions.Timeout", 3 * time.Second, 1, true, func(t *testing.T, n, k time.Duration) bool {
		return takeEnds(t, redisgate.LoginsOptions{Timeout: n}, k)
	}},
	{"LoginsOptions.Timeout by default", 500 * time.Millisecond, 1, true, func(t *testing.T, _, k time.Duration) bool {
		return takeEnds(t, redisgate.LoginsOptions{}, k)
	}},
}

// What happens after a time does not happen a nanosecond before that.
func TestTimesAreExact(t *testing.T) {
	for _, b := range timeBounds {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - b.step; k <= b.n+b.step; k += b.step {
				synctest.Test(t, func(t *testing.T) {
					want := k > b.n || k == b.n && b.at
					require.Equal(t, want, b.happened(t, b.n, k), "%v of %v", k, b.n)
				})
			}
		})
	}
}

// awayAfter reports whether Redis counts as away k after a question that hangs.
func awayAfter(t *testing.T, o redisgate.Options, k time.Duration) bool {
	s := newServer()
	s.hang = make(chan struct{})
	l := newLimiter(t, s, keyed(o))
	acquire(t, l)
	time.Sleep(k)
	synctest.Wait()
	return l.Status().Away
}

// voids reports whether a permit is void that comes k after the question.
func voids(t *testing.T, o redisgate.Options, k time.Duration) bool {
	s := newServer()
	l := opened(t, s, o)
	s.set(func(s *server) { s.delay = k / 2 })
	before := l.Status()
	acquire(t, l)
	time.Sleep(k)
	synctest.Wait()
	after := l.Status()
	require.EqualValues(t, 1, after.Granted-before.Granted+after.Void-before.Void)
	return after.Void > before.Void
}

// takeEnds reports whether a Take has ended after k, although Redis does not answer.
func takeEnds(t *testing.T, o redisgate.LoginsOptions, k time.Duration) bool {
	s := newServer()
	o.Key = "account"
	l, err := redisgate.NewLogins(s, &o)
	require.NoError(t, err)
	defer l.Close()
	synctest.Wait()
	s.set(func(s *server) { s.hang = make(chan struct{}) })
	ended := make(chan error, 1)
	go func() {
		_, err := l.Take(t.Context(), []budget.Window{rate(3)})
		ended <- err
	}()
	time.Sleep(k)
	synctest.Wait()
	return len(ended) == 1
}

// ranges are the times that options set and Redis keeps.
var ranges = []struct {
	name      string
	low, high time.Duration

	// took returns how long it took.
	took func(t *testing.T) time.Duration
}{
	{"Rate.Per", 10500 * time.Millisecond, 10530 * time.Millisecond, func(t *testing.T) time.Duration {
		return nextDial(t, redisgate.Options{Rate: rate(1), Slack: 500 * time.Millisecond})
	}},
	{"Rate.Per, with the default Slack", 61 * time.Second, 61030 * time.Millisecond, func(t *testing.T) time.Duration {
		return nextDial(t, redisgate.Options{Rate: budget.Window{N: 1, Per: time.Minute}})
	}},
	{"Lease", 20 * time.Second, 20100 * time.Millisecond, func(t *testing.T) time.Duration {
		return leaseEnds(t, redisgate.Options{Slots: 1, Lease: 20 * time.Second})
	}},
	{"Lease by default", 15 * time.Second, 15100 * time.Millisecond, func(t *testing.T) time.Duration {
		return leaseEnds(t, redisgate.Options{Slots: 1})
	}},
	{"Lease by default, of Timeout", 24 * time.Second, 24100 * time.Millisecond, func(t *testing.T) time.Duration {
		return leaseEnds(t, redisgate.Options{Slots: 1, Timeout: 6 * time.Second})
	}},
}

// A process asks again up to 50 ms after the time at which Redis would let it dial, and not before.
func TestTimesThatRedisKeepsAreInTheirRange(t *testing.T) {
	for _, r := range ranges {
		synctest.Test(t, func(t *testing.T) {
			took := r.took(t)
			require.GreaterOrEqual(t, took, r.low, r.name)
			require.Less(t, took, r.high, r.name)
		})
	}
}

// nextDial returns how long after a dial the next one begins, at a rate with N 1.
func nextDial(t *testing.T, o redisgate.Options) time.Duration {
	l := opened(t, newServer(), o)
	require.NoError(t, l.Wait(t.Context()))
	start := time.Now()
	require.NoError(t, l.Wait(t.Context()))
	return time.Since(start)
}

// leaseEnds returns after how long a process gets the slot of another one, which was killed when it got it.
func leaseEnds(t *testing.T, o redisgate.Options) time.Duration {
	s := newServer()
	killed := opened(t, s, o)
	_, err := killed.Acquire(t.Context())
	require.NoError(t, err)
	start := time.Now()
	require.NoError(t, killed.Close())
	l := newLimiter(t, s, keyed(o))
	done, err := l.Acquire(t.Context())
	require.NoError(t, err)
	done()
	return time.Since(start)
}

// limits are the least and the greatest numbers that an option may have.
var limits = []struct {
	name        string
	least, most int64
	set         func(o *redisgate.Options, n int64)
}{
	{"Rate.N", 1, 1 << 30, func(o *redisgate.Options, n int64) { o.Rate.N = int(n) }},
	{"Rate.Per", 10 * ms, 30 * day, func(o *redisgate.Options, n int64) {
		o.Rate = budget.Window{N: 1, Per: time.Duration(n)}
	}},
	{"Slots", 0, 1 << 30, func(o *redisgate.Options, n int64) { o.Slots = int(n) }},
	{"Local.N", 0, 100, func(o *redisgate.Options, n int64) { o.Local.N = int(n) }},
	{"Local.Slots", 0, 50, func(o *redisgate.Options, n int64) { o.Slots, o.Local.Slots = 50, int(n) }},
	{"Lease", 5000 * ms, 30 * day, func(o *redisgate.Options, n int64) { o.Lease = time.Duration(n) }},
	{"Lease, of Timeout", 12000 * ms, 30 * day, func(o *redisgate.Options, n int64) {
		o.Timeout, o.Lease = 3*time.Second, time.Duration(n)
	}},
	{"Slack, of Rate.Per", 0, 1000*ms - 1, func(o *redisgate.Options, n int64) { o.Slack = time.Duration(n) }},
	{"Slack", 0, 10000 * ms, func(o *redisgate.Options, n int64) {
		o.Rate, o.Slots, o.Slack = budget.Window{}, 1, time.Duration(n)
	}},
	{"Timeout, of Slack and Lease", 50 * ms, 1500 * ms, func(o *redisgate.Options, n int64) {
		o.Timeout, o.Lease = time.Duration(n), 6*time.Second
	}},
	{"Timeout", 50 * ms, 10000 * ms, func(o *redisgate.Options, n int64) { o.Timeout = time.Duration(n) }},
}

const (
	ms  = int64(time.Millisecond)
	day = int64(24 * time.Hour)
)

// An option may have its least and its greatest number, and none beyond.
func TestLimitsOfOptionsAreExact(t *testing.T) {
	for _, l := range limits {
		for _, end := range []int64{l.least, l.most} {
			for n := end - 1; n <= end+1; n++ {
				o := hundred()
				o.Local = redisgate.Share{}
				l.set(&o, n)
				_, err := redisgate.New(newServer(), &o)
				require.Equal(t, n >= l.least && n <= l.most, err == nil, "%s: %d: %v", l.name, n, err)
			}
		}
	}
	for d := time.Duration(ms) - 1; d <= time.Duration(ms)+1; d++ {
		requireLogins(t, redisgate.LoginsOptions{Key: "k", Timeout: d}, d >= time.Duration(ms))
	}
	for d := 10*time.Second - 1; d <= 10*time.Second+1; d++ {
		requireLogins(t, redisgate.LoginsOptions{Key: "k", Timeout: d}, d <= 10*time.Second)
	}
	for n := 199; n <= 201; n++ {
		key := strings.Repeat("k", n)
		_, err := redisgate.New(newServer(), &redisgate.Options{Key: key, Slots: 1})
		require.Equal(t, n <= 200, err == nil, "a Key of %d bytes", n)
		requireLogins(t, redisgate.LoginsOptions{Key: key}, n <= 200)
	}
}

// requireLogins requires that NewLogins accepts the options, or rejects them.
func requireLogins(t *testing.T, o redisgate.LoginsOptions, ok bool) {
	t.Helper()
	l, err := redisgate.NewLogins(newServer(), &o)
	require.Equal(t, ok, err == nil, err)
	if err == nil {
		require.NoError(t, l.Close())
	}
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{
		"":               reflect.TypeFor[redisgate.Options](),
		"LoginsOptions.": reflect.TypeFor[redisgate.LoginsOptions](),
	}
	require.Empty(t, numeric.WithoutRow(options, bounds, timeBounds, ranges))
}
