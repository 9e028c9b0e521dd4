package netwatch

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestABurstOfAnnouncementsIsOneChange(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		changes := s.w.Changes(t.Context())
		for range 4 {
			time.Sleep(300 * time.Millisecond)
			s.announce()
		}
		s.move("192.0.2.2")
		s.move("192.0.2.3")
		require.Equal(t, Change{Old: at("192.0.2.1"), New: at("192.0.2.3")}, wantChange(t, changes))
		s.wantLooks(1700 * time.Millisecond) // 500 ms after the last
		require.Equal(t, at("192.0.2.3"), s.w.Status().Network)
	})
}

func TestEndlessBurstDelaysChangeFiveSeconds(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		changes := s.w.Changes(t.Context())
		s.move("192.0.2.2")
		for range 16 {
			time.Sleep(400 * time.Millisecond)
			s.announce()
		}
		require.Len(t, changes, 1)
		s.wantLooks(5 * time.Second)
		time.Sleep(5 * time.Second) // the next burst began at 5.2 s, and has ended
		s.wantLooks(5*time.Second, 6900*time.Millisecond)
	})
}

func TestAChangeThatChangesNothingIsNotReported(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		changes := s.w.Changes(t.Context())
		s.announce()
		time.Sleep(time.Second)
		s.move("192.0.2.2")
		s.move("192.0.2.1")
		time.Sleep(time.Second)
		s.wantLooks(500*time.Millisecond, 1500*time.Millisecond)
		wantNone(t, changes)
	})
}

func TestAChangeThatNobodyAnnouncedIsNoticedAtTheInterval(t *testing.T) {
	inScene(t, &Options{Interval: time.Minute}, func(t *testing.T, s *scene) {
		changes := s.w.Changes(t.Context())
		time.Sleep(61 * time.Second)
		s.set(func(s *scene) { s.network = at("192.0.2.2") })
		require.Equal(t, at("192.0.2.2"), wantChange(t, changes).New)
		s.wantLooks(time.Minute, 2*time.Minute)
	})
}

func TestWithoutAnnouncementsItPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.refusal = errBroken
		s.watch(nil)
		require.ErrorIs(t, s.w.Status().Polling, errBroken)
		changes := s.w.Changes(t.Context())
		s.set(func(s *scene) { s.network = at("192.0.2.2") })
		wantChange(t, changes)
		s.wantLooks(10 * time.Second)
		s.w.Close()
		<-s.w.Done()
	})
}

func TestWhenAnnouncementsBreakItLooksAndPolls(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		require.NoError(t, s.w.Status().Polling)
		s.events <- errBroken
		time.Sleep(25 * time.Second)
		require.ErrorIs(t, s.w.Status().Polling, errBroken)
		s.wantLooks(500*time.Millisecond, 10500*time.Millisecond, 20500*time.Millisecond)
	})
}

func TestALookThatFailsIsNoChangeAndIsRepeated(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		changes := s.w.Changes(t.Context())
		s.set(func(s *scene) { s.network, s.err = Network{}, errBroken })
		time.Sleep(10 * time.Second)
		wantNone(t, changes)
		require.Equal(t, Status{Network: at("192.0.2.1"), Err: errBroken}, s.w.Status())
		s.set(func(s *scene) { s.network, s.err = at("192.0.2.2"), nil })
		require.Equal(t, Change{Old: at("192.0.2.1"), New: at("192.0.2.2")}, wantChange(t, changes))
		require.NoError(t, s.w.Status().Err)
	})
}

func TestASleepIsReportedAlthoughTheLookFails(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		changes := s.w.Changes(t.Context())
		s.set(func(s *scene) { s.ahead, s.err = time.Hour, errBroken })
		require.Equal(t, Change{Old: at("192.0.2.1"), New: at("192.0.2.1"), Slept: time.Hour}, wantChange(t, changes))
	})
}

func TestASlowReaderGetsOneChangeForAllThatItMissed(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		slow, fast := s.w.Changes(t.Context()), s.w.Changes(t.Context())
		for i, to := range []string{"192.0.2.2", "192.0.2.3", "192.0.2.4"} {
			s.set(func(s *scene) { s.ahead += time.Duration(i) * time.Minute })
			s.move(to)
			require.Equal(t, at(to), wantChange(t, fast).New)
		}
		synctest.Wait() // the slow one gets the last change after the fast one has
		require.Equal(t, Change{Old: at("192.0.2.1"), New: at("192.0.2.4"), Slept: 3 * time.Minute}, wantChange(t, slow))
		wantNone(t, slow)
	})
}

func TestAMachineThatSleptIsAChangeInAnyCase(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		changes := s.w.Changes(t.Context())
		for _, clock := range []time.Duration{5 * time.Second, -time.Hour, 0} { // a clock that is set
			s.set(func(s *scene) { s.ahead = min(clock, s.ahead+5*time.Second) })
			time.Sleep(10 * time.Second)
			wantNone(t, changes)
		}
		s.set(func(s *scene) { s.ahead += time.Hour })
		require.Equal(t, Change{Old: at("192.0.2.1"), New: at("192.0.2.1"), Slept: time.Hour}, wantChange(t, changes))
		time.Sleep(time.Minute)
		wantNone(t, changes) // once
	})
}

// On some systems the monotonic clock goes on during sleep, and then only the look is late.
func TestALookThatIsLateMeansSleepByEitherClock(t *testing.T) {
	now := time.Now()
	due := now.Add(10 * time.Second)
	for name, mono := range map[string]time.Time{"stands still": due, "goes on": due.Add(time.Hour)} {
		w := &Watcher{wall: now.Round(0), mono: now}
		w.machine.wall = func() time.Time { return due.Add(time.Hour) }
		require.Equal(t, time.Hour, w.slept(due, mono), name)
	}
}

func TestAChannelIsClosedWithItsContext(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		ctx, cancel := context.WithCancel(t.Context())
		short, long := s.w.Changes(ctx), s.w.Changes(t.Context())
		cancel()
		wantEnd(t, short)
		s.move("192.0.2.2")
		wantChange(t, long)
	})
}

func TestTheEndOfAWatcherClosesItsChannels(t *testing.T) {
	for name, end := range map[string]func(*Watcher, func()){
		"Close":   func(w *Watcher, _ func()) { w.Close() },
		"context": func(_ *Watcher, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w, err := start(ctx, nil, s.machine())
				require.NoError(t, err)
				changes := w.Changes(context.Background())
				end(w, cancel)
				wantEnd(t, changes)
				<-w.Done()
				require.True(t, s.stopped)
				wantEnd(t, w.Changes(context.Background())) // nor does one begin after the end
				require.NoError(t, w.Close())
			})
		})
	}
}

func TestTheLongestTimesAreForEver(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	inScene(t, &Options{Interval: longest, Spread: longest}, func(t *testing.T, s *scene) {
		c := newFakeConn()
		s.w.Attach(t.Context(), c)
		s.move("192.0.2.2")
		time.Sleep(900 * time.Hour)
		s.wantLooks(settle)
	})
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	_, err := New(t.Context(), &Options{Interval: -time.Second})
	require.EqualError(t, err, "netwatch: Options.Interval: -1s is negative")
	s := newScene(t)
	s.err = errBroken
	_, err = start(t.Context(), nil, s.machine())
	require.ErrorIs(t, err, errBroken)
	require.True(t, s.stopped)
}
