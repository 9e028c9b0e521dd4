package line_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/line"
	"github.com/redial-go/redial/internal/numeric"
	"github.com/redial-go/redial/reconnect/backoff"
)

// bound is a limit that an option sets.
type bound struct {
	name string
	n    int
	o    line.Options
}

var bounds = []bound{
	{"Burst", 3, line.Options{Rate: 1, Burst: 3, Concurrent: -1}},
	{"Burst by default", 10, line.Options{Rate: 1, Concurrent: -1}},
	{"Concurrent", 3, line.Options{Rate: -1, Concurrent: 3}},
	{"Concurrent by default", 16, line.Options{Rate: -1}},
}

// Each bound holds exactly: one less and the bound itself are within it, and one more is not.
func TestBoundsAreExact(t *testing.T) {
	for _, b := range bounds {
		for k := b.n - 1; k <= b.n+1; k++ {
			q := newQueue(b.o)
			q.join(k)
			admitted, _ := q.admit()
			require.Len(t, admitted, min(k, b.n), "%s: %d of %d", b.name, k, b.n)
		}
	}
}

// timeBound is a time that an option sets, or that the documentation names.
type timeBound struct {
	name string
	n    time.Duration
	at   bool // a dial may begin, or the line is idle, at n itself

	// prepare returns a line in which a dial waits for that time, or which is forgotten after it.
	prepare func(t *testing.T, n time.Duration) *queue
}

var timeBounds = []timeBound{
	{"Rate", 250 * time.Millisecond, true, func(*testing.T, time.Duration) *queue {
		return behind(newQueue(line.Options{Rate: 4, Burst: 1}))
	}},
	{"Rate by default", 2 * time.Millisecond, true, func(*testing.T, time.Duration) *queue {
		return behind(newQueue(line.Options{Burst: 1}))
	}},
	{"RetryAfter", time.Minute, true, func(_ *testing.T, n time.Duration) *queue { return held(n) }},
	{"RetryAfter, MaxRetryAfter at most", backoff.MaxRetryAfter, true, func(_ *testing.T, n time.Duration) *queue {
		return held(10 * n)
	}},
	{"RetryAfter after a success", 10 * time.Second, true, func(t *testing.T, _ time.Duration) *queue {
		q := newQueue(line.Options{Rate: -1})
		q.dial(t, success)
		q.dial(t, backoff.Verdict{Class: backoff.ClassSlow, RetryAfter: time.Hour})
		q.join(1)
		return q
	}},
	{"the pause after a burst of refused callers", 5 * time.Second, true, func(t *testing.T, _ time.Duration) *queue {
		q := newQueue(line.Options{Rate: -1})
		for range 21 {
			q.dial(t, limited)
		}
		q.join(1)
		return q
	}},
	{"the first wait of an outage", 10 * time.Second, true, func(t *testing.T, n time.Duration) *queue {
		return down(t, line.Options{Probe: every(n)}, 100)
	}},
	{"the wait after a RetryAfter", time.Minute + 10*time.Second, true, func(t *testing.T, n time.Duration) *queue {
		return failAgain(t, line.Options{Probe: every(n - time.Minute)}, 0, 100, time.Minute, time.Minute)
	}},
	{"the wait that is divided", 10 * time.Second / 4, true, func(t *testing.T, n time.Duration) *queue {
		return failAgain(t, line.Options{Probe: every(4 * n)}, 0, 4, time.Minute, 0)
	}},
	{"the wait if Probe gives up", time.Minute, true, func(t *testing.T, _ time.Duration) *queue {
		return down(t, line.Options{Probe: tired{}}, 100)
	}},
}

// behind returns q with a dial that was admitted and one that waits.
func behind(q *queue) *queue {
	q.join(2)
	q.admit()
	return q
}

// held returns a line in which a dial waits because the server of another has asked for a wait.
func held(wait time.Duration) *queue {
	q := newQueue(line.Options{Rate: -1})
	q.join(1)
	admitted, _ := q.admit()
	q.done(backoff.Verdict{Class: backoff.ClassSlow, RetryAfter: wait}, admitted...)
	q.join(1)
	return q
}

// failAgain returns a line in which n dials wait, and whose first probe has failed when the outage had this age.
// All draws are the same.
func failAgain(t *testing.T, o line.Options, draw constant, n int, age, retryAfter time.Duration) *queue {
	t.Helper()
	o.Rate = -1
	q := &queue{time.Unix(1_000_000, 0), line.New(o, rand.New(draw))}
	q.join(1)
	lost, _ := q.admit()
	q.done(refused, lost...)
	q.after(age)
	q.join(1)
	probe, _ := q.admit()
	require.Len(t, probe, 1)
	q.done(backoff.Verdict{Class: backoff.ClassRetry, RetryAfter: retryAfter}, probe...)
	q.join(n)
	return q
}

// A dial that waits for a time may not begin a nanosecond before that.
func TestTimesAreExact(t *testing.T) {
	for _, b := range timeBounds {
		for k := b.n - 1; k <= b.n+1; k++ {
			q := b.prepare(t, b.n)
			q.after(k)
			admitted, _ := q.admit()
			want := k > b.n || k == b.n && b.at
			require.Equal(t, want, len(admitted) > 0, "%s: after %v of %v", b.name, k, b.n)
		}
	}
}

// What is known of a host that is down is forgotten an hour after the last dial.
func TestTimeAfterWhichAHostIsForgottenIsExact(t *testing.T) {
	for k := backoff.MaxRetryAfter - 1; k <= backoff.MaxRetryAfter+1; k++ {
		q := down(t, line.Options{}, 0)
		q.after(k)
		require.Equal(t, k >= backoff.MaxRetryAfter, q.Idle(q.now), "after %v", k)
	}
}

// constant is a source that always draws the same number.
type constant uint64

func (c constant) Uint64() uint64 { return uint64(c) }

// The wait for the next probe may be the start of its range, and not the end, if many dials wait.
func TestDrawsStayInTheirRange(t *testing.T) {
	for _, d := range []struct {
		alone     time.Duration // the wait of a lone client
		age       time.Duration // of the outage
		low, high time.Duration // the wait is drawn from [low, high)
	}{
		{time.Minute, time.Minute, time.Second, 1500 * time.Millisecond},
		{time.Minute, 10 * time.Minute, time.Second, 1500 * time.Millisecond},
		{time.Minute, 30 * time.Minute, 3 * time.Second, 4500 * time.Millisecond},
		{time.Minute, 100 * time.Minute, 10 * time.Second, 15 * time.Second},
		{time.Second / 2, time.Minute, time.Second / 2, time.Second/2 + 1}, // no later than a lone client
	} {
		for source, want := range map[constant]time.Duration{0: d.low, ^constant(0): d.high - 1} {
			for k := want - 1; k <= want; k++ {
				q := failAgain(t, line.Options{Probe: every(d.alone)}, source, 500, d.age, 0)
				q.after(k)
				admitted, _ := q.admit()
				require.Equal(t, k == want, len(admitted) > 0, "age %v: after %v of %v", d.age, k, want)
			}
		}
	}
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{"": reflect.TypeFor[line.Options]()}
	require.Empty(t, numeric.WithoutRow(options, bounds, timeBounds))
}
