package watch

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// quiet is a Report that drops each event.
type quiet struct{}

func (quiet) ProbeStart(uint64, time.Duration)       {}
func (quiet) ProbeDone(uint64, time.Duration, error) {}
func (quiet) SlowHandler(uint64, time.Duration)      {}
func (quiet) Overdue(string, time.Duration)          {}
func (quiet) Await(done <-chan struct{}, _ string)   { <-done }

// watchSilent watches a link whose peer says nothing. The wall clock of shared is ahead by the time that test gets.
func watchSilent(t *testing.T, shared *Shared, test func(t *testing.T, w *Liveness, l *link.Link, ahead *atomic.Int64)) {
	prepareSilent(t, shared, func(t *testing.T, w *Liveness, l *link.Link, ahead *atomic.Int64) {
		w.Start(l)
		test(t, w, l, ahead)
	})
}

// prepareSilent is as watchSilent, but test calls Start.
func prepareSilent(t *testing.T, shared *Shared, test func(t *testing.T, w *Liveness, l *link.Link, ahead *atomic.Int64)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))) // at the beginning of a bubble each link.Instant is negative
		fake := conntest.NewFake(&conntest.FakeOptions{Pings: true, Transport: true})
		fake.Mute()
		var ahead atomic.Int64 // in ns
		shared.Liveness.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		shared.Report = quiet{}
		var life link.Life
		var l link.Link
		var w Liveness
		l.Begin(fake.Conn(), &life, budget.Window{})
		w.Prepare(shared, l.Conn)
		defer w.Stop()
		defer l.Cut(net.ErrClosed)
		test(t, &w, &l, &ahead)
	})
}

// Redial cuts a silent peer at once. A limit that has grown does not change when that is.
func TestAPeerIsSilentAfterHalfOfTheFirstLimit(t *testing.T) {
	for p := range mostPatience + 1 {
		shared := &Shared{Liveness: &LivenessOptions{Limit: 30 * time.Second}}
		shared.patience.Store(uint32(p))
		watchSilent(t, shared, func(t *testing.T, w *Liveness, _ *link.Link, _ *atomic.Int64) {
			time.Sleep(15*time.Second - time.Nanosecond)
			require.False(t, w.Silent())
			time.Sleep(time.Nanosecond)
			require.True(t, w.Silent())
		})
	}
}

// A session that begins with messages learns from its peer all the same, when they are handled.
func TestASessionThatIsBusyAtFirstLearnsSoonAfterwards(t *testing.T) {
	for busy, probed := range map[time.Duration]time.Duration{time.Millisecond: 1250 * time.Millisecond, time.Minute + 1: 61_250 * time.Millisecond} {
		shared := &Shared{Liveness: &LivenessOptions{Limit: 30 * time.Second}}
		shared.patience.Store(uint32(mostPatience))
		prepareSilent(t, shared, func(t *testing.T, w *Liveness, l *link.Link, _ *atomic.Int64) {
			l.Pause(link.Handling)
			w.Start(l) // ticks at once
			time.Sleep(busy)
			l.Resume()
			time.Sleep(probed - busy - time.Nanosecond)
			require.Zero(t, l.Life().Counts.Probes.Load())
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			require.EqualValues(t, 1, l.Life().Counts.Probes.Load())
		})
	}
}

// The session may end at the instant of a Check.
func TestALostLinkIsNotProbed(t *testing.T) {
	shared := &Shared{Liveness: &LivenessOptions{Limit: 30 * time.Second}}
	watchSilent(t, shared, func(t *testing.T, w *Liveness, l *link.Link, _ *atomic.Int64) {
		time.Sleep(time.Second)
		l.Cut(net.ErrClosed)
		w.Check()
		synctest.Wait()
		require.Zero(t, l.Life().Counts.Probes.Load())
	})
}

// When a probe after a suspension has no answer in time, the link is cut, whatever began to probe meanwhile.
func TestALaterProbeGivesNoMoreTime(t *testing.T) {
	waits := func(ctx context.Context, _ func(conn.Message) error) error { <-ctx.Done(); return ctx.Err() }
	for name, test := range map[string]struct {
		probe func(ctx context.Context, write func(conn.Message) error) error
		later func(w *Liveness, ahead *atomic.Int64)
	}{
		"Check":              {nil, func(w *Liveness, _ *atomic.Int64) { w.Check() }},
		"another suspension": {second(waits), func(_ *Liveness, ahead *atomic.Int64) { ahead.Add(int64(time.Hour)) }},
	} {
		t.Run(name, func(t *testing.T) {
			shared := &Shared{Liveness: &LivenessOptions{Limit: 30 * time.Second, Probe: test.probe}}
			watchSilent(t, shared, func(t *testing.T, w *Liveness, l *link.Link, ahead *atomic.Int64) {
				ahead.Store(int64(time.Hour)) // noticed by the first probe, at 10 s
				time.Sleep(18 * time.Second)
				test.later(w, ahead)
				time.Sleep(2*time.Second - time.Nanosecond)
				require.False(t, l.Ended())
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				require.True(t, l.Ended())
				require.ErrorIs(t, l.Cause(nil), ErrSilent)
			})
		})
	}
}

// The clock is read 2 s late, as in a process that was stopped just then. The timer was set to 4.75 s. The time since the
// middle of its last 1.25 s does not count.
func TestTheDeadlineOfACheckIsLaterIfTheProcessWasStopped(t *testing.T) {
	ask := func(context.Context, func(conn.Message) error) error { return nil }
	shared := &Shared{Liveness: &LivenessOptions{Limit: 30 * time.Second, Probe: ask}}
	prepareSilent(t, shared, func(t *testing.T, w *Liveness, l *link.Link, _ *atomic.Int64) {
		var stop atomic.Bool
		now := shared.Liveness.Now
		shared.Liveness.Now = func() time.Time {
			if stop.Swap(false) {
				time.Sleep(2 * time.Second)
			}
			return now()
		}
		w.Start(l)
		time.Sleep(time.Second)
		w.Check() // the deadline is at 6 s
		time.Sleep(3 * time.Second)
		stop.Store(true)
		time.Sleep(4625*time.Millisecond - time.Nanosecond)
		require.False(t, l.Ended())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.ErrorIs(t, l.Cause(nil), ErrSilent)
	})
}

// second returns a Probe of which the first call does nothing, and the others are calls of probe.
func second(probe func(context.Context, func(conn.Message) error) error) func(context.Context, func(conn.Message) error) error {
	calls := 0
	return func(ctx context.Context, write func(conn.Message) error) error {
		if calls++; calls == 1 {
			return nil
		}
		return probe(ctx, write)
	}
}
