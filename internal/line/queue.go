// Package line has the queue of the dials to one host. A budget.Gate drives it, and so do the simulators of bench.
package line

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Queue is the queue of the dials to one host. It does not wait, and gets the time as an
// argument. It belongs to one goroutine.
//
//	t := q.Join(now)               // a dial waits to begin
//	admitted, next := q.Admit(now) // a dial that may begin now; call again at next, if that is not zero
//	q.Done(t, verdict, now)        // the dial has ended; or q.Leave(t), if it was not admitted yet
//
// After Join, Done and Leave another dial may begin, so call Admit.
//
// The host is taken to be up until a dial fails: see [Queue.Done]. While the host is down one dial at
// a time goes out, as a probe. After a probe has failed, the wait for the next one is the wait of a lone client
// (Probe), divided by the number of dials that wait. So the server gets no more dials than if each dialed for
// itself. There are three exceptions:
//
//   - The divided wait is at least a draw from 1 to 1.5 s, or the wait of the lone client if that is shorter.
//     The draw grows once the outage is older than 10 minutes: after half an hour it is from 3 to 4.5 s, and
//     after 100 minutes it is not shorter than any wait of [backoff.Default] after a refusal.
//   - The first wait of an outage, and a wait that follows a RetryAfter, are not divided: the server has dropped
//     other processes at the same instant, or has asked them to wait for the same time.
//   - If Probe gives up, the wait is a minute, and is not divided.
//
// When a probe succeeds, and with each success after it, one more dial may be under way at a time, until
// Concurrent is reached: the number doubles in the time that a dial takes. When the server asks one dial to wait,
// all wait, unless it has refused only a caller.
type Queue struct {
	o       Options
	limits  limits
	rand    *rand.Rand
	first   *Ticket // a ring in the order of Join; nil: none waits
	waiting int

	tokens   float64   // of the rate
	filled   time.Time // when they were counted
	under    int       // dials under way: admitted, and not done
	window   int       // how many may be; below Concurrent while the host is down or coming back
	down     bool
	outage   schedule.Outage // while down
	hold     time.Time       // no dial before this, because of what the server said
	failed   time.Time       // when the wait for the next probe begins
	alone    time.Duration   // how long it waits if one dial waits: what a lone client would
	least    time.Duration   // how long it waits at least, however many dials wait
	lastDone time.Time       // the time of the last Done
	maxHold  time.Duration   // longest hold by a RetryAfter, or 0 if no dial has succeeded yet
	refusals time.Time       // when no refused caller counts any more; each adds a refusalPause
	granted  uint64
}

// Options are the limits for one host. Concurrent adapts to a server, however fast or
// slow it is, because at most so many dials of this process wait at the server. Rate is a
// ceiling for a server that is very fast, or for a process that may use only a share of the server.
type Options struct {
	Rate       float64        // dials per second. Default 500. Negative: no limit
	Burst      int            // dials that may go out at once after a pause. Default 10
	Concurrent int            // dials under way at a time, OnSession included. Default 16. Negative: no limit
	Probe      backoff.Policy // the pace of probes while the host is down. Default backoff.Default()
}

// limits are the limits that are not options.
type limits struct {
	refusalBurst int           // refused callers that hold no dial
	refusalPause time.Duration // hold after each further one
	successHold  time.Duration // longest hold after a success
}

// usual are the limits of each Queue that New returns.
var usual = limits{refusalBurst: 20, refusalPause: 5 * time.Second, successHold: 10 * time.Second}

// Ticket is a dial that waits in a [Queue], or was admitted.
type Ticket struct {
	Value any // for the owner of the Queue, which does not use it

	Probe bool // admitted while the host was down; set by Admit

	joined     time.Time
	prev, next *Ticket // nil once it no longer waits
}

// New returns an empty Queue for a host that is up. Random numbers for the pace
// of probes come from r; nil: backoff.Rand(). A zero option has its default, and so has a
// Rate that is not a number or a negative Burst, which a Gate refuses.
func New(o Options, r *rand.Rand) *Queue {
	switch {
	case o.Rate == 0 || math.IsNaN(o.Rate):
		o.Rate = 500
	case math.IsInf(o.Rate, 1):
		o.Rate = -1
	}
	o.Burst = cmp.Or(max(o.Burst, 0), 10)
	o.Concurrent = cmp.Or(o.Concurrent, 16)
	if o.Concurrent < 0 || o.Concurrent > unlimited {
		o.Concurrent = unlimited
	}
	r = cmp.Or(r, backoff.Rand())
	return &Queue{o: o, limits: usual, rand: r, tokens: float64(o.Burst), window: o.Concurrent}
}

// Join puts a dial at the end of the line.
func (q *Queue) Join(now time.Time) *Ticket {
	t := &Ticket{joined: now}
	if q.first == nil {
		q.first, t.prev, t.next = t, t, t
	} else {
		t.prev, t.next = q.first.prev, q.first
		t.prev.next, t.next.prev = t, t
	}
	q.waiting++
	return t
}

// Leave takes t out of the line, and reports whether it was still waiting. If not, it has
// been admitted, and Done must be called.
func (q *Queue) Leave(t *Ticket) bool {
	if t.next == nil {
		return false
	}
	t.prev.next, t.next.prev = t.next, t.prev
	if q.waiting--; q.waiting == 0 {
		q.first = nil
	} else if q.first == t {
		q.first = t.next
	}
	t.prev, t.next = nil, nil
	return true
}

// Admit returns the next dial that may begin now, or nil. Call it until it returns nil;
// next is then the time at which another may begin, or zero if that does not depend on time.
func (q *Queue) Admit(now time.Time) (t *Ticket, next time.Time) {
	t = q.first
	if t == nil || q.under >= q.window {
		return nil, time.Time{}
	}
	if at := q.notBefore(now); at.After(now) {
		return nil, at
	}
	q.Leave(t)
	t.Probe = q.down
	if q.o.Rate > 0 {
		q.tokens--
	}
	q.under++
	q.granted++
	return t, time.Time{}
}

// notBefore returns when the next dial may go out.
func (q *Queue) notBefore(now time.Time) time.Time {
	at := now
	if q.o.Rate > 0 {
		if !q.filled.IsZero() {
			q.tokens = min(q.tokens+float64(now.Sub(q.filled).Seconds()*q.o.Rate), float64(q.o.Burst)) // rounded, so that all machines do the same
		}
		q.filled = now
		if q.tokens < 1 {
			wait := min((1-q.tokens)/q.o.Rate, slowest.Seconds())
			at = now.Add(time.Duration(wait*float64(time.Second)) + 1) // not a nanosecond too early
		}
	}
	if at.Before(q.hold) {
		at = q.hold
	}
	if q.down {
		if probe := q.pace(); at.Before(probe) {
			at = probe
		}
	}
	return at
}

// pace returns when the next probe may go out, if the host is down.
func (q *Queue) pace() time.Time {
	shared := max(q.alone/time.Duration(max(q.waiting, 1)), q.least)
	return q.failed.Add(min(shared, q.alone))
}

// Done ends the dial of t, which was admitted, with its verdict, and reports whether the host is down:
//
//   - ClassRetry (such as refused, reset, lost, 500) and ClassOverload (such as a timeout,
//     429, 503) count against the host. The host is down from then on, and the next dial is a
//     probe. Of the dials that were under way when the host went down only the first counts.
//   - ClassOK means that the host is up. While the host is coming back, one more dial than
//     before may be under way.
//   - ClassRefresh and ClassSlow (such as 401, 404, a certificate that does not verify)
//     are answers, so that the host is up too, although the dial was of no use.
//   - ClassStop says nothing about the host: the dial was cancelled, or would have
//     failed anywhere.
//
// With any class a RetryAfter, at most [backoff.MaxRetryAfter], holds all dials to the
// host. Until it is over, an answer does not mean that a host that was down is up. After a
// success it is at most successHold, also if it began before the success; the limit doubles
// with each RetryAfter until the next success.
//
// A verdict with Caller is an answer, and its RetryAfter holds no other dial. More than
// refusalBurst of these hold all dials for refusalPause each, because the server may limit
// the address of the process. Each success and each refusalPause takes one off.
func (q *Queue) Done(t *Ticket, v backoff.Verdict, now time.Time) (down bool) {
	q.under--
	q.lastDone = now
	refused := v.Caller && v.Class != backoff.ClassStop
	if refused {
		v = backoff.Verdict{Class: backoff.ClassSlow} // the host is up, and only the caller has to wait
	}
	if v.RetryAfter > 0 {
		v.RetryAfter = q.holdFor(v.RetryAfter, now)
	}
	if v.Class == backoff.ClassOK {
		q.maxHold = q.limits.successHold
		q.refusals = q.refusals.Add(-q.limits.refusalPause)
		if end := now.Add(q.maxHold); q.hold.After(end) {
			q.hold = end
			// The wait that the policy drew was a share of the longer hold.
			q.failed, q.alone, q.least = now, min(q.alone, q.maxHold), min(q.least, q.maxHold)
		}
	}
	switch v.Class {
	case backoff.ClassRetry, backoff.ClassOverload:
		q.fail(t, v, now)
	case backoff.ClassStop:
	default:
		// The host is up, unless it was down and has asked us to wait. Then the next dial is a probe, so that
		// it does not come at the very instant at which that wait is over.
		q.down = q.down && q.hold.After(now)
		if v.Class == backoff.ClassOK && !q.down {
			q.window = min(q.window+1, q.o.Concurrent)
		}
	}
	if refused {
		q.refuse(now)
	}
	return q.down
}

// holdFor holds the host for a RetryAfter, and returns for how long. After a success that is short at first,
// because the host lets others through. It doubles until the next success, because the host may not do so any more.
func (q *Queue) holdFor(retryAfter time.Duration, now time.Time) time.Duration {
	wait := min(retryAfter, backoff.MaxRetryAfter)
	if q.maxHold > 0 {
		wait = min(wait, q.maxHold)
		q.maxHold = min(2*q.maxHold, backoff.MaxRetryAfter)
	}
	q.holdUntil(now.Add(wait))
	return wait
}

// refuse counts a refused caller. More than a burst of them may mean that the server limits the address of all:
// then one dial goes out after each refusalPause.
func (q *Queue) refuse(now time.Time) {
	pause := q.limits.refusalPause
	burst := now.Add(time.Duration(q.limits.refusalBurst) * pause)
	if q.refusals.Before(now) {
		q.refusals = now
	}
	q.refusals = q.refusals.Add(pause)
	if q.refusals.After(burst) {
		q.refusals = burst.Add(pause)
		q.window = 1
		q.holdUntil(now.Add(pause))
	}
}

// holdUntil holds all dials until t.
func (q *Queue) holdUntil(t time.Time) {
	if t.After(q.hold) {
		q.hold = t
	}
}

// noProbe is the time to the next probe where Options.Probe gives up, or does not return.
const noProbe = time.Minute

// fail takes the host to be down. Of the dials that were under way when it went down only
// the first counts. If the server told another of these dials to wait, the next probe comes
// after that wait and the wait that was drawn, because the server told other processes the
// same, and they must not all come at one instant.
func (q *Queue) fail(t *Ticket, v backoff.Verdict, now time.Time) {
	if q.down && !t.Probe {
		if q.pace().Before(q.hold) {
			q.failed, q.least = q.hold, q.alone
		}
		return
	}
	first := !q.down
	if first {
		q.down, q.outage = true, schedule.Outage{}
		q.outage.Begin(now)
	}
	q.window = 1
	q.failed, q.alone, q.least = now, noProbe, noProbe // hold if Probe panics
	step, ok := q.outage.Next(q.o.Probe, v, now, q.rand)
	if !ok {
		step.Wait = noProbe // a gate does not give up
	}
	h := q.outage.History()
	q.failed, q.alone, q.least = now.Add(h.Verdict.RetryAfter), step.Wait, step.Wait
	if ok && !first && h.Verdict.RetryAfter == 0 {
		age := max(1, h.Elapsed.Seconds()/prompt.Seconds())
		q.least = backoff.Uniform(q.rand, time.Duration(age*float64(time.Second)), time.Duration(age*float64(1500*time.Millisecond)))
	}
}

// prompt is how old an outage may be before its probes become rarer, however many dials wait.
const prompt = 10 * time.Minute

// Status is a snapshot of a [Queue].
type Status struct {
	Waiting int           // dials that wait
	Dialing int           // dials that were admitted and are not done
	Limit   int           // how many dials may be under way now
	Longest time.Duration // how long the first of the waiting dials has waited
	Granted uint64        // how many dials were admitted so far
	Down    bool          // the host is down: one dial at a time goes out, as a probe
	Held    time.Time     // no dial before this, because of what the server said; zero or past: not held
	Probe   time.Time     // while Down: no probe before this, as long as no dial joins; past: a probe may begin, or is under way
}

// Status returns a snapshot of the line.
func (q *Queue) Status(now time.Time) Status {
	s := Status{
		Waiting: q.waiting, Dialing: q.under, Limit: q.window, Granted: q.granted,
		Down: q.down, Held: q.hold,
	}
	if q.first != nil {
		s.Longest = now.Sub(q.first.joined)
	}
	if q.down {
		s.Probe = q.pace()
		if s.Probe.Before(q.hold) {
			s.Probe = q.hold
		}
	}
	return s
}

// First returns the first dial in the line, which is the next to be admitted, or nil if none waits.
func (q *Queue) First() *Ticket { return q.first }

// unlimited is as many dials at a time as a Queue can count.
const unlimited = 1 << 30

// slowest is the longest time between two dials, whatever the rate.
const slowest = 365 * 24 * time.Hour

// stale is how long after the last dial the state of a host is forgotten.
const stale = backoff.MaxRetryAfter

// Idle reports whether a new Queue could take the place of this one: no dial waits or is
// under way, and nothing is known of the host, or nothing that is still valid.
func (q *Queue) Idle(now time.Time) bool {
	if q.first != nil || q.under > 0 || q.hold.After(now) || q.down && q.pace().After(now) {
		return false
	}
	if now.Sub(q.lastDone) >= stale {
		return true
	}
	if q.maxHold > 0 || q.refusals.After(now) {
		return false
	}
	q.notBefore(now)
	return !q.down && q.window == q.o.Concurrent && q.tokens >= float64(q.o.Burst)
}
