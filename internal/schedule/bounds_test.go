package schedule_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/numeric"
	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// timeBound is a time that an option sets, or that the documentation names.
type timeBound struct {
	name string
	n    time.Duration
	at   bool // it happens at n itself

	// happens reports whether it happens with k.
	happens func(t *testing.T, n, k time.Duration) bool
}

var timeBounds = []timeBound{
	{"DialOptions.StableAfter", 5 * sec, true, func(t *testing.T, n, k time.Duration) bool {
		return served(t, schedule.DialOptions{StableAfter: n}, failed, k)
	}},
	{"DialOptions.StableAfter by default", 10 * sec, true, func(t *testing.T, _, k time.Duration) bool {
		return served(t, schedule.DialOptions{}, failed, k)
	}},
	{"DialOptions.StableAfter if negative", schedule.BriefSession, true, func(t *testing.T, _, k time.Duration) bool {
		return served(t, schedule.DialOptions{StableAfter: -1}, failed, k)
	}},
	{"DialOptions.StableAfter, or the wait before", 20 * sec, true, func(t *testing.T, n, k time.Duration) bool {
		d := newDesk(t, schedule.DialOptions{Policy: &backoff.Exponential{Base: n, Jitter: backoff.JitterNone}})
		d.want(schedule.DoDial, 0)
		d.Failed(0, failed, d.now)
		d.wait(n)
		return d.serve(failed, k)
	}},
	{"session without credit", time.Hour, true, func(t *testing.T, _, k time.Duration) bool {
		return served(t, schedule.DialOptions{}, backoff.Verdict{Class: backoff.ClassRetry, NoCredit: true}, k)
	}},
	{"session that ends a row of ClassSlow", 4 * time.Minute, true, func(t *testing.T, n, k time.Duration) bool {
		return endsSlows(t, n, backoff.Verdict{Class: backoff.ClassSlow}, k)
	}},
	{"session without credit that ends a row of ClassSlow", time.Hour, true,
		func(t *testing.T, _, k time.Duration) bool {
			return endsSlows(t, 4*time.Minute, backoff.Verdict{Class: backoff.ClassSlow, NoCredit: true}, k)
		}},
	{"session that earns a credit", schedule.BriefSession, true, func(t *testing.T, _, k time.Duration) bool {
		d := newDesk(t, schedule.DialOptions{})
		d.want(schedule.DoDial, 0)
		d.Failed(0, failed, d.now)
		d.wait(2 * sec)
		d.want(schedule.DoDial, 0)
		d.serve(failed, k)
		return d.History().N == 0
	}},
	{"DialOptions.Credit", 40 * sec, false, func(t *testing.T, n, k time.Duration) bool {
		return earns(t, schedule.DialOptions{Credit: n}, k)
	}},
	{"DialOptions.Credit by default", 30 * sec, false, func(t *testing.T, _, k time.Duration) bool {
		return earns(t, schedule.DialOptions{}, k)
	}},
	{"DialOptions.Keep", time.Minute, true, func(t *testing.T, n, k time.Duration) bool {
		return cutsKept(t, schedule.DialOptions{Keep: n}, k)
	}},
	{"DialOptions.Keep by default", 6 * time.Hour, true, func(t *testing.T, _, k time.Duration) bool {
		return cutsKept(t, schedule.DialOptions{}, k)
	}},
	{"connecting that shows a full backlog", sec, true, func(t *testing.T, _, k time.Duration) bool {
		d := newDesk(t, schedule.DialOptions{Policy: fixed{ifFull: true}})
		d.kept(0)
		d.quick(1)
		d.want(schedule.DoDial, 1)
		d.after(k)
		d.Connected(1, d.now)
		d.wait(10 * sec)
		return d.cuts(0)
	}},
	{"handshake for which the policy has no limit", 10 * sec, true, func(t *testing.T, _, k time.Duration) bool {
		return hangsAfter(t, schedule.DialOptions{Policy: &seen{}}, schedule.DoKeep, k)
	}},
	{"handshake for which the policy has no limit, with OneConnection", 30 * sec, true,
		func(t *testing.T, _, k time.Duration) bool {
			return hangsAfter(t, schedule.DialOptions{Policy: &seen{}, OneConnection: true}, schedule.DoCut, k)
		}},
}

// What happens from a time on does not happen a nanosecond before that.
func TestTimesAreExact(t *testing.T) {
	for _, b := range timeBounds {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				want := k > b.n || k == b.n && b.at
				require.Equal(t, want, b.happens(t, b.n, k), "%v of %v", k, b.n)
			}
		})
	}
}

// serve answers the dial in progress, ends its session after ready, and reports whether that was stable.
func (d *desk) serve(v backoff.Verdict, ready time.Duration) (stable bool) {
	d.Answered(0, d.now)
	d.Next(d.now)
	d.after(ready)
	return d.Ended(v, ready, d.now)
}

// served reports whether the first session was stable, which was ready for k.
func served(t *testing.T, o schedule.DialOptions, v backoff.Verdict, k time.Duration) bool {
	d := newDesk(t, o)
	d.want(schedule.DoDial, 0)
	return d.serve(v, k)
}

// endsSlows reports whether a session that was ready for k ends a row of ClassSlow with this Max.
func endsSlows(t *testing.T, most time.Duration, v backoff.Verdict, k time.Duration) bool {
	const first = 8 * sec
	p := backoff.WithSlow(fixed{}, backoff.SlowWait{Min: first, Max: most})
	o := (&schedule.DialOptions{Policy: p}).WithDefaults()
	d := &desk{Dials: schedule.NewDials(o, rand.New(constant(0))), t: t, now: start}
	d.Start(d.now)
	d.want(schedule.DoDial, 0)
	d.Failed(0, v, d.now)
	d.wait(first / 2)
	d.serve(v, k)
	return d.History().MinWait == first/2 // else it has grown
}

// earns reports whether a session of 5 s, which is not stable, leaves something of an outage of this age.
func earns(t *testing.T, o schedule.DialOptions, age time.Duration) (left bool) {
	const ready = 5 * sec
	d := newDesk(t, o)
	d.want(schedule.DoDial, 0)
	d.after(age - ready - 2*sec)
	d.Failed(0, failed, d.now)
	d.wait(2 * sec)
	d.want(schedule.DoDial, 0)
	d.serve(failed, ready)
	return d.History().N > 0
}

// cutsKept reports whether a handshake that hangs is cut k after it began.
func cutsKept(t *testing.T, o schedule.DialOptions, k time.Duration) bool {
	d := newDesk(t, o)
	d.hang()
	d.want(schedule.DoDial, 1)
	d.after(k - 10*sec)
	return d.cuts(0)
}

// cuts reports whether a dial is to be cut now.
func (d *desk) cuts(which int) bool {
	a := d.Next(d.now)
	return a.Do == schedule.DoCut && a.Which == which
}

// hangsAfter reports whether the first handshake hangs k after it began.
func hangsAfter(t *testing.T, o schedule.DialOptions, do schedule.Do, k time.Duration) bool {
	d := newDesk(t, o)
	d.want(schedule.DoDial, 0)
	d.Connected(0, d.now)
	d.after(k)
	return d.Next(d.now).Do == do
}

// From the eleventh wait of an outage on, 10 ms are added to a wait that is shorter.
func TestShortestWaitIsExact(t *testing.T) {
	const shortest = 10 * time.Millisecond
	for n := 10; n <= 12; n++ {
		for wait := shortest - 1; wait <= shortest+1; wait++ {
			d := newDesk(t, schedule.DialOptions{Policy: &seen{step: backoff.Step{Wait: wait}}})
			for range n - 1 {
				d.want(schedule.DoDial, 0)
				d.Failed(0, failed, d.now)
				d.after(sec)
			}
			d.want(schedule.DoDial, 0)
			d.Failed(0, failed, d.now)
			want := wait
			if n > 10 && wait < shortest {
				want += shortest
			}
			require.Equal(t, want, d.Due().Sub(d.now), "wait %d of %v", n, wait)
		}
	}
}

// drawn are the waits that are drawn.
var drawn = []struct {
	name string
	high time.Duration // the wait is drawn from [0, high)
	wait func(source rand.Source) time.Duration
}{
	{"DialOptions.StartSpread", 3 * sec, func(source rand.Source) time.Duration {
		o := &schedule.DialOptions{StartSpread: 3 * sec}
		d := schedule.NewDials(o.WithDefaults(), rand.New(source))
		d.Start(start)
		return d.Due().Sub(start)
	}},
	{"RefreshSpread", schedule.RefreshSpread, func(source rand.Source) time.Duration {
		var o schedule.Outage
		s, _ := o.Next(fixed{}, backoff.Verdict{Class: backoff.ClassRefresh}, start, rand.New(source))
		return s.Wait
	}},
}

// A draw may be the start of its range, and not the end.
func TestDrawsStayInTheirRange(t *testing.T) {
	for _, d := range drawn {
		require.Equal(t, time.Duration(0), d.wait(constant(0)), d.name)
		require.Equal(t, d.high-1, d.wait(highest), d.name)
	}
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{
		"DialOptions.": reflect.TypeFor[schedule.DialOptions](),
	}
	require.Empty(t, numeric.WithoutRow(options, timeBounds, drawn))
}
