package drain_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/drain"
)

// Connections that began together end at ages from 0.9 to 1.1 of MaxAge.
func TestEachConnectionHasAnAgeOfItsOwn(t *testing.T) {
	withGroup(t, drain.Options{MaxAge: time.Hour}, func(t *testing.T, s *scene) {
		s.add(1, 12_000)
		time.Sleep(54 * time.Minute)
		require.LessOrEqual(t, len(s.closes()), 1)
		for range 12 {
			before := len(s.closes())
			time.Sleep(time.Minute)
			require.InDelta(t, 1000, len(s.closes())-before, 110)
		}
		require.Equal(t, drain.Stats{Added: 12_000, Closed: 12_000, Renewed: 12_000}, s.Stats())
	})
}

// Clients that come back at once are renewed at an even rate in the end, although they began
// at one moment.
func TestRenewalBecomesSteady(t *testing.T) {
	withGroup(t, drain.Options{MaxAge: time.Hour}, func(t *testing.T, s *scene) {
		const n = 600
		var renew func(int, string) error
		renew = func(int, string) error {
			if s.Ready() { // else there would be no end
				s.Add(renew)
			}
			return nil
		}
		for range n {
			s.Add(renew)
		}
		time.Sleep(100 * time.Hour)
		synctest.Wait()
		for range 6 {
			before := s.Stats().Renewed
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			require.InDelta(t, n/6, s.Stats().Renewed-before, 40)
		}
		require.Equal(t, n, s.Stats().Members)
		s.drain() // so that no timer is left
	})
}

func TestWithoutAMaxAgeNothingIsClosed(t *testing.T) {
	withGroup(t, drain.Options{}, func(t *testing.T, s *scene) {
		s.add(1, 10)
		time.Sleep(10_000 * time.Hour)
		require.Empty(t, s.closes())
	})
}

// The drain closes it anyway, and a balancer may send its client back.
func TestAgesDoNotCountDuringADrain(t *testing.T) {
	withGroup(t, drain.Options{MaxAge: time.Minute, Lead: 2 * time.Minute, Warn: time.Second}, func(t *testing.T, s *scene) {
		s.add(1, 100)
		time.Sleep(50 * time.Second)
		end := s.begin(t.Context())
		s.add(101, 200)
		time.Sleep(2*time.Minute - 1)
		synctest.Wait()
		require.Empty(t, s.closes())
		require.NoError(t, end())
		require.Zero(t, s.Stats().Renewed)
		require.Len(t, s.closes(), 200)
	})
}

// After its notice a client has Warn to leave. The draws of the notices fill what is left of the
// window before the last one.
func TestANoticeComesBeforeTheClose(t *testing.T) {
	withGroup(t, soon, func(t *testing.T, s *scene) {
		for i := range 450 {
			s.AddNotice(s.closer(i, 0), s.noticer(i, 0))
		}
		require.Less(t, s.drain(), time.Minute)
		told, closed := s.notices(), s.closes()
		require.Len(t, told, 450)
		require.Len(t, closed, 450)
		for i := range told {
			require.Equal(t, told[i].at+15*time.Second, told[i].by)
			require.GreaterOrEqual(t, told[i].at, 100*time.Millisecond*time.Duration(i))
			require.Less(t, told[i].at, 100*time.Millisecond*time.Duration(i+1))
			require.Equal(t, told[i].member, closed[i].member)
			require.Equal(t, told[i].by, closed[i].at)
		}
		require.Equal(t, drain.Stats{Added: 450, Closed: 450}, s.Stats())
	})
}

func TestAClientThatLeavesAfterANoticeIsNotClosed(t *testing.T) {
	withGroup(t, soon, func(t *testing.T, s *scene) {
		for i := range 100 {
			var m *drain.Member
			m = s.AddNotice(s.closer(i, 0), func(by time.Time) {
				time.AfterFunc(time.Until(by)-1, m.Remove)
			})
		}
		s.drain()
		require.Empty(t, s.closes())
		require.Equal(t, drain.Stats{Added: 100, Left: 100}, s.Stats())
	})
}

// Some connections can be warned, and others cannot. Both kinds fill the window.
func TestBothKindsOfConnectionsSpread(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Warn: 30 * time.Second}, func(t *testing.T, s *scene) {
		for i := range 3000 {
			s.AddNotice(s.closer(i, 0), s.noticer(i, 0))
		}
		s.add(10_000, 12_999)
		require.InDelta(t, time.Minute, s.drain(), float64(100*time.Millisecond))
		require.Less(t, busiest(times(s.notices())), 25, "10 on average")
		require.Less(t, busiest(times(s.closes())), 30, "10 to 15 on average")
	})
}

// The close does not wait for a notice that hangs.
func TestASlowNoticeDoesNotDelayTheClose(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, CloseTimeout: time.Minute}, func(t *testing.T, s *scene) {
		s.AddNotice(s.closer(1, 0), s.noticer(1, 16*time.Second))
		require.Equal(t, s.drain(), s.notices()[0].at+16*time.Second, "the notice returns after the close")
		require.Equal(t, s.notices()[0].by, s.closes()[0].at)
	})
}

func TestANoticeComesBeforeTheAge(t *testing.T) {
	withGroup(t, drain.Options{MaxAge: time.Hour, Warn: time.Minute}, func(t *testing.T, s *scene) {
		time.Sleep(24 * time.Hour) // the Group is older than the connection
		s.AddNotice(s.closer(1, 0), s.noticer(1, 0))
		time.Sleep(2 * time.Hour)
		told := s.notices()[0]
		require.Equal(t, told.at+time.Minute, told.by)
		require.Equal(t, told.by, s.closes()[0].at)
		require.InDelta(t, 25*time.Hour, told.by, float64(6*time.Minute))
	})
}

// The ages of connections with a notice are drawn from the same range as all others.
func TestANoticeDoesNotChangeTheAge(t *testing.T) {
	o := drain.Options{MaxAge: time.Hour, Window: time.Hour, Warn: 10 * time.Minute}
	withGroup(t, o, func(t *testing.T, s *scene) {
		time.Sleep(24 * time.Hour)
		for i := range 1000 {
			s.AddNotice(s.closer(i, 0), s.noticer(i, 0))
		}
		time.Sleep(2 * time.Hour)
		closed := s.closes()
		require.Len(t, closed, 1000)
		require.InDelta(t, 24*time.Hour+54*time.Minute, closed[0].at, float64(time.Minute))
		require.InDelta(t, 24*time.Hour+66*time.Minute, closed[999].at, float64(time.Minute))
	})
}

// Also in the window, in which the connection is added, there is time for the warning.
func TestANoticeIsInTimeForTheEndOfTheWindow(t *testing.T) {
	withGroup(t, soon, func(t *testing.T, s *scene) {
		s.add(1, 60)
		end := s.begin(t.Context())
		time.Sleep(20 * time.Second)
		for i := range 200 {
			s.AddNotice(s.closer(100+i, 0), s.noticer(100+i, 0))
		}
		require.NoError(t, end())
		require.Less(t, s.now(), time.Minute)
		require.Len(t, s.notices(), 200)
	})
}

// A notice that had to wait for a place does not move the close beyond the window.
func TestALateNoticeDoesNotMoveTheClose(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Warn: time.Minute, Closers: 1}, func(t *testing.T, s *scene) {
		for i := range 3 {
			s.AddNotice(s.closer(i, 0), s.noticer(i, 2*time.Second))
		}
		require.Equal(t, time.Minute, s.drain())
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, times(s.notices()))
	})
}

// A promised time holds, though a drain begins in between.
func TestAPromisedTimeIsKeptInADrain(t *testing.T) {
	withGroup(t, drain.Options{MaxAge: time.Hour, Warn: 40 * time.Second}, func(t *testing.T, s *scene) {
		for i := range 1000 {
			s.AddNotice(s.closer(i, 0), s.noticer(i, 0))
		}
		time.Sleep(time.Hour)
		closed := len(s.closes())
		told := s.notices()
		require.Greater(t, len(told), closed+10)
		s.drain()
		promised := map[int]time.Duration{}
		for _, e := range told {
			promised[e.member] = e.by
		}
		for _, e := range s.closes() {
			if by, was := promised[e.member]; was {
				require.Equal(t, by, e.at)
			}
		}
		require.Len(t, s.notices(), 1000, "no client is warned twice")
		require.Len(t, s.closes(), 1000)
	})
}

// Clients whose time was promised before the drain take no slots of the window from the others.
func TestTheOthersSpreadOverTheWholeWindow(t *testing.T) {
	o := drain.Options{MaxAge: 2 * time.Minute, Warn: time.Minute, Lead: -1}
	withGroup(t, o, func(t *testing.T, s *scene) {
		for i := range 20 {
			s.AddNotice(s.closer(i, 0), s.noticer(i, 0))
		}
		time.Sleep(90 * time.Second)
		require.Len(t, s.notices(), 20)
		s.add(100, 104)
		require.Empty(t, s.closes())
		s.drain()
		last := time.Duration(0)
		for _, e := range s.closes() {
			if e.member >= 100 {
				last = e.at
			}
		}
		require.GreaterOrEqual(t, last, (90+48)*time.Second, "in the last fifth of the window")
	})
}

// Such a close is one of MaxAge, though the lead of a drain has begun.
func TestAPromisedCloseInTheLeadIsARenewal(t *testing.T) {
	withGroup(t, drain.Options{MaxAge: time.Hour, Warn: 10 * time.Second}, func(t *testing.T, s *scene) {
		s.AddNotice(s.closer(1, 0), s.noticer(1, 0))
		for len(s.notices()) == 0 {
			time.Sleep(time.Second)
		}
		s.drain()
		require.Equal(t, s.notices()[0].by, s.closes()[0].at)
		require.Equal(t, drain.Stats{Added: 1, Closed: 1, Renewed: 1}, s.Stats())
	})
}

func TestWithoutAWarningTheNoticeComesWithTheClose(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Warn: -1}, func(t *testing.T, s *scene) {
		s.AddNotice(s.closer(1, 0), s.noticer(1, 0))
		s.drain()
		require.Equal(t, s.notices()[0].at, s.closes()[0].at)
		require.Equal(t, s.notices()[0].by, s.closes()[0].at)
	})
}

func TestMembersThatLeaveAreCounted(t *testing.T) {
	withGroup(t, drain.Options{MaxAge: time.Hour}, func(t *testing.T, s *scene) {
		for _, m := range s.add(1, 1000) {
			m.Remove()
		}
		require.Equal(t, drain.Stats{Added: 1000, Left: 1000}, s.Stats())
	})
}

// A Group without members has no timer, which would keep the Group, nor anything of a member.
func TestNothingIsLeftWithoutMembers(t *testing.T) {
	g, err := drain.New(&drain.Options{MaxAge: time.Hour})
	require.NoError(t, err)
	var members [3]weak.Pointer[drain.Member]
	for i := range members {
		m := g.Add(func(int, string) error { return nil })
		members[i] = weak.Make(m)
		m.Remove()
	}
	runtime.GC()
	for _, m := range members {
		require.Nil(t, m.Value(), "a member that was removed is kept")
	}
	group := weak.Make(g)
	runtime.KeepAlive(g)
	runtime.GC()
	require.Nil(t, group.Value(), "a Group that is not used is kept")
}

func TestAMemberNeedsACloser(t *testing.T) {
	withGroup(t, drain.Options{}, func(t *testing.T, s *scene) {
		require.PanicsWithValue(t, "drain: Add: the function that closes the connection is nil", func() { s.Add(nil) })
	})
}
