package schedule_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// The tests of Dials.Ended: how much a session counts, by how long it was ready.

// server answers each dial after connecting, and ends each session with verdict after ready.
// A negative ready refuses the dial.
type server struct {
	ready   time.Duration
	verdict backoff.Verdict
}

// walk runs a Dials before the server, and returns its waits within the given time.
func (s server) walk(o schedule.DialOptions, seed uint64, within time.Duration) (waits []time.Duration) {
	d := schedule.NewDials(o.WithDefaults(), rand.New(rand.NewPCG(seed, 1)))
	now := time.Unix(0, 0)
	end, lost := now.Add(within), now
	for d.Start(now); now.Before(end); {
		switch a := d.Next(now); {
		case a.Do == schedule.DoDial:
			waits = append(waits, now.Sub(lost))
			if s.ready < 0 {
				d.Failed(a.Which, s.verdict, now)
			} else {
				d.Answered(a.Which, now)
				d.Next(now)
				now = now.Add(s.ready)
				d.Ended(s.verdict, s.ready, now)
			}
			lost = now
		case a.Do == schedule.DoWait:
			now = a.At
		default:
			return waits // DoStop
		}
	}
	return waits
}

// tripled goes by the wait before: each is drawn from a second to three times that.
type tripled struct{}

func (tripled) Next(a backoff.History, r *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: backoff.Uniform(r, time.Second, min(3*max(a.Prev, time.Second), 30*time.Second))}, true
}

// soundPolicies are policies of all kinds.
var soundPolicies = map[string]backoff.Policy{
	"default":     nil,
	"exponential": &backoff.Exponential{Base: 100 * time.Millisecond, Cap: 5 * time.Second},
	"by the last": tripled{},
	"no jitter":   &backoff.Exponential{Jitter: backoff.JitterNone},
	"first":       backoff.First(time.Second, &backoff.Exponential{}),
	"at once":     backoff.First(0, &backoff.Exponential{}),
	"limit":       backoff.Limit(&backoff.Exponential{}, 20, 0),
	"elapsed":     backoff.Limit(nil, 0, 5*time.Minute),
}

// Promise 3: with every policy the waits are the same, to the nanosecond, whether a server
// refuses dials or accepts them and soon drops the session.
func TestASessionThatIsDroppedSoonEarnsNothing(t *testing.T) {
	verdict := backoff.Verdict{Class: backoff.ClassRetry}
	for name, policy := range soundPolicies {
		for _, stableAfter := range []time.Duration{0, -1, time.Hour} {
			o := schedule.DialOptions{Policy: policy, StableAfter: stableAfter}
			refused := server{-1, verdict}.walk(o, 1, 4*time.Hour)
			for _, ready := range []time.Duration{0, 100 * time.Millisecond, time.Second, schedule.BriefSession - 1} {
				waits := server{ready, verdict}.walk(o, 1, 4*time.Hour)
				require.Equal(t, refused[:min(len(refused), len(waits))], waits, "%s: %v", name, ready)
			}
		}
	}
}

// The same holds for a session that our side ended with NoCredit, if it was ready for less than an hour.
func TestASessionWithoutCreditEarnsNothing(t *testing.T) {
	for name, policy := range soundPolicies {
		o := schedule.DialOptions{Policy: policy}
		for _, class := range []backoff.Class{backoff.ClassRetry, backoff.ClassSlow} {
			refused := server{-1, backoff.Verdict{Class: class, Lenient: true}}.walk(o, 1, 4*time.Hour)
			for _, ready := range []time.Duration{5 * time.Second, time.Minute, time.Hour - 1} {
				waits := server{ready, backoff.Verdict{Class: class, Lenient: true, NoCredit: true}}.walk(o, 1, 4*time.Hour)
				require.Equal(t, refused[:min(len(refused), len(waits))], waits, "%s: %v", name, ready)
			}
		}
	}
}

func TestASessionWithoutCreditEndsTheOutageAfterAnHour(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	for range 2 {
		d.want(schedule.DoDial, 0)
		d.Failed(0, failed, d.now)
		d.after(5 * sec)
	}
	d.want(schedule.DoDial, 0)
	d.Answered(0, d.now)
	d.after(time.Hour)
	require.True(t, d.Ended(backoff.Verdict{Class: backoff.ClassRetry, NoCredit: true}, time.Hour, d.now))
	require.Zero(t, d.History().N)
}

// The figures of a server that is always there and drops each session after a time: dials per
// second in the second hour, with the default policy.
func TestAServerThatDropsSessionsIsDialedSeldom(t *testing.T) {
	const clients = 100
	for ready, most := range map[time.Duration]float64{0: 0.15, sec / 10: 0.15, sec / 2: 0.15, sec: 0.15, 3 * sec: 0.27} {
		dials := 0
		for seed := range uint64(clients) {
			s := server{ready, failed}
			dials += len(s.walk(schedule.DialOptions{}, seed, 2*time.Hour)) - len(s.walk(schedule.DialOptions{}, seed, time.Hour))
		}
		rate := float64(dials) / clients / time.Hour.Seconds()
		t.Logf("dropped after %v: %.3f dials/s", ready, rate)
		require.LessOrEqual(t, rate, most, ready)
	}
}

// 0.5 s is five times the first wait of this policy, which is at most 5 s later on.
func TestWaitsOfAShortPolicyGrowToo(t *testing.T) {
	o := schedule.DialOptions{Policy: &backoff.Exponential{Base: 100 * time.Millisecond, Cap: 5 * time.Second}}
	for seed := range uint64(100) {
		require.LessOrEqual(t, len(server{sec / 2, failed}.walk(o, seed, 20*sec)), 26)
	}
}

func TestASessionOfTwoSecondsMakesTheOutageYounger(t *testing.T) {
	for name, c := range map[string]struct {
		ready time.Duration
		n     int           // of the next wait
		age   time.Duration // of the outage, 20 s later
	}{
		"never ready": {-1, 8, 62 * sec},
		"brief":       {2*sec - 1, 8, 62 * sec},
		"2 s":         {2 * sec, 8, 34 * sec},
		"9 s":         {9 * sec, 8, 41 * sec},
		"stable":      {10 * sec, 0, 20 * sec},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, schedule.DialOptions{})
			d.want(schedule.DoDial, 0)
			for range 8 {
				d.Failed(0, failed, d.now)
				d.after(5 * sec)
				d.want(schedule.DoDial, 0)
			}
			d.after(2 * sec) // 42 s
			d.Answered(0, d.now)
			d.after(max(c.ready, 0))
			require.Equal(t, c.ready == 10*sec, d.Ended(failed, c.ready, d.now))
			require.Equal(t, c.n, d.History().N)
			d.after(20 * sec)
			d.want(schedule.DoDial, 0)
			d.Failed(0, failed, d.now)
			require.Equal(t, c.age, d.History().Elapsed)
		})
	}
}

// What a session of 2 s earns beyond the age of its outage puts the next one off, but no
// session adds to what another one has left.
func TestWhatASessionEarnsPutsTheNextOutageOff(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	for range 3 {
		d.want(schedule.DoDial, 0)
		d.Answered(0, d.now)
		d.after(2 * sec)
		require.False(t, d.Ended(failed, 2*sec, d.now))
		require.Zero(t, d.History().N)
		d.now = d.Due()
	}
	for i, age := range []time.Duration{0, 0, 0, 2 * sec, 12 * sec} { // 2, 12, 22, 32, 42 s after the loss
		d.want(schedule.DoDial, 0)
		d.Failed(0, failed, d.now)
		require.Equal(t, age, d.History().Elapsed, i)
		d.after(10 * sec)
	}
}

// StableAfter may be shorter than a brief session.
// lostAfter answers the next dial of d, and ends its session after ready.
func lostAfter(d *schedule.Dials, now *time.Time, ready time.Duration) (stable bool) {
	a := d.Next(*now)
	for ; a.Do == schedule.DoWait; a = d.Next(*now) {
		*now = a.At
	}
	d.Answered(a.Which, *now)
	d.Next(*now)
	*now = now.Add(ready)
	return d.Ended(backoff.Verdict{Class: backoff.ClassRetry}, ready, *now)
}

// After a wait of a minute half a minute is not much.
func TestASessionIsStableOnlyIfItIsAsLongAsTheWaitBeforeIt(t *testing.T) {
	p, now := &seen{step: backoff.Step{Wait: time.Minute}}, start
	d := schedule.NewDials((&schedule.DialOptions{Policy: p}).WithDefaults(), seeded())
	d.Start(now)
	require.True(t, lostAfter(&d, &now, 30*time.Second), "there was no wait before the first dial")
	require.False(t, lostAfter(&d, &now, time.Minute-1))
	require.True(t, lostAfter(&d, &now, time.Minute))
}

// When the credit of a session ends an outage, the policy gets no more numbers of that outage.
func TestAnOutageThatASessionHasEndedIsForgotten(t *testing.T) {
	p, now := new(seen), start
	d := schedule.NewDials((&schedule.DialOptions{Policy: p}).WithDefaults(), seeded())
	d.Start(now)
	d.Failed(d.Next(now).Which, backoff.Verdict{Class: backoff.ClassOverload, Refused: true}, now)
	require.True(t, d.History().Refused)
	require.False(t, lostAfter(&d, &now, 3*time.Second))
	require.Equal(t, backoff.History{Verdict: verdict(backoff.ClassRetry)}, d.History())
}

// So do the numbers of a handshake that hung.
func TestAHangThatASessionHasEndedIsForgotten(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.hang()
	require.True(t, d.History().Hung)
	d.Answered(0, d.now)
	d.after(3 * sec)
	require.False(t, d.Ended(failed, 3*sec, d.now))
	require.Equal(t, backoff.History{Verdict: failed}, d.History())
}

// The dial that was answered is over, also if nobody calls Next before the session ends.
func TestASessionThatEndsAtOnceLeavesNoDialBehind(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{Policy: &seen{step: backoff.Step{Wait: time.Minute}}})
	d.want(schedule.DoDial, 0)
	d.Connected(0, d.now)
	d.Answered(0, d.now)
	d.Ended(failed, 0, d.now)
	d.wait(time.Minute)
	d.want(schedule.DoDial, 0)
}

// A session of the greatest slow wait ends the row of slow waits; without credit one of an hour does.
func TestALongSessionEndsTheRowOfSlowWaits(t *testing.T) {
	for _, c := range []struct {
		ready    time.Duration
		noCredit bool
		ends     bool
	}{
		{2*time.Minute - 1, false, false}, {2 * time.Minute, false, true}, {time.Hour, false, true},
		{2 * time.Minute, true, false}, {time.Hour - 1, true, false}, {time.Hour, true, true},
	} {
		d := newDesk(t, schedule.DialOptions{StableAfter: 2 * time.Hour})
		for range 30 {
			d.now = d.Due()
			d.want(schedule.DoDial, 0)
			d.Failed(0, backoff.Verdict{Class: backoff.ClassSlow}, d.now)
		}
		d.now = d.Due()
		d.want(schedule.DoDial, 0)
		d.Answered(0, d.now)
		d.after(c.ready)
		d.Ended(backoff.Verdict{Class: backoff.ClassSlow, NoCredit: c.noCredit}, c.ready, d.now)
		require.Equal(t, c.ends, d.History().MinWait < 20*sec, "%+v: %v", c, d.History().MinWait)
	}
}

func TestAnyTimeMayBeEnough(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{StableAfter: 1})
	d.want(schedule.DoDial, 0)
	d.Answered(0, d.now)
	d.after(1)
	require.True(t, d.Ended(failed, 1, d.now))
}

// A session that was ready for a moment does not end a row of equal verdicts.
func TestAShortSessionDoesNotEndARow(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	for n := range 3 {
		d.want(schedule.DoDial, 0)
		d.Answered(0, d.now)
		d.after(sec)
		d.Ended(backoff.Verdict{Class: backoff.ClassSlow, Lenient: true}, sec, d.now)
		want := backoff.ClassSlow
		if n == 0 {
			want = backoff.ClassRetry
		}
		require.Equal(t, want, d.History().Verdict.Class)
		require.Equal(t, n+1, d.Attempts())
		d.now = d.Due()
	}
}
