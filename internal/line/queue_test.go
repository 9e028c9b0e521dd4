package line_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/line"
	"github.com/redial-go/redial/reconnect/backoff"
)

var (
	success  = backoff.Verdict{}
	refused  = backoff.Verdict{Class: backoff.ClassRetry}
	timeout  = backoff.Verdict{Class: backoff.ClassOverload}
	aborted  = backoff.Verdict{Class: backoff.ClassStop}
	rejected = backoff.Verdict{Class: backoff.ClassSlow}
)

// every is a policy that waits d each time.
type every time.Duration

func (p every) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Duration(p)}, true
}

// queue is a Queue and its time.
type queue struct {
	now time.Time
	*line.Queue
}

func (q *queue) after(d time.Duration) { q.now = q.now.Add(d) }

func newQueue(o line.Options) *queue {
	if o.Probe == nil {
		o.Probe = every(time.Second)
	}
	return &queue{time.Unix(1_000_000, 0), line.New(o, nil)}
}

func (q *queue) join(n int) (tickets []*line.Ticket) {
	for range n {
		tickets = append(tickets, q.Join(q.now))
	}
	return tickets
}

// admit returns all dials that may begin now, and how long until another may.
func (q *queue) admit() (admitted []*line.Ticket, next time.Duration) {
	for {
		t, at := q.Admit(q.now)
		if t == nil {
			if !at.IsZero() {
				next = at.Sub(q.now).Round(time.Microsecond)
			}
			return admitted, next
		}
		admitted = append(admitted, t)
	}
}

func (q *queue) done(v backoff.Verdict, tickets ...*line.Ticket) {
	for _, t := range tickets {
		q.Done(t, v, q.now)
	}
}

// down returns a queue in which one dial has failed and n wait.
func down(t *testing.T, o line.Options, n int) *queue {
	q := newQueue(o)
	q.join(1)
	one, _ := q.admit()
	require.Len(t, one, 1)
	q.done(refused, one...)
	q.join(n)
	return q
}

func TestABurstAndThenTheRate(t *testing.T) {
	q := newQueue(line.Options{Rate: 50, Burst: 10, Concurrent: -1})
	q.join(12)
	admitted, next := q.admit()
	require.Len(t, admitted, 10)
	require.Equal(t, 20*time.Millisecond, next)
	q.after(next + 1)
	admitted, next = q.admit()
	require.Len(t, admitted, 1)
	require.Equal(t, 20*time.Millisecond, next)
}

// The time between two dials is a year at most, so that it does not overflow.
func TestALineMayBeAsSlowAsOneWants(t *testing.T) {
	q := newQueue(line.Options{Rate: 1e-12, Burst: 1})
	q.join(2)
	admitted, next := q.admit()
	require.Len(t, admitted, 1)
	require.Equal(t, 365*24*time.Hour, next)
}

func TestNoMoreThanConcurrentAreUnderWay(t *testing.T) {
	q := newQueue(line.Options{Rate: -1, Concurrent: 3})
	q.join(5)
	admitted, next := q.admit()
	require.Len(t, admitted, 3)
	require.Zero(t, next, "no matter of time")
	q.done(success, admitted[0])
	admitted, _ = q.admit()
	require.Len(t, admitted, 1)
}

func TestTheLineIsServedInOrder(t *testing.T) {
	q := newQueue(line.Options{Rate: -1, Concurrent: 1})
	tickets := q.join(5)
	first, _ := q.admit()
	require.Same(t, tickets[0], first[0])
	require.True(t, q.Leave(tickets[2]))
	require.False(t, q.Leave(tickets[2]), "it is not there any more")
	require.False(t, q.Leave(tickets[0]), "it was admitted")
	for _, want := range []int{1, 3, 4} {
		q.done(success, first...)
		first, _ = q.admit()
		require.Same(t, tickets[want], first[0])
	}
	require.Zero(t, q.Status(q.now).Waiting)
}

func TestAHostThatIsDownIsProbedByOneAtATime(t *testing.T) {
	q := down(t, line.Options{Rate: -1}, 100)
	for range 5 {
		admitted, next := q.admit()
		require.Empty(t, admitted)
		require.Equal(t, time.Second, next, "the pace of a lone client")
		q.after(next)
		probe, _ := q.admit()
		require.Len(t, probe, 1)
		q.after(time.Minute) // however long it takes
		again, _ := q.admit()
		require.Empty(t, again)
		q.done(timeout, probe...)
	}
	require.True(t, q.Status(q.now).Down)
}

// probes lets a queue fail from down for so long, in which n dials wait, and returns how many probes have
// failed and the shortest and the longest wait for one. It leaves out the first wait.
func probes(t *testing.T, q *queue, n int, down time.Duration) (failed int, shortest, longest time.Duration) {
	shortest = time.Hour
	for start := q.now; q.now.Sub(start) < down; failed++ {
		q.join(n - q.Status(q.now).Waiting)
		none, next := q.admit()
		require.Empty(t, none)
		if failed > 0 {
			shortest, longest = min(shortest, next), max(longest, next)
		}
		q.after(next + time.Microsecond)
		probe, _ := q.admit()
		require.Len(t, probe, 1)
		q.done(refused, probe...)
	}
	return failed, shortest, longest
}

func TestManyThatWaitProbeAboutOnceASecond(t *testing.T) {
	q := down(t, line.Options{Rate: -1, Probe: every(10 * time.Second)}, 500)
	failed, shortest, longest := probes(t, q, 500, 10*time.Minute)
	require.GreaterOrEqual(t, shortest, time.Second)
	require.LessOrEqual(t, longest, 1500*time.Millisecond)
	require.Greater(t, longest-shortest, 450*time.Millisecond, "the waits are drawn, because many gates may wait for one host")
	require.InDelta(t, (10*60-10)/1.25, failed, 15)
}

func TestFewThatWaitProbeAsOftenAsTheyWouldTogether(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 10 * time.Second, 2: 5 * time.Second, 4: 2500 * time.Millisecond} {
		q := down(t, line.Options{Rate: -1, Probe: every(10 * time.Second)}, n)
		_, shortest, longest := probes(t, q, n, 10*time.Minute)
		require.Equal(t, []time.Duration{want, want}, []time.Duration{shortest, longest}, "%d wait", n)
	}
}

// A policy whose waits are shorter than a second is not slowed down.
func TestManyThatWaitProbeNoLaterThanALoneClient(t *testing.T) {
	q := down(t, line.Options{Rate: -1, Probe: every(time.Second / 5)}, 500)
	_, shortest, longest := probes(t, q, 500, time.Minute)
	require.Equal(t, []time.Duration{time.Second / 5, time.Second / 5}, []time.Duration{shortest, longest})
}

// A dial that joins or leaves while the line waits for its probe changes that wait at once.
func TestThePaceFollowsTheNumberThatWaits(t *testing.T) {
	q := down(t, line.Options{Rate: -1, Probe: every(10 * time.Second)}, 1)
	q.after(10 * time.Second)
	probe, _ := q.admit()
	q.done(refused, probe...)
	wait := func() time.Duration {
		_, next := q.admit()
		return next
	}
	first := q.join(1)
	require.Equal(t, 10*time.Second, wait())
	second := q.join(1)
	require.Equal(t, 5*time.Second, wait())
	q.after(time.Second)
	q.join(3)
	require.Equal(t, time.Second, wait())
	q.Leave(first[0])
	q.Leave(second[0])
	require.Equal(t, 2333333*time.Microsecond, wait())
}

// Promise 2: other processes were dropped, or told to wait, at the same instant.
func TestTheFirstWaitAndThatAfterARetryAfterAreThoseOfALoneClient(t *testing.T) {
	q := down(t, line.Options{Rate: -1, Probe: every(10 * time.Second)}, 500)
	_, next := q.admit()
	require.Equal(t, 10*time.Second, next)
	q.after(next)
	probe, _ := q.admit()
	q.done(backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Minute}, probe...)
	_, next = q.admit()
	require.Equal(t, time.Minute+10*time.Second, next)
}

// In an outage of a day the dials of a process send at most a tenth more probes than a lone client sends, and not
// one a second.
func TestTheProbesOfALongOutageBecomeRare(t *testing.T) {
	day := func(n int) int {
		q := down(t, line.Options{Rate: -1, Probe: backoff.Default()}, n)
		failed, _, _ := probes(t, q, n, 24*time.Hour)
		return failed
	}
	one, many := day(1), day(500)
	t.Logf("probes in a day: %d for one, %d for 500", one, many)
	require.Greater(t, many, one)
	require.InEpsilon(t, one, many, 0.1)
}

// tired is a policy that gives up.
type tired struct{}

func (tired) Next(backoff.History, *rand.Rand) (backoff.Step, bool) { return backoff.Step{}, false }

func TestALineGoesOnWhereItsProbePolicyGivesUp(t *testing.T) {
	q := down(t, line.Options{Rate: -1, Probe: tired{}}, 2)
	for range 2 {
		admitted, next := q.admit()
		require.Empty(t, admitted)
		require.Equal(t, time.Minute, next)
		q.after(next)
		probe, _ := q.admit()
		require.Len(t, probe, 1)
		q.done(backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Hour}, probe...)
		q.after(time.Hour)
	}
}

func TestAHostThatIsBackIsEnteredGradually(t *testing.T) {
	q := down(t, line.Options{Rate: -1, Concurrent: 16}, 100)
	q.after(time.Second)
	var sizes []int
	for range 6 {
		admitted, _ := q.admit()
		sizes = append(sizes, len(admitted))
		q.done(success, admitted...)
	}
	require.Equal(t, []int{1, 2, 4, 8, 16, 16}, sizes)
}

func TestAFailureOnTheWayBackStartsAnew(t *testing.T) {
	q := down(t, line.Options{Rate: -1}, 100)
	q.after(time.Second)
	probe, _ := q.admit()
	q.done(success, probe...)
	two, _ := q.admit()
	require.Len(t, two, 2)
	q.done(refused, two[0])
	q.done(success, two[1])
	admitted, _ := q.admit()
	require.Len(t, admitted, 2, "the other one's success came after the failure")
}

// A hundred failures at once are one outage, not a hundred.
func TestDialsThatFailTogetherCountOnce(t *testing.T) {
	q := newQueue(line.Options{Rate: -1, Concurrent: -1, Probe: &backoff.Exponential{Base: time.Second, Jitter: backoff.JitterNone}})
	q.join(101)
	admitted, _ := q.admit()
	require.Len(t, admitted, 101)
	q.done(refused, admitted...)
	q.join(1)
	_, next := q.admit()
	require.Equal(t, time.Second, next)
}

// Promise 2: a Retry-After seen by one connection holds all of them, and none comes back
// at the very instant at which it is over.
func TestWhatAServerToldOneHoldsAll(t *testing.T) {
	q := newQueue(line.Options{Rate: -1})
	two := q.join(2)
	admitted, _ := q.admit()
	require.Len(t, admitted, 2)
	q.done(backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Minute}, two[0])
	q.done(rejected, two[1]) // an answer does not end the wait that the server asked for
	q.join(10)
	admitted, next := q.admit()
	require.Empty(t, admitted)
	require.Equal(t, time.Minute+time.Second, next, "and then the policy's wait")

	q = down(t, line.Options{Rate: -1}, 10)
	q.after(time.Second)
	probe, _ := q.admit()
	q.done(backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Minute}, probe...)
	_, next = q.admit()
	require.Equal(t, time.Minute+time.Second, next, "and then the policy's wait")

	q = newQueue(line.Options{Rate: -1})
	two = q.join(2)
	q.admit()
	q.join(1)
	q.done(refused, two[0])
	q.done(backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Minute}, two[1])
	_, next = q.admit()
	require.Equal(t, time.Minute+time.Second, next, "also if another was refused before")
}

// Of two times the later counts, also if the earlier was told last.
func TestAShorterRetryAfterShortensNothing(t *testing.T) {
	q := newQueue(line.Options{Rate: -1, Concurrent: 2})
	q.join(3)
	two, _ := q.admit()
	q.done(backoff.Verdict{Class: backoff.ClassSlow, RetryAfter: time.Minute}, two[0])
	q.done(backoff.Verdict{Class: backoff.ClassSlow, RetryAfter: time.Second}, two[1])
	_, next := q.admit()
	require.Equal(t, time.Minute, next)
}

// Both verdicts ask for a wait of an hour: one of all, and one of a caller.
var (
	closedForHour = backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Hour}
	limited       = backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Hour, Caller: true}
)

// dial ends the next dial with v, once it may begin, and returns how long it has waited.
func (q *queue) dial(t *testing.T, v backoff.Verdict) (waited time.Duration) {
	t.Helper()
	q.join(1)
	one, next := q.admit()
	if len(one) == 0 {
		waited = next
		q.after(next)
		one, _ = q.admit()
	}
	require.Len(t, one, 1)
	q.done(v, one...)
	return waited
}

// The host lets others through, so it is not down, whatever it has asked of one.
func TestSuccessShortensHold(t *testing.T) {
	q := newQueue(line.Options{Rate: -1, Probe: every(time.Minute)})
	two := q.join(2)
	q.admit()
	q.join(1)
	q.done(closedForHour, two[0])
	q.after(time.Second)
	q.done(success, two[1])
	_, next := q.admit()
	require.Equal(t, 10*time.Second, next, "the wait of the policy was a share of the longer hold")
	require.Equal(t, q.now.Add(10*time.Second), q.Status(q.now).Held)
	q.after(next)
	probe, _ := q.admit()
	require.Len(t, probe, 1)
	require.True(t, probe[0].Probe)
}

// A hold that ends sooner than one after a success is not longer because of a success.
func TestSuccessDoesNotLengthenHold(t *testing.T) {
	q := newQueue(line.Options{Rate: -1})
	two := q.join(2)
	q.admit()
	q.join(1)
	q.done(backoff.Verdict{Class: backoff.ClassSlow, RetryAfter: 4 * time.Second}, two[0])
	q.done(success, two[1])
	_, next := q.admit()
	require.Equal(t, 4*time.Second, next)
}

// A host that may be down is dialed less and less often, until the next success.
func TestHoldAfterSuccessDoubles(t *testing.T) {
	q := newQueue(line.Options{Rate: -1, Probe: every(0)})
	for range 2 {
		require.LessOrEqual(t, q.dial(t, success), time.Hour)
		for want := 10 * time.Second; want < time.Hour; want *= 2 {
			q.dial(t, closedForHour)
			require.Equal(t, q.now.Add(want), q.Status(q.now).Held)
		}
		q.dial(t, closedForHour)
		require.Equal(t, q.now.Add(time.Hour), q.Status(q.now).Held)
	}
}

// A refused caller waits for itself, and the host is up.
func TestRefusedCallerHoldsNoOther(t *testing.T) {
	q := down(t, line.Options{Rate: -1}, 1)
	q.after(time.Second)
	probe, _ := q.admit()
	require.False(t, q.Done(probe[0], limited, q.now))
	require.Equal(t, line.Status{Limit: 1, Granted: 2}, q.Status(q.now))
	require.Zero(t, q.dial(t, success))

	stopped := limited
	stopped.Class = backoff.ClassStop
	stopped.RetryAfter = 0
	for range 100 { // says nothing about the host or the caller
		require.Zero(t, q.dial(t, stopped))
	}
}

// A refused caller does not show that a host is up that has asked for a wait.
func TestRefusedCallerDuringHoldLeavesHostDown(t *testing.T) {
	q := newQueue(line.Options{Rate: -1})
	two := q.join(2)
	q.admit()
	q.done(closedForHour, two[0])
	require.True(t, q.Done(two[1], limited, q.now))
}

// Many refusals may mean the address of the process.
func TestManyRefusedCallersHoldAll(t *testing.T) {
	q := newQueue(line.Options{Rate: -1})
	for range 20 {
		require.Zero(t, q.dial(t, limited))
	}
	require.Equal(t, 16, q.Status(q.now).Limit)
	require.Zero(t, q.dial(t, limited))
	for range 20 {
		require.Equal(t, 1, q.Status(q.now).Limit)
		require.Equal(t, 5*time.Second, q.dial(t, limited))
		require.False(t, q.Status(q.now).Down)
	}
	// One more for each success, and for each 5 s.
	require.Equal(t, 5*time.Second, q.dial(t, success))
	require.Zero(t, q.dial(t, success))
	for range 3 {
		require.Zero(t, q.dial(t, limited))
	}
	require.Equal(t, 5*time.Second, q.dial(t, limited))
	q.after(15 * time.Second)
	for range 3 {
		require.Zero(t, q.dial(t, limited))
	}
	require.Equal(t, 5*time.Second, q.dial(t, limited))
	// No more than the burst are remembered.
	q.after(105 * time.Second)
	for range 21 {
		require.Zero(t, q.dial(t, limited))
	}
	require.Equal(t, 5*time.Second, q.dial(t, limited))
}

// What a host has let through, or refused, is known for an hour.
func TestHostThatLetDialThroughIsNotIdle(t *testing.T) {
	for _, v := range []backoff.Verdict{success, limited} {
		q := newQueue(line.Options{Rate: -1})
		q.dial(t, v)
		q.after(time.Hour - 1)
		require.Equal(t, v.Caller, q.Idle(q.now), "refusals are forgotten sooner")
		q.after(1)
		require.True(t, q.Idle(q.now))
	}
	q := newQueue(line.Options{Rate: -1})
	q.dial(t, limited)
	q.after(5*time.Second - 1)
	require.False(t, q.Idle(q.now))
	q.after(1)
	require.True(t, q.Idle(q.now))
}

// A dial that says nothing about the host gives its place back.
func TestADialThatWasGivenUpFreesItsPlace(t *testing.T) {
	q := newQueue(line.Options{Rate: -1, Concurrent: 1})
	q.join(2)
	one, _ := q.admit()
	require.Len(t, one, 1)
	q.done(aborted, one...)
	one, _ = q.admit()
	require.Len(t, one, 1)
	require.Equal(t, 1, q.Status(q.now).Dialing)
}

// A queue that is idle is forgotten, and with it what the server said.
func TestAHeldHostIsNotIdle(t *testing.T) {
	q := newQueue(line.Options{Rate: -1})
	q.join(1)
	one, _ := q.admit()
	q.done(backoff.Verdict{Class: backoff.ClassSlow, RetryAfter: time.Hour}, one...)
	q.after(time.Hour - 1)
	require.False(t, q.Idle(q.now))
	q.after(1)
	require.True(t, q.Idle(q.now))
}

func TestARetryAfterIsClamped(t *testing.T) {
	q := newQueue(line.Options{Rate: -1})
	one := q.join(1)
	q.admit()
	q.done(backoff.Verdict{Class: backoff.ClassSlow, RetryAfter: 24 * time.Hour}, one...)
	q.join(1)
	_, next := q.admit()
	require.Equal(t, backoff.MaxRetryAfter, next)
}

func TestAnAnswerMeansThatTheHostIsUp(t *testing.T) {
	q := newQueue(line.Options{Rate: -1})
	one := q.join(1)
	q.admit()
	q.done(rejected, one...)
	require.False(t, q.Status(q.now).Down)

	q = down(t, line.Options{Rate: -1}, 1)
	q.after(time.Second)
	probe, _ := q.admit()
	q.done(aborted, probe...)
	require.True(t, q.Status(q.now).Down, "a dial that was cancelled says nothing")
}

func TestTheWaitsAreVisible(t *testing.T) {
	q := newQueue(line.Options{Rate: -1, Concurrent: 1})
	q.join(3)
	one, _ := q.admit()
	q.after(time.Second)
	q.done(success, one...)
	q.admit()
	q.after(time.Second)
	s := q.Status(q.now)
	require.Equal(t, line.Status{Waiting: 1, Dialing: 1, Limit: 1, Longest: 2 * time.Second, Granted: 2}, s)
}

// A dial that was admitted before the host went down ends with a Retry-After, which is longer than the first wait for a probe.
func TestAProbeWaitsForTheRetryAfterOfAnEarlierDial(t *testing.T) {
	q := newQueue(line.Options{Rate: -1, Concurrent: 2})
	q.join(3)
	two, _ := q.admit()
	q.done(refused, two[0])
	q.done(backoff.Verdict{Class: backoff.ClassSlow, RetryAfter: time.Minute}, two[1])
	require.Equal(t, q.now.Add(time.Minute), q.Status(q.now).Probe)
	_, next := q.admit()
	require.Equal(t, time.Minute, next)
}

// 100,000 waiters cost no more each than 1,000.
func BenchmarkLine(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			q := newQueue(line.Options{Rate: -1, Concurrent: 1})
			tickets := q.join(n)
			b.ReportAllocs()
			for i := range b.N {
				t, _ := q.Admit(q.now)
				q.Done(t, success, q.now)
				k := i % n
				q.Leave(tickets[k])
				tickets[k] = q.Join(q.now)
				q.Join(q.now)
			}
		})
	}
}
