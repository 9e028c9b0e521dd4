package backoff_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/numeric"
	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// drawn is an option that bounds a time which a policy draws, or the default of such an option.
type drawn struct {
	name      string
	policy    backoff.Policy
	history   backoff.History
	low, high time.Duration // the time is drawn from [low, high)
}

var (
	overloaded  = backoff.Verdict{Class: backoff.ClassOverload}
	asked       = backoff.Verdict{Class: backoff.ClassRetry, RetryAfter: 40 * sec}
	longOutage  = backoff.History{N: 9, Elapsed: time.Hour}
	youngOutage = backoff.History{N: 2, Elapsed: 2 * sec}
)

// The waits of policies.
var waitsDrawn = []drawn{
	{"Exponential.Base", &backoff.Exponential{Base: 3 * sec}, backoff.History{}, 0, 3 * sec},
	{"Exponential.Base by default", &backoff.Exponential{}, backoff.History{}, 0, sec},
	{"Exponential.Factor", &backoff.Exponential{Factor: 3}, backoff.History{N: 2}, 0, 9 * sec},
	{"Exponential.Factor by default", &backoff.Exponential{}, backoff.History{N: 3}, 0, 8 * sec},
	{"Exponential.Cap", &backoff.Exponential{Cap: 5 * sec}, backoff.History{N: 3}, 0, 5 * sec},
	{"Exponential.Cap by default", &backoff.Exponential{}, backoff.History{N: 5}, 0, 30 * sec},
	{"Exponential.Cap by default, Base", &backoff.Exponential{Base: 40 * sec}, backoff.History{N: 5}, 0, 40 * sec},
	{"Exponential.OverloadCap", &backoff.Exponential{Cap: 5 * sec, OverloadCap: 12 * sec},
		backoff.History{N: 9, Overloads: 2, Verdict: overloaded}, 0, 12 * sec},
	{"Exponential.OverloadCap, a step for each overload", &backoff.Exponential{Cap: 5 * sec, OverloadCap: 12 * sec},
		backoff.History{N: 9, Overloads: 1, Verdict: overloaded}, 0, 10 * sec},
	{"Exponential.OverloadCap by default", &backoff.Exponential{Cap: 5 * sec},
		backoff.History{N: 9, Overloads: 9, Verdict: overloaded}, 0, 5 * sec},
	{"Exponential.Spread", &backoff.Exponential{Jitter: backoff.JitterProportional, Spread: 0.5},
		backoff.History{}, sec / 2, sec * 3 / 2},
	{"Exponential.Spread by default", &backoff.Exponential{Jitter: backoff.JitterProportional},
		backoff.History{}, sec * 4 / 5, sec * 6 / 5},
	{"JitterEqual", &backoff.Exponential{Jitter: backoff.JitterEqual}, backoff.History{}, sec / 2, sec},
	{"JitterNone", &backoff.Exponential{Jitter: backoff.JitterNone}, backoff.History{}, sec, sec + 1},

	{"OCPP.WaitMinimum", &backoff.OCPP{WaitMinimum: 3 * sec}, backoff.History{}, 3 * sec, 13 * sec},
	{"OCPP.WaitMinimum by default", &backoff.OCPP{}, backoff.History{}, 10 * sec, 20 * sec},
	{"OCPP.RandomRange", &backoff.OCPP{RandomRange: 5 * sec}, backoff.History{N: 1, Prev: sec}, 2 * sec, 7 * sec},
	{"OCPP.RandomRange by default", &backoff.OCPP{}, backoff.History{N: 1, Prev: 10 * sec}, 20 * sec, 30 * sec},
	{"OCPP.RepeatTimes", &backoff.OCPP{RepeatTimes: 2}, backoff.History{N: 2, Prev: 10 * sec}, 20 * sec, 30 * sec},
	{"OCPP.RepeatTimes, then the same", &backoff.OCPP{RepeatTimes: 2}, backoff.History{N: 3, Prev: sec}, sec, sec + 1},
	{"OCPP.RepeatTimes by default", &backoff.OCPP{}, backoff.History{N: 3, Prev: 10 * sec}, 20 * sec, 30 * sec},
	{"OCPP.RepeatTimes by default, then the same", &backoff.OCPP{}, backoff.History{N: 4, Prev: sec}, sec, sec + 1},

	{"Adaptive.Spread", &backoff.Adaptive{Spread: 4 * sec}, backoff.History{}, 0, 4 * sec},
	{"Adaptive.Spread by default", &backoff.Adaptive{}, backoff.History{}, 0, 2 * sec},
	{"Adaptive.Spread, after a refusal in its first half", &backoff.Adaptive{Spread: 4 * sec},
		backoff.History{N: 1, Elapsed: 2*sec - 1}, 1, 2200*time.Millisecond + 1},
	{"Adaptive.Spread, after a refusal in its second half", &backoff.Adaptive{Spread: 4 * sec},
		backoff.History{N: 1, Elapsed: 2 * sec}, 1200 * time.Millisecond, 2400 * time.Millisecond},
	{"Adaptive.Base", &backoff.Adaptive{Base: 6 * sec}, youngOutage, 3 * sec, 6 * sec},
	{"Adaptive.Base by default", &backoff.Adaptive{}, youngOutage, 1200 * time.Millisecond, 2400 * time.Millisecond},
	{"Adaptive.Share", &backoff.Adaptive{Share: 0.25}, backoff.History{N: 2, Elapsed: 12 * sec}, sec * 3 / 2, 3 * sec},
	{"Adaptive.Share by default", &backoff.Adaptive{}, backoff.History{N: 2, Elapsed: 12 * sec}, 3 * sec, 6 * sec},
	{"Adaptive.Cap", &backoff.Adaptive{Cap: 20 * sec}, longOutage, 10 * sec, 20 * sec},
	{"Adaptive.Cap by default", &backoff.Adaptive{}, longOutage, 5 * sec, 10 * sec},
	{"Adaptive.OverloadCap", &backoff.Adaptive{OverloadCap: 20 * sec},
		backoff.History{N: 9, Elapsed: time.Hour, Verdict: overloaded}, 10 * sec, 20 * sec},
	{"Adaptive.OverloadCap by default", &backoff.Adaptive{},
		backoff.History{N: 9, Elapsed: time.Hour, Verdict: overloaded}, sec * 15 / 2, 15 * sec},
	{"Adaptive.RetryAfterShare", &backoff.Adaptive{RetryAfterShare: 0.5}, backoff.History{Verdict: asked}, 0, 20 * sec},
	{"Adaptive.RetryAfterShare by default", &backoff.Adaptive{}, backoff.History{Verdict: asked}, 0, 10 * sec},
	{"Adaptive.RetryAfterShare, the present time at most", &backoff.Adaptive{},
		backoff.History{RetryAfterFor: time.Hour, Verdict: asked}, 0, 40 * sec},
	{"Adaptive.HangShare, after a refusal beside a hang", &backoff.Adaptive{HangShare: 0.5},
		backoff.History{N: 9, Elapsed: time.Hour, Hang: 16 * sec}, 4 * sec, 8 * sec},

	{"First", backoff.First(3*sec, &backoff.Exponential{}), backoff.History{}, 0, 3 * sec},
}

// The limits on the handshake.
var handshakesDrawn = []drawn{
	{"Adaptive.Hang", &backoff.Adaptive{Hang: 6 * sec}, backoff.History{}, 5 * sec, 6 * sec},
	{"Adaptive.Hang by default", &backoff.Adaptive{}, backoff.History{}, 10*sec - 10*sec/6, 10 * sec},
	{"Adaptive.HangShare", &backoff.Adaptive{HangShare: 0.5}, backoff.History{Hang: time.Minute}, 25 * sec, 30 * sec},
	{"Adaptive.HangShare by default", &backoff.Adaptive{}, backoff.History{Hang: 10 * time.Minute}, 25 * sec, 30 * sec},
}

// slowDrawn are the least waits after n+1 verdicts in a row that are ClassSlow.
var slowDrawn = []struct {
	name      string
	wait      backoff.SlowWait
	n         int
	low, high time.Duration // the wait is drawn from [low, high)
}{
	{"SlowWait.Min", backoff.SlowWait{Min: 4 * sec}, 0, 2 * sec, 6 * sec},
	{"SlowWait.Min by default", backoff.SlowWait{}, 0, 5 * sec, 15 * sec},
	{"the second slow wait", backoff.SlowWait{}, 1, 6 * sec, 18 * sec},
	{"SlowWait.Max", backoff.SlowWait{Max: 12 * sec}, 9, 6 * sec, 18 * sec},
	{"SlowWait.Max by default", backoff.SlowWait{}, 99, time.Minute, 3 * time.Minute},
	{"SlowWait.Max by default, Min", backoff.SlowWait{Min: 4 * time.Minute}, 9, 2 * time.Minute, 6 * time.Minute},
}

// A draw may be the start of its range, and not the end.
func TestDrawsStayInTheirRange(t *testing.T) {
	check := func(d drawn, part func(backoff.Step) time.Duration) {
		least, _ := d.policy.Next(d.history, rand.New(constant(0)))
		most, _ := d.policy.Next(d.history, rand.New(highest))
		require.Equal(t, d.low, part(least), "%s: the least", d.name)
		require.Equal(t, d.high-1, part(most), "%s: the greatest", d.name)
	}
	for _, d := range waitsDrawn {
		check(d, func(s backoff.Step) time.Duration { return s.Wait })
	}
	for _, d := range handshakesDrawn {
		check(d, func(s backoff.Step) time.Duration { return s.Handshake })
	}
	for _, d := range slowDrawn {
		for source, want := range map[constant]time.Duration{0: d.low, highest: d.high - 1} {
			var outage schedule.Outage
			for range d.n + 1 {
				p := backoff.WithSlow(&backoff.Exponential{}, d.wait)
				outage.Next(p, backoff.Verdict{Class: backoff.ClassSlow}, start, rand.New(source))
			}
			require.Equal(t, want, outage.History().MinWait, d.name)
		}
	}
}

// limits are the limits on connecting, which are not drawn.
var limits = []struct {
	name   string
	policy backoff.Policy
	want   time.Duration
}{
	{"Adaptive.Connect", &backoff.Adaptive{Connect: 7 * sec}, 7 * sec},
	{"Adaptive.Connect by default", &backoff.Adaptive{}, 16 * sec},
}

func TestLimitsOnConnectingAreExact(t *testing.T) {
	for _, l := range limits {
		s, _ := l.policy.Next(backoff.History{}, seeded())
		require.Equal(t, l.want, s.Connect, l.name)
	}
}

// Limit gives up after its number of waits, and before a wait that would end too late.
func TestLimitIsExact(t *testing.T) {
	const attempts, elapsed = 3, time.Minute
	for k := attempts - 1; k <= attempts+1; k++ {
		_, ok := backoff.Limit(nil, attempts, 0).Next(backoff.History{N: k - 1}, seeded())
		require.Equal(t, k <= attempts, ok, "wait %d of %d", k, attempts)
	}
	for k := elapsed - 1; k <= elapsed+1; k++ {
		for name, a := range map[string]backoff.History{
			"a wait":               {Elapsed: k - sec},
			"a wait of MinWait":    {MinWait: k},
			"a wait of RetryAfter": {Verdict: backoff.Verdict{RetryAfter: k - sec}},
		} {
			p := backoff.Limit(&backoff.Exponential{Jitter: backoff.JitterNone}, 0, elapsed)
			_, ok := p.Next(a, seeded())
			require.Equal(t, k <= elapsed, ok, "%s that ends after %v", name, k)
		}
	}
}

// A server can ask for an hour, and not for a nanosecond more.
func TestMaxRetryAfterIsExact(t *testing.T) {
	for k := time.Hour - 1; k <= time.Hour+1; k++ {
		want := min(k, time.Hour)
		require.Equal(t, want, backoff.Classify(backoff.RetryAfter(io.EOF, k)).RetryAfter)
		require.Equal(t, want, backoff.Verdict{Class: backoff.ClassRetry, RetryAfter: k}.Bounded().RetryAfter)
	}
}

// A number in a Retry-After is a Unix time from 5e8 on, and one in milliseconds from 5e11 on.
func TestKindOfNumberInRetryAfterIsExact(t *testing.T) {
	for number, now := range map[int64]time.Time{
		5e8 - 1:  time.Unix(5e8-1-60, 0), // a minute as a Unix time
		5e8:      time.Unix(5e8-60, 0),
		5e11 - 1: time.Unix(5e11-1-60, 0),
		5e11:     time.Unix(5e8-60, 0),
	} {
		want := time.Minute
		if number < 5e8 {
			want = backoff.MaxRetryAfter
		}
		got, ok := backoff.ParseRetryAfter(fmt.Sprint(number), now)
		require.True(t, ok)
		require.Equal(t, want, got, "%d", number)
	}
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{
		"Exponential.": reflect.TypeFor[backoff.Exponential](),
		"Adaptive.":    reflect.TypeFor[backoff.Adaptive](),
		"SlowWait.":    reflect.TypeFor[backoff.SlowWait](),
		"OCPP.":        reflect.TypeFor[backoff.OCPP](),
		"Timeout.":     reflect.TypeFor[backoff.Timeout](),
	}
	require.Empty(t, numeric.WithoutRow(options, waitsDrawn, handshakesDrawn, slowDrawn, limits, timeouts))
}
