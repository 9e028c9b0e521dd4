package drain_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/drain"
)

// soon are options without a lead.
var soon = drain.Options{Lead: -1}

func TestEachConnectionClosesAtItsOwnDraw(t *testing.T) {
	withGroup(t, drain.Options{Window: 4 * time.Second, Lead: time.Second}, func(t *testing.T, s *scene) {
		s.add(1, 4)
		took := s.drain()
		require.Equal(t, []event{
			{member: 3, at: 1429792743, code: 1012, reason: "redial/1"},
			{member: 4, at: 2797802349, code: 1012, reason: "redial/1"},
			{member: 2, at: 3388366485, code: 1012, reason: "redial/1"},
			{member: 1, at: 4819275026, code: 1012, reason: "redial/1"},
		}, s.closes())
		require.Equal(t, s.closes()[3].at, took)
		require.Equal(t, drain.Stats{Added: 4, Closed: 4}, s.Stats())
	})
}

// Each slot of the window has one close in it.
func TestTheDrawIsEven(t *testing.T) {
	withGroup(t, soon, func(t *testing.T, s *scene) {
		const n = 10_000
		s.add(1, n)
		s.drain()
		closes := s.closes()
		require.Len(t, closes, n)
		inOrder := 0
		for i, c := range closes {
			require.GreaterOrEqual(t, c.at, time.Minute/n*time.Duration(i))
			require.Less(t, c.at, time.Minute/n*time.Duration(i+1))
			if i > 0 && c.member > closes[i-1].member {
				inOrder++
			}
		}
		require.InDelta(t, n/2, inOrder, n/50, "not in the order in which they were added")
		require.Equal(t, 18, busiest(times(closes)), "17 on average")
	})
}

func TestAHundredThousandConnectionsClose(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, MaxAge: time.Hour}, func(t *testing.T, s *scene) {
		const n = 100_000
		s.add(1, n)
		require.Less(t, s.drain(), time.Minute)
		closes := times(s.closes())
		require.Len(t, closes, n)
		require.LessOrEqual(t, busiest(closes), n/600+2)
	})
}

// Two servers that are restarted at one moment do not close their connections at the same
// instants, as they would if each took equal steps.
func TestTwoServersAreNotInStep(t *testing.T) {
	const n = 10_000
	both := make([][]time.Duration, 2)
	for i := range both {
		withGroup(t, drain.Options{Lead: -1, Rand: rand.NewPCG(uint64(i), 0)}, func(t *testing.T, s *scene) {
			s.add(1, n)
			s.drain()
			both[i] = times(s.closes())
		})
	}
	together := 0 // within a twentieth of the distance between two closes of one server
	for _, at := range both[0] {
		j, _ := slices.BinarySearch(both[1], at-time.Minute/n/40)
		if j < n && both[1][j] < at+time.Minute/n/40 {
			together++
		}
	}
	require.InDelta(t, n/20, together, n/100)
	require.LessOrEqual(t, busiest(slices.Concat(both...)), 2*18)
}

func TestAServerServesDuringTheLead(t *testing.T) {
	withGroup(t, drain.Options{}, func(t *testing.T, s *scene) {
		s.add(1, 1)
		end := s.begin(t.Context())
		time.Sleep(15*time.Second - 1)
		s.add(2, 10)
		require.Empty(t, s.closes())
		require.NoError(t, end())
		require.Len(t, s.closes(), 10)
		require.GreaterOrEqual(t, s.closes()[0].at, 15*time.Second)
		require.Greater(t, s.now(), time.Minute)
	})
}

// A balancer may still send clients to a server that has none.
func TestTheLeadIsKeptWithoutConnections(t *testing.T) {
	withGroup(t, drain.Options{}, func(t *testing.T, s *scene) {
		require.Equal(t, 15*time.Second, s.drain())
	})
}

func TestADrainIsOverWithTheLastConnection(t *testing.T) {
	withGroup(t, drain.Options{Lead: time.Second}, func(t *testing.T, s *scene) {
		members := s.add(1, 100)
		end := s.begin(t.Context())
		time.Sleep(2 * time.Second)
		for _, m := range members {
			m.Remove()
		}
		require.NoError(t, end())
		require.Equal(t, 2*time.Second, s.now())
		st := s.Stats()
		require.Equal(t, 100, st.Left+st.Closed)
		require.Greater(t, st.Left, 90)
	})
}

var errEnough = errors.New("enough")

func TestTheRestClosesWhenTheContextEnds(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Closers: 1000}, func(t *testing.T, s *scene) {
		s.add(1, 600)
		ctx, cancel := context.WithCancelCause(t.Context())
		end := s.begin(ctx)
		time.Sleep(20 * time.Second)
		before := len(s.closes())
		require.Equal(t, 200, before)
		cancel(errEnough)
		err := end()
		require.Equal(t, 20*time.Second, s.now())
		require.ErrorIs(t, err, errEnough)
		require.Equal(t, &drain.Error{Err: errEnough, Hurried: 400}, err)
		require.EqualError(t, err, "drain: enough, closed early: 400")
		require.Equal(t, drain.Stats{Added: 600, Closed: 600}, s.Stats())
	})
}

func TestAContextThatEndsInTheLeadEndsTheLead(t *testing.T) {
	withGroup(t, drain.Options{}, func(t *testing.T, s *scene) {
		s.add(1, 3)
		ctx, cancel := context.WithCancelCause(t.Context())
		end := s.begin(ctx)
		time.Sleep(time.Second)
		cancel(errEnough)
		require.ErrorIs(t, end(), errEnough)
		require.Equal(t, []time.Duration{time.Second, time.Second, time.Second}, times(s.closes()))
	})
}

// A deadline is known from the start, so that no connection is cut at it.
func TestTheWindowFitsIntoADeadline(t *testing.T) {
	withGroup(t, drain.Options{Lead: 10 * time.Second}, func(t *testing.T, s *scene) {
		s.add(1, 1000)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		require.NoError(t, s.Drain(ctx))
		closes := times(s.closes())
		require.Less(t, closes[0], 10*time.Second+18*time.Millisecond)
		require.Less(t, closes[999], 28*time.Second)
		require.GreaterOrEqual(t, closes[999], 28*time.Second-18*time.Millisecond)
	})
}

// Without that all would be cut at one instant.
func TestTheLeadLeavesTimeForTheWindow(t *testing.T) {
	withGroup(t, drain.Options{}, func(t *testing.T, s *scene) {
		s.add(1, 1000)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.NoError(t, s.Drain(ctx))
		closes := times(s.closes())
		require.GreaterOrEqual(t, closes[0], 5*time.Second)
		require.Less(t, closes[999], 9500*time.Millisecond)
		require.LessOrEqual(t, busiest(closes), 24, "22 on average")
	})
}

func TestAnAddedConnectionGetsWhatIsLeftOfTheWindow(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, CloseTimeout: time.Hour}, func(t *testing.T, s *scene) {
		m := s.Add(s.closer(0, 0))
		s.Add(s.closer(1, 2*time.Minute)) // keeps the drain from being over
		end := s.begin(t.Context())
		time.Sleep(40 * time.Second)
		m.Remove()
		s.add(10, 1009)
		synctest.Wait()
		require.LessOrEqual(t, len(s.closes()), 2)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		late := slices.DeleteFunc(s.closes(), func(e event) bool { return e.member < 10 })
		require.Len(t, late, 1000)
		require.Less(t, busiest(times(late)), 20, "5 on average")
		require.NoError(t, end())
	})
}

// No call of Drain is left to wait for it.
func TestAConnectionThatIsAddedAfterTheDrainClosesAtOnce(t *testing.T) {
	withGroup(t, soon, func(t *testing.T, s *scene) {
		s.drain() // which is over before the window
		s.add(1, 1)
		synctest.Wait()
		require.Equal(t, []time.Duration{0}, times(s.closes()))
		require.NoError(t, s.Drain(t.Context()))
	})
}

func TestTwoCallsAreOneDrain(t *testing.T) {
	withGroup(t, soon, func(t *testing.T, s *scene) {
		s.add(1, 60)
		first := s.begin(t.Context())
		time.Sleep(30 * time.Second)
		ctx, cancel := context.WithCancelCause(t.Context())
		second := s.begin(ctx)
		require.Len(t, s.closes(), 30)
		cancel(errEnough) // a second signal: hurry
		require.ErrorIs(t, second(), errEnough)
		require.ErrorIs(t, first(), errEnough)
		require.Equal(t, 30*time.Second, s.now())
		require.Len(t, s.closes(), 60)
		require.ErrorIs(t, s.Drain(t.Context()), errEnough)
		for range 20 { // the drain and the context are both over
			require.ErrorIs(t, s.Drain(ctx), errEnough)
		}
	})
}

// A drain that was not hurried stays so, whatever becomes of the contexts of later calls.
func TestContextDoneAfterTheDrainHurriesNothing(t *testing.T) {
	withGroup(t, soon, func(t *testing.T, s *scene) {
		s.add(1, 1)
		s.drain()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		for range 20 { // the drain and the context are both over
			require.NoError(t, s.Drain(ctx))
		}
	})
}

// CloseTimeout counts from the first context that is done.
func TestSecondHurryDoesNotProlongTheDrain(t *testing.T) {
	withGroup(t, drain.Options{}, func(t *testing.T, s *scene) {
		s.Add(hang(t))
		early, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		first := s.begin(early)
		time.Sleep(5 * time.Second)
		late, cancelLate := context.WithCancel(t.Context())
		cancelLate()
		require.ErrorIs(t, s.Drain(late), errEnough)
		require.ErrorIs(t, first(), errEnough)
		require.Equal(t, 10*time.Second, s.now())
	})
}

// There is no time for a warning any more.
func TestAHurriedDrainWarnsNobody(t *testing.T) {
	withGroup(t, drain.Options{}, func(t *testing.T, s *scene) {
		for i := range 10 {
			s.AddNotice(s.closer(i, 0), s.noticer(i, 0))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, s.Drain(ctx))
		require.Zero(t, s.now())
		require.Len(t, s.closes(), 10)
		require.Empty(t, s.notices())
	})
}

// A window of nothing, and a context that has ended already, are no special cases.
func TestAllCloseAtOnceWithoutAWindow(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Window: -1}, func(t *testing.T, s *scene) {
		s.add(1, 1000)
		require.Zero(t, s.drain())
		require.Len(t, s.closes(), 1000)
	})
	withGroup(t, drain.Options{}, func(t *testing.T, s *scene) {
		s.add(1, 1000)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Drain(ctx), context.Canceled)
		require.Zero(t, s.now())
		require.Len(t, s.closes(), 1000)
	})
}

func TestTheErrorsOfClosersAreCounted(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Closers: 1}, func(t *testing.T, s *scene) {
		s.Add(func(int, string) error { time.Sleep(time.Millisecond); return errEnough })
		s.drain()
		require.NoError(t, s.Drain(t.Context()))
		require.Equal(t, drain.Stats{Added: 1, Failed: 1}, s.Stats())
	})
}
