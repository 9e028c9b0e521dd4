package schedule_test

import (
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

const sec = time.Second

// fixed is a policy that waits 2 s, lets a handshake hang after 10 s, and may swap.
type fixed struct{ swap, ifFull bool }

func (p fixed) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	wait := 2 * sec
	if a.Hung {
		wait = 0
	}
	return backoff.Step{Wait: wait, Connect: 5 * sec, Handshake: 10 * sec, Swap: p.swap && a.Hang > 0 && a.DialsBeside == 0, SwapIfFull: p.ifFull}, true
}

// desk is a Dials and its time.
type desk struct {
	schedule.Dials
	t   *testing.T
	now time.Time
}

func newDesk(t *testing.T, o schedule.DialOptions) *desk {
	if o.Policy == nil {
		o.Policy = fixed{}
	}
	d := &desk{Dials: schedule.NewDials(o.WithDefaults(), seeded()), t: t, now: time.Unix(0, 0)}
	d.Start(d.now)
	return d
}

// want asserts what is to be done next.
func (d *desk) want(do schedule.Do, which int) {
	d.t.Helper()
	a := d.Next(d.now)
	require.Equal(d.t, []int{int(do), which}, []int{int(a.Do), a.Which}, "action, dial")
}

// wait asserts that nothing is to be done for that long, and lets it pass.
func (d *desk) wait(long time.Duration) {
	d.t.Helper()
	a := d.Next(d.now)
	require.Equal(d.t, schedule.DoWait, a.Do)
	require.Equal(d.t, long, a.At.Sub(d.now))
	d.now = a.At
}

// idle asserts that nothing is to be done until something happens.
func (d *desk) idle() {
	d.t.Helper()
	require.Equal(d.t, schedule.Action{}, d.Next(d.now))
}

func (d *desk) after(long time.Duration) { d.now = d.now.Add(long) }

// hang begins a dial whose handshake hangs, and that is kept.
func (d *desk) hang() {
	d.t.Helper()
	d.want(schedule.DoDial, 0)
	d.after(sec)
	d.Connected(0, d.now)
	d.wait(10 * sec)
	d.want(schedule.DoKeep, 0)
}

var (
	failed  = backoff.Verdict{Class: backoff.ClassRetry}
	refused = backoff.Verdict{Class: backoff.ClassRetry, Refused: true}
)

func TestADialThatIsNotConnectedDoesNotHang(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.want(schedule.DoDial, 0)
	d.idle()
	d.after(time.Hour)
	d.idle()
	d.Failed(0, failed, d.now)
	d.wait(2 * sec)
	d.want(schedule.DoDial, 0)
}

func TestAHandshakeThatHangsIsKeptAndAnotherBeginsBesideIt(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.hang()
	d.want(schedule.DoDial, 1)
	d.idleUntilKeep()
	d.Connected(1, d.now)
	d.wait(10 * sec)
	d.want(schedule.DoCut, 1) // never a third
	d.want(schedule.DoDial, 1)
	d.Failed(1, failed, d.now)
	d.wait(2 * sec)
	d.want(schedule.DoDial, 1)
	d.Connected(1, d.now)
	d.Answered(0, d.now)
	d.want(schedule.DoCut, 1)
	d.idle()
}

// idleUntilKeep asserts that nothing is due before the kept handshake has been kept for
// as long as it may be.
func (d *desk) idleUntilKeep() {
	d.t.Helper()
	a := d.Next(d.now)
	require.Equal(d.t, schedule.DoWait, a.Do)
	require.Greater(d.t, a.At.Sub(d.now), time.Hour)
}

func TestTheFirstDialBesideMayTakeThePlace(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{Policy: fixed{swap: true}})
	d.hang()
	d.want(schedule.DoDial, 1)
	d.Connected(1, d.now)
	d.wait(10 * sec)
	d.want(schedule.DoCut, 0)
	d.want(schedule.DoKeep, 1) // which has not been kept until now
	d.want(schedule.DoDial, 0)
	d.Connected(0, d.now)
	d.wait(10 * sec)
	d.want(schedule.DoCut, 0) // the second beside does not
	d.want(schedule.DoDial, 0)
	d.Answered(0, d.now)
	d.want(schedule.DoCut, 1)
}

// quick begins a dial beside the kept one that is connected at once, and hangs.
func (d *desk) quick(which int) {
	d.t.Helper()
	d.want(schedule.DoDial, which)
	d.Connected(which, d.now)
	d.wait(10 * sec)
	d.want(schedule.DoCut, which)
}

// kept begins a dial whose handshake hangs, and that is kept. It was connected after so long.
func (d *desk) kept(after time.Duration) {
	d.t.Helper()
	d.want(schedule.DoDial, 0)
	d.after(after)
	d.Connected(0, d.now)
	d.wait(10 * sec)
	d.want(schedule.DoKeep, 0)
}

func TestADialThatFindsTheBacklogFullTakesThePlace(t *testing.T) {
	for name, find := range map[string]func(d *desk){
		"connected after a second": func(d *desk) { d.after(sec) },
		"after one that was not connected": func(d *desk) {
			d.Failed(1, failed, d.now)
			d.wait(2 * sec)
			d.want(schedule.DoDial, 1)
		},
		"after one that was reset": func(d *desk) {
			d.Connected(1, d.now)
			d.Failed(1, refused, d.now)
			d.wait(2 * sec)
			d.want(schedule.DoDial, 1)
		},
		"after a wait at a gate": func(d *desk) {
			d.after(time.Minute)
			d.Began(1, d.now)
			d.after(sec)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, schedule.DialOptions{Policy: fixed{ifFull: true}})
			d.kept(0)
			d.quick(1)
			d.want(schedule.DoDial, 1)
			find(d)
			d.Connected(1, d.now)
			d.wait(10 * sec)
			d.want(schedule.DoCut, 0)
			d.want(schedule.DoKeep, 1)

			d.want(schedule.DoDial, 0) // a second one does not, because the kept one is late as well
			d.after(sec)
			d.Connected(0, d.now)
			d.wait(10 * sec)
			d.want(schedule.DoCut, 0)
			d.want(schedule.DoDial, 0)
		})
	}
}

func TestADialThatDoesNotFindTheBacklogFullDoesNotTakeThePlace(t *testing.T) {
	for name, c := range map[string]struct {
		ifFull bool
		first  time.Duration // until the first dial of all is connected
		find   func(d *desk)
	}{
		"connected in less than a second": {true, 0, func(d *desk) { d.after(sec - 1) }},
		"after a long wait at a gate": {true, 0, func(d *desk) {
			d.after(time.Minute)
			d.Began(1, d.now)
		}},
		"after a 503": {true, 0, func(d *desk) {
			d.Connected(1, d.now)
			d.Failed(1, backoff.Verdict{Class: backoff.ClassOverload}, d.now)
			d.wait(2 * sec)
			d.want(schedule.DoDial, 1)
		}},
		"each dial takes a second": {true, sec, func(d *desk) { d.after(sec) }},
		"the policy does not swap": {false, 0, func(d *desk) { d.after(sec) }},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, schedule.DialOptions{Policy: fixed{ifFull: c.ifFull}})
			d.kept(c.first)
			d.want(schedule.DoDial, 1)
			c.find(d)
			d.Connected(1, d.now)
			d.wait(10 * sec)
			d.want(schedule.DoCut, 1)
			d.want(schedule.DoDial, 1)
		})
	}
}

func TestOneConnectionGivesAHandshakeUp(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{OneConnection: true})
	d.want(schedule.DoDial, 0)
	d.Connected(0, d.now)
	d.wait(30 * sec) // no step was drawn for the first: DefaultHandshake
	d.want(schedule.DoCut, 0)
	require.Equal(t, 30*sec, d.History().Hang)
	d.want(schedule.DoDial, 0)
	d.Connected(0, d.now)
	d.Kick(d.now)
	d.wait(10 * sec)
	d.want(schedule.DoCut, 0)
	require.Equal(t, 40*sec, d.History().Hang, "since the first of them")
	d.want(schedule.DoDial, 0)
}

func TestAHandshakeIsNotKeptForEver(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{Keep: time.Minute})
	d.hang()
	d.want(schedule.DoDial, 1)
	d.wait(50 * sec) // since it began
	d.want(schedule.DoCut, 0)
	d.Connected(1, d.now)
	d.wait(10 * sec)
	d.want(schedule.DoKeep, 1)
	d.want(schedule.DoDial, 0)
}

// The dial beside was taken back at its gate, and the one that is kept is not answered for as long as it may be.
func TestAKeptHandshakeThatEndsAloneIsFollowedByADial(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{Keep: time.Minute})
	d.hang()
	d.want(schedule.DoDial, 1)
	d.Withdrawn(1, d.now)
	d.wait(50 * sec)
	d.want(schedule.DoCut, 0)
	d.want(schedule.DoDial, 0)
}

func TestAKeptHandshakeThatFailsLeavesTheOther(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.hang()
	d.want(schedule.DoDial, 1)
	d.Failed(0, backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Minute}, d.now)
	d.idle()
	d.Failed(1, failed, d.now)
	d.wait(time.Minute + 2*sec) // what either answer asked for holds
	d.want(schedule.DoDial, 0)
}

func TestAKickBeginsAnotherDialBeside(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.want(schedule.DoDial, 0)
	require.True(t, d.Kick(d.now))
	a := d.Next(d.now)
	require.Equal(t, schedule.Action{Do: schedule.DoKeep, Kicked: true}, a)
	d.want(schedule.DoDial, 1)
	require.True(t, d.Kick(d.now))
	d.idle()
	d.Failed(1, failed, d.now)
	d.want(schedule.DoDial, 1) // the wait was cut
}

func TestAKickCutsOneWaitAndNotWhatAServerAskedFor(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.want(schedule.DoDial, 0)
	d.Failed(0, failed, d.now)
	require.True(t, d.Kick(d.now))
	d.want(schedule.DoDial, 0)
	d.Failed(0, backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Minute}, d.now)
	require.False(t, d.Kick(d.now))
	d.wait(62 * sec)
	d.want(schedule.DoDial, 0)
	d.Answered(0, d.now)
	require.False(t, d.Kick(d.now))
}

func TestThePolicyHearsOfAHang(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.hang()
	a := d.History()
	require.Equal(t, []any{true, 10 * sec, 0, false}, []any{a.Hung, a.Hang, a.DialsBeside, a.Refused})
	d.want(schedule.DoDial, 1)
	d.after(3 * sec)
	d.Failed(1, refused, d.now)
	a = d.History()
	require.Equal(t, []any{false, 13 * sec, 1, true}, []any{a.Hung, a.Hang, a.DialsBeside, a.Refused})
	d.wait(2 * sec)
	d.want(schedule.DoDial, 1)
	d.Answered(1, d.now)
	d.want(schedule.DoCut, 0)
	d.after(time.Hour)
	d.Ended(failed, time.Hour, d.now)
	a = d.History()
	require.Equal(t, []any{false, time.Duration(0), 0, false}, []any{a.Hung, a.Hang, a.DialsBeside, a.Refused})
}

func TestStopCutsWhatIsKept(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.hang()
	d.want(schedule.DoDial, 1)
	require.False(t, d.Stopped())
	d.Failed(1, backoff.Verdict{Class: backoff.ClassStop}, d.now)
	require.True(t, d.Stopped())
	d.want(schedule.DoCut, 0)
	d.want(schedule.DoStop, 0)
	require.False(t, d.GaveUp())
}

func TestAPolicyThatGivesUpStops(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{Policy: backoff.Limit(fixed{}, 1, 0)})
	for range 2 {
		d.want(schedule.DoDial, 0)
		d.Failed(0, failed, d.now)
		d.after(2 * sec)
	}
	d.want(schedule.DoStop, 0)
	require.True(t, d.GaveUp())
	require.Equal(t, 2, d.Attempts())
}

func TestTheFirstDialOfManyIsSpread(t *testing.T) {
	const n = 10_000
	most, bins := 0, map[time.Duration]int{}
	r := seeded()
	for range n {
		d := schedule.NewDials((&schedule.DialOptions{StartSpread: 2 * sec}).WithDefaults(), r)
		d.Start(time.Unix(0, 0))
		bin := d.Next(time.Unix(0, 0)).At.Sub(time.Unix(0, 0)) / (100 * time.Millisecond)
		bins[bin]++
		most = max(most, bins[bin])
	}
	require.LessOrEqual(t, most, n/16)
}

// Whatever happens, there are never three dials, none while a session lasts, and none
// before the time is over that a server asked for.
func TestDialsNeverDoTooMuch(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		o := (&schedule.DialOptions{OneConnection: seed%2 == 0, Keep: time.Duration(1+r.IntN(100)) * sec}).WithDefaults()
		d, now := schedule.NewDials(o, r), time.Unix(0, 0)
		d.Start(now)
		var under, out [2]bool // out: not at a gate any more
		var hold time.Time
		up, stopped := false, false
		for step := 0; step < 300 && !stopped; step++ {
			acting := true
			for range 10 {
				a := d.Next(now)
				switch a.Do {
				case schedule.DoDial:
					require.False(t, under[a.Which] || up || now.Before(hold), "seed %d, step %d", seed, step)
					require.False(t, o.OneConnection && (under[0] || under[1]))
					under[a.Which], out[a.Which] = true, false
				case schedule.DoCut:
					require.True(t, under[a.Which])
					under[a.Which] = false
				case schedule.DoKeep:
					require.True(t, under[a.Which])
					require.False(t, o.OneConnection)
					out[a.Which] = true
				case schedule.DoWait:
					acting = false
					require.False(t, a.At.IsZero() && !under[0] && !under[1] && !up, "nothing would ever happen")
					if !a.At.IsZero() && r.IntN(2) == 0 {
						require.True(t, a.At.After(now))
						now = a.At
						acting = true
					}
				}
				if !acting {
					break
				}
			}
			now = now.Add(time.Duration(r.Int64N(int64(4 * sec))))
			which := r.IntN(2)
			v := backoff.Verdict{Class: backoff.Class(1 + r.IntN(4)), Refused: r.IntN(2) == 0}
			if r.IntN(8) == 0 {
				v.RetryAfter = time.Duration(r.IntN(30)) * sec
			}
			switch event := r.IntN(6); {
			case up:
				up = false
				d.Ended(v, time.Duration(r.Int64N(int64(20*sec)))-sec, now)
				hold = latest(hold, now.Add(v.RetryAfter))
			case event == 0:
				d.Kick(now)
			case !under[which]:
			case event == 1:
				under[which], up, hold = false, true, time.Time{}
				d.Answered(which, now)
			case event < 4:
				d.Connected(which, now)
				out[which] = true
			default:
				under[which] = false
				if other := 1 - which; v.RetryAfter > 0 && under[other] && !out[other] {
					d.Withdrawn(other, now)
					under[other] = false
				}
				d.Failed(which, v, now)
				hold = latest(hold, now.Add(v.RetryAfter))
			}
		}
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// A kept handshake that is answered 410 ends it all, though another dial is under way.
func TestAKeptHandshakeMayStopItAll(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.hang()
	d.want(schedule.DoDial, 1)
	d.Failed(0, backoff.Verdict{Class: backoff.ClassStop}, d.now)
	d.want(schedule.DoCut, 1)
	d.want(schedule.DoStop, 0)
}

func TestAKickIsNoFailure(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{Policy: backoff.Limit(fixed{}, 1, 0)})
	d.want(schedule.DoDial, 0)
	d.Failed(0, failed, d.now)
	d.wait(2 * sec)
	d.want(schedule.DoDial, 0) // the last
	before := d.History()
	d.Kick(d.now)
	d.want(schedule.DoKeep, 0)
	d.want(schedule.DoDial, 1)
	require.Equal(t, before, d.History())
}

// What one answer asked for is forgotten when another dial was answered.
func TestASessionEndsWhatAServerAskedFor(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.hang()
	d.want(schedule.DoDial, 1)
	d.Failed(0, backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Hour}, d.now)
	d.Answered(1, d.now)
	d.after(10 * time.Minute)
	d.Ended(failed, 10*time.Minute, d.now)
	d.wait(2 * sec)
	d.want(schedule.DoDial, 0)
}

// Clients that get the same Retry-After while they wait do not come in step.
func TestARetryAfterDuringAWaitIsJittered(t *testing.T) {
	at := map[time.Duration]bool{}
	for seed := range uint64(100) {
		d := schedule.NewDials(nil, rand.New(rand.NewPCG(seed, 1)))
		now := time.Unix(0, 0)
		d.Start(now)
		require.Equal(t, schedule.DoDial, d.Next(now).Do)
		d.Connected(0, now)
		now = now.Add(10 * sec)
		require.Equal(t, schedule.DoKeep, d.Next(now).Do)
		require.Equal(t, schedule.DoDial, d.Next(now).Do)
		d.Failed(1, failed, now)
		d.Failed(0, backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Minute}, now)
		a := d.Next(now)
		require.GreaterOrEqual(t, a.At.Sub(now), time.Minute)
		at[a.At.Sub(now)] = true
	}
	require.Len(t, at, 100)
}

// A dial that has not passed the gate is held back by what the other one was told.
func TestAWithdrawnDialBeginsAnewWhenTheServerSaid(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.hang()
	d.want(schedule.DoDial, 1)
	d.after(sec)
	d.Withdrawn(1, d.now)
	d.Failed(0, backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Minute}, d.now)
	require.Equal(t, 1, d.Attempts())
	d.wait(62 * sec)
	a := d.Next(d.now)
	require.Equal(t, []int{int(schedule.DoDial), 2}, []int{int(a.Do), a.Attempt.Number})
	d.idle()
}

// New credentials are made for the dial beside one that hangs with the new ones, too.
func TestADialBesideAsksForNewCredentialsAsWell(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.want(schedule.DoDial, 0)
	d.Failed(0, backoff.Verdict{Class: backoff.ClassRefresh}, d.now)
	d.now = d.Due()
	require.True(t, d.Next(d.now).Attempt.Refresh)
	d.Connected(0, d.now)
	d.wait(10 * sec)
	d.want(schedule.DoKeep, 0)
	require.True(t, d.Next(d.now).Attempt.Refresh)
	d.Failed(1, failed, d.now)
	d.now = d.Due()
	require.False(t, d.Next(d.now).Attempt.Refresh)
}

// The limits on the first dial of all are those of the policy, whatever is around it.
func TestTheFirstDialHasTheLimitsOfThePolicy(t *testing.T) {
	inside := &backoff.Adaptive{Hang: 3 * sec, Connect: 5 * sec}
	timeout := func(d time.Duration) backoff.Timeout { return backoff.Timeout{Base: d} }
	for name, c := range map[string]struct {
		policy             backoff.Policy
		connect, handshake time.Duration // the least
	}{
		"alone":   {inside, 5 * sec, 2500 * time.Millisecond},
		"limited": {backoff.Limit(inside, 10, 0), 5 * sec, 2500 * time.Millisecond},
		"spread":  {backoff.First(sec, inside), 5 * sec, 2500 * time.Millisecond},
		"timeouts": {
			backoff.WithTimeouts(backoff.Limit(fixed{}, 10, 0), timeout(7*sec), timeout(8*sec)), 7 * sec, 8 * sec,
		},
		"partly": {backoff.WithTimeouts(inside, timeout(-1), timeout(8*sec)), 5 * sec, 8 * sec},
		"none":   {fixed{}, 0, 0},
	} {
		d := newDesk(t, schedule.DialOptions{Policy: c.policy})
		a := d.Next(d.now)
		require.Equal(t, schedule.DoDial, a.Do, name)
		require.Equal(t, c.connect, a.Attempt.Connect, name)
		require.GreaterOrEqual(t, a.Attempt.Handshake, c.handshake, name)
		require.LessOrEqual(t, a.Attempt.Handshake, c.handshake*6/5, name)
	}
}

// A session may last for long, so a Dials holds little meanwhile. Its outage goes on after a
// session that was not stable.
func TestWhatASearchKnewIsDroppedInASession(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.want(schedule.DoDial, 0)
	d.Failed(0, backoff.Verdict{Class: backoff.ClassOverload}, d.now)
	require.Equal(t, backoff.ClassOverload, d.History().Verdict.Class)
	d.wait(2 * sec)
	d.want(schedule.DoDial, 0)
	d.Answered(0, d.now)
	d.idle()
	require.Zero(t, d.History())
	require.Zero(t, d.Due())
	require.LessOrEqual(t, unsafe.Sizeof(d.Dials), uintptr(136))
	d.Began(1, d.now) // too late to matter
	d.Connected(0, d.now)
	require.False(t, d.Kick(d.now))
	d.idle()
	require.False(t, d.Ended(failed, 0, d.now))
	require.Equal(t, 1, d.History().Overloads)
	require.Equal(t, 1, d.History().N)
	d.wait(2 * sec)
	d.want(schedule.DoDial, 0)
}

func TestAfterTenWaitsNoneIsShorterThan10Milliseconds(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{Policy: &backoff.Exponential{Base: -1}})
	fail := func(wait time.Duration) {
		t.Helper()
		d.want(schedule.DoDial, 0)
		d.Failed(0, failed, d.now)
		if wait > 0 {
			d.wait(wait)
		}
	}
	for range 10 {
		fail(0)
	}
	for range 20 {
		fail(10 * time.Millisecond)
		require.Zero(t, d.History().Prev, "what the policy drew")
	}
	d.want(schedule.DoDial, 0) // a session that is long enough begins the outage again
	d.Answered(0, d.now)
	d.after(time.Minute)
	require.True(t, d.Ended(failed, time.Minute, d.now))
	for range 9 {
		fail(0)
	}
	fail(10 * time.Millisecond)
}

// A longer wait stays as the policy has drawn it.
func TestAWaitOf10MillisecondsIsNotShort(t *testing.T) {
	long := &backoff.Exponential{Base: 10 * time.Millisecond, Factor: 1, Jitter: backoff.JitterNone}
	d := newDesk(t, schedule.DialOptions{Policy: long})
	for range 20 {
		d.want(schedule.DoDial, 0)
		d.Failed(0, failed, d.now)
		d.wait(10 * time.Millisecond)
	}
}

// No login is left for a dial that has passed the gate.
func TestAWithdrawnDialThatWasAloneMayBeginAnew(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.want(schedule.DoDial, 0)
	d.idle()
	d.after(sec)
	d.Withdrawn(0, d.now)
	require.Zero(t, d.Attempts())
	require.Equal(t, d.now, d.Due())
	d.want(schedule.DoDial, 0)
	require.Equal(t, 1, d.Attempts())
}

func TestEachOptionHasItsDefault(t *testing.T) {
	want := &schedule.DialOptions{Policy: backoff.Default(), StableAfter: 10 * sec, Credit: 30 * sec, Keep: 6 * time.Hour}
	require.Equal(t, want, (*schedule.DialOptions)(nil).WithDefaults())
	require.Equal(t, want, new(schedule.DialOptions).WithDefaults())
	least := (&schedule.DialOptions{StableAfter: -1, Credit: -1}).WithDefaults()
	require.Equal(t, schedule.BriefSession, least.StableAfter)
	require.EqualValues(t, 1, (&schedule.DialOptions{StableAfter: 1}).WithDefaults().StableAfter)
	require.Zero(t, least.Credit)
}

// A Dials keeps the options that it gets: a Credit that became 0 stays so.
func TestOptionsWithoutCreditEarnNothing(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{Credit: -1})
	d.want(schedule.DoDial, 0)
	d.after(20 * sec)
	d.Answered(0, d.now)
	d.after(5 * sec)
	require.False(t, d.Ended(failed, 5*sec, d.now))
	require.Equal(t, 25*sec, d.History().Elapsed)
}

func TestOtherOptionsHoldFromTheNextDialOn(t *testing.T) {
	d := newDesk(t, schedule.DialOptions{})
	d.Use((&schedule.DialOptions{Policy: fixed{}, OneConnection: true}).WithDefaults())
	d.want(schedule.DoDial, 0)
	d.Connected(0, d.now)
	d.wait(30 * sec)
	d.want(schedule.DoCut, 0)
}
