package netwatch

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeConn is a Conn that notes its calls. It belongs to one bubble.
type fakeConn struct {
	calls []string
	at    []time.Time // of the calls of Check
	done  chan struct{}
}

func newFakeConn() *fakeConn { return &fakeConn{done: make(chan struct{})} }

func (c *fakeConn) Kick()                 { c.calls = append(c.calls, "Kick") }
func (c *fakeConn) Check()                { c.calls, c.at = append(c.calls, "Check"), append(c.at, time.Now()) }
func (c *fakeConn) Done() <-chan struct{} { return c.done }

// A connection that waits dials before Check, and one that Check cuts is not kicked.
func TestAChangeKicksAndThenChecksWhatIsAttached(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		one, two := newFakeConn(), newFakeConn()
		s.w.Attach(t.Context(), one, two)
		s.sleep(time.Minute)
		require.Empty(t, one.calls)
		s.move("192.0.2.2")
		s.sleep(1500 * time.Millisecond)
		require.Equal(t, []string{"Kick", "Check"}, one.calls)
		require.Equal(t, []string{"Kick", "Check"}, two.calls)
		s.sleep(time.Minute)
		require.Len(t, one.calls, 2)
	})
}

func TestNothingIsKickedWhileTheMachineIsOffline(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		c := newFakeConn()
		s.w.Attach(t.Context(), c)
		s.set(func(s *scene) { s.network = Network{} })
		s.announce()
		s.sleep(2 * time.Second)
		require.Equal(t, []string{"Check"}, c.calls)
		s.move("192.0.2.1")
		s.sleep(2 * time.Second)
		require.Equal(t, []string{"Check", "Kick", "Check"}, c.calls)
	})
}

func TestCallsAreSpread(t *testing.T) {
	inScene(t, &Options{Spread: 10 * time.Second}, func(t *testing.T, s *scene) {
		conns := make([]*fakeConn, 500)
		for i := range conns {
			conns[i] = newFakeConn()
			s.w.Attach(t.Context(), conns[i])
		}
		s.move("192.0.2.2")
		s.sleep(10500 * time.Millisecond)
		perSecond := make([]int, 10)
		for _, c := range conns {
			require.Len(t, c.at, 1)
			perSecond[c.at[0].Sub(s.start.Add(500*time.Millisecond))/time.Second]++
		}
		// Of 500 draws 50 are expected in each second. 20 are 4.5 standard deviations less.
		require.Greater(t, slices.Min(perSecond), 20)
		require.Less(t, slices.Max(perSecond), 80)
	})
}

func TestWithANegativeSpreadAllAreCalledAtOnce(t *testing.T) {
	inScene(t, &Options{Spread: -1}, func(t *testing.T, s *scene) {
		c := newFakeConn()
		s.w.Attach(t.Context(), c)
		s.move("192.0.2.2")
		s.sleep(500 * time.Millisecond)
		require.Equal(t, []time.Time{s.start.Add(500 * time.Millisecond)}, c.at)
	})
}

// Otherwise a connection would never be called on a network that changes all the time.
func TestAnotherChangeDoesNotPostponeACall(t *testing.T) {
	w := &Watcher{o: Options{Spread: time.Hour}}
	c, start := newFakeConn(), time.Now()
	w.Attach(t.Context(), c)
	w.plan(start)
	first := w.visit(start.Add(-1), false)
	require.NotZero(t, first)
	for range 20 { // draws
		w.plan(start)
	}
	require.Equal(t, first, w.visit(first.Add(-1), false))
	require.Empty(t, c.calls)
	require.Zero(t, w.visit(start.Add(time.Hour), false))
	require.Len(t, c.at, 1)
	w.plan(start)
	require.NotZero(t, w.visit(start.Add(-1), false), "and it is called after the next change")
}

func TestAConnThatHasEndedIsDetached(t *testing.T) {
	inScene(t, nil, func(t *testing.T, s *scene) {
		ctx, cancel := context.WithCancel(t.Context())
		stays, ends, ended, late := newFakeConn(), newFakeConn(), newFakeConn(), newFakeConn()
		s.w.Attach(t.Context(), stays, ended, late)
		s.w.Attach(ctx, ends)
		cancel()
		close(ended.done)
		s.move("192.0.2.2")
		s.sleep(500 * time.Millisecond)
		close(late.done) // after its time was drawn
		s.sleep(time.Minute)
		require.Len(t, stays.calls, 2)
		require.Empty(t, slices.Concat(ends.calls, ended.calls, late.calls))
		require.Len(t, s.w.attached, 2)
	})
}

// A network may stay as it is for months while connections come and go.
func TestEndedConnsDoNotPileUp(t *testing.T) {
	var w Watcher
	for range 10_000 {
		c := newFakeConn()
		w.Attach(t.Context(), c)
		close(c.done)
	}
	require.LessOrEqual(t, len(w.attached), 16)
}

func TestAttachWatchesThisMachineUntilItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := Attach(ctx, newFakeConn(), newFakeConn())
	require.NoError(t, err)
	require.Len(t, w.attached, 2)
	cancel()
	<-w.Done()
}
