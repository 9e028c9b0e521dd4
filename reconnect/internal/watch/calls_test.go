package watch

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// noted is a Report that notes the events of Calls, with the time since it was made.
type noted struct {
	begin time.Time

	mu   sync.Mutex // guards list
	list []string
}

func (n *noted) note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, fmt.Sprintf("%v ", time.Since(n.begin))+fmt.Sprintf(format, args...))
}

func (n *noted) ProbeStart(uint64, time.Duration)       {}
func (n *noted) ProbeDone(uint64, time.Duration, error) {}

func (n *noted) SlowHandler(session uint64, function string, since time.Duration) {
	n.note("slow %s %v in session %d", function, since, session)
}
func (n *noted) Overdue(function string, since time.Duration) {
	n.note("overdue %s %v", function, since)
}
func (n *noted) Await(done <-chan struct{}, _ string) { <-done }

// withCalls runs a test with Calls whose limit is 10 s, and returns what was reported.
func withCalls(t *testing.T, test func(c *Calls)) (reports string) {
	synctest.Test(t, func(t *testing.T) {
		n, c := &noted{begin: time.Now()}, new(Calls)
		c.Init(n, 10*time.Second)
		test(c)
		c.Stop()
		reports = strings.Join(n.list, ", ")
	})
	return reports
}

// take is a call of the function name that takes d.
func take(c *Calls, name string, d time.Duration) {
	outer := c.Enter(&name)
	time.Sleep(d)
	c.Leave(outer)
}

func TestSlowCallIsReportedOnceAndThenOverdue(t *testing.T) {
	require.Equal(t, "10s slow f 10s in session 0, 20s overdue f 20s, 40s overdue f 40s, 1m50s slow g 10s in session 0",
		withCalls(t, func(c *Calls) {
			take(c, "f", 79*time.Second)
			time.Sleep(21 * time.Second)
			take(c, "g", 11*time.Second)
		}))
}

func TestShortCallsAreNotReportedTogether(t *testing.T) {
	require.Empty(t, withCalls(t, func(c *Calls) {
		for range 100 {
			take(c, "f", 4*time.Second)
		}
		outer := c.Enter(&onMessage)
		take(c, "nested", 9*time.Second)
		c.Leave(outer)
	}))
}

func TestCallOfALinkHasItsSession(t *testing.T) {
	const want = "10s slow OnMessage 10s in session 7, 30s slow Layer.Receive 10s in session 7"
	require.Equal(t, want, withCalls(t, func(c *Calls) {
		l := &link.Link{Session: 7}
		c.Follow(l)
		l.Pause(link.Handling)
		c.Arm()
		time.Sleep(15 * time.Second)
		l.Pause(link.Receiving)
		c.Arm() // it is armed: the call is seen at the next tick, 20 s after the first
		time.Sleep(19 * time.Second)
		l.Resume()
		l.Pause(link.Blocked) // which Liveness reports
		time.Sleep(time.Hour)
	}))
}

func TestCallElsewhereIsNotTimed(t *testing.T) {
	require.Equal(t, "2h0m5s overdue serve 5s, 2h0m10s overdue serve 10s", withCalls(t, func(c *Calls) {
		outer := c.Enter(&Elsewhere)
		time.Sleep(time.Hour)
		c.End()
		c.Leave(outer)
		outer = c.Enter(&Serve)
		take(c, "hook", time.Second)
		time.Sleep(time.Hour - time.Second)
		c.End() // from now on serve should return
		time.Sleep(12 * time.Second)
		c.Leave(outer)
	}))
}

func TestEndCountsFromItself(t *testing.T) {
	require.Equal(t, "10s slow f 10s in session 0, 20s overdue f 5s, 25s overdue f 10s, 40s slow g 10s in session 0",
		withCalls(t, func(c *Calls) {
			go func() {
				time.Sleep(15 * time.Second)
				c.End()
			}()
			take(c, "f", 26*time.Second)
			take(c, "g", 21*time.Second)
		}))
}

func TestIdleCallsHaveNoTimer(t *testing.T) {
	require.Empty(t, withCalls(t, func(c *Calls) {
		take(c, "f", time.Second)
		require.True(t, c.armed.Load())
		time.Sleep(10 * time.Second)
		require.False(t, c.armed.Load())
		c.mu.Lock()
		defer c.mu.Unlock()
		require.Nil(t, c.clock)
	}))
}

// A call may begin in the moment in which the timer finds none, and must still be seen.
func TestNoSlowCallIsMissed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	want := 0
	reports := withCalls(t, func(c *Calls) {
		for range 1000 {
			if r.IntN(2) == 0 {
				time.Sleep(time.Duration(r.IntN(4)) * 5 * time.Second) // often at a tick
			}
			if r.IntN(3) > 0 {
				take(c, "short", time.Duration(r.IntN(2))*5*time.Second)
				continue
			}
			want++
			take(c, "long", 20*time.Second+1) // twice the limit, because the timer may have been set before
		}
	})
	require.Equal(t, want, strings.Count(reports, "slow long"))
	require.Zero(t, strings.Count(reports, "short"))
}

// leaving is a Report whose hooks end the goroutine that calls them.
type leaving struct{ noted }

func (*leaving) Await(<-chan struct{}, string) { runtime.Goexit() }

func TestStopTimerReturnsAlthoughOverdueDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var timer xsync.Timer
		returned := false
		timer.Set(0, func() {
			time.Sleep(time.Hour)
			returned = true
		})
		time.Sleep(time.Second)
		stops := xsync.Go(func() { StopTimer(&leaving{}, &timer, "Probe") })
		<-stops.Done
		require.True(t, stops.Returned)
		require.True(t, returned)
	})
}
