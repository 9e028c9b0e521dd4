package meter

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/subscription"
)

// member is one connection that is measured.
type member struct {
	meter  *Meter
	key    Key
	number uint64                      // among all members
	conn   *reconnect.Conn             // nil: a Run
	sets   []func() subscription.Stats // of its subscriptions

	mu      sync.Mutex       // guards what follows
	newest  uint64           // the newest session that was ready; 0: none was. An older one is only read to its end
	ready   bool             // newest is still ready
	since   time.Time        // when newest ended; or since when there is none
	lost    bool             // newest has ended
	planned bool             // newest has ended because it was replaced
	losses  [flaps]time.Time // when sessions were lost: a ring
	next    int              // the place of the next loss in losses
	failed  int              // how many dials have failed since a rotation began or newest was ready
	last    Counts           // the largest counts that were reported
	final   bool             // last has the final counts

	buried bool // it is in meter.dead, or must not get into it any more; guarded by meter.mu
}

// A connection is flapping if it was lost so many times in so short a time.
const (
	flaps    = 5
	flapTime = 15 * time.Minute
)

// patientDials is how many dials of a rotation may fail before it counts as failing. reconnect.Log warns then.
const patientDials = 3

// hooks returns the hooks of the member. If more is not nil, its hooks run first.
func (x *member) hooks(more *reconnect.Trace) *reconnect.Trace {
	t := &reconnect.Trace{
		GateDone: func(e reconnect.GateDone) {
			outcome, _ := Judge(e.Err)
			x.observe(gateWait, e.Took, outcome)
		},
		DialHung: func(reconnect.DialHung) { x.add(dialsHung) },
		DialDone: func(e reconnect.DialDone) {
			outcome, reason := Judge(e.Err)
			x.add(dials, outcome, reason)
			x.observe(dialDuration, e.Took, outcome)
		},
		SessionStart: func(*reconnect.Session) { x.add(sessions) },
		SessionReady: x.sessionReady,
		SessionDone:  x.sessionDone,
		RotateStart:  func(reconnect.RotateStart) { x.dialsFailed(0) },
		RotateDone: func(e reconnect.RotateDone) {
			outcome := Replaced
			if e.Err != nil {
				outcome = Failed
			}
			x.add(rotations, outcome)
		},
		WaitStart: func(e reconnect.WaitStart) { x.dialsFailed(e.Try - 1) },
		WaitDone:  func(e reconnect.WaitDone) { x.observe(waitDuration, e.Took) },
		ProbeDone: func(e reconnect.ProbeDone) {
			outcome, _ := Judge(e.Err)
			x.add(probes, outcome)
			if outcome == OK {
				x.observe(probeDuration, e.Took)
			}
		},
		SlowHandler: func(reconnect.SlowHandler) { x.add(slowHandlers) },
		Overdue:     func(e reconnect.Overdue) { x.add(overdue, function(e.What)) },
		ConnDone:    x.end,
	}
	if more == nil {
		return t
	}
	return reconnect.JoinTraces(more, t)
}

// begin notes the status when the hooks are set. The status is no older than the events that have come
// until now. An event that the status includes already may still come, which does no harm.
func (x *member) begin() {
	if byItself(x.conn.Err()) {
		x.meter.bury(x)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	status := x.conn.Status()
	if status.State == reconnect.StateReady {
		x.up(status.Session)
	} else if x.since.IsZero() {
		x.since = status.Since
	}
}

// up notes that a session is ready. x.mu is locked.
func (x *member) up(session uint64) {
	if session >= x.newest {
		x.newest, x.ready, x.lost, x.failed = session, true, false, 0
	}
}

func (x *member) add(i *Instrument, v ...string) { x.meter.recorder.Add(i, x.key, values(v)) }

func (x *member) observe(i *Instrument, d time.Duration, v ...string) {
	x.meter.recorder.Observe(i, x.key, values(v), d.Seconds())
}

func values(list []string) (v Values) {
	copy(v[:], list)
	return v
}

// dialsFailed notes how many dials have failed.
func (x *member) dialsFailed(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failed = n
}

func (x *member) sessionReady(s *reconnect.Session) {
	x.mu.Lock()
	outage, planned := time.Duration(-1), x.planned
	if x.lost {
		outage = time.Since(x.since)
	}
	x.up(s.Number)
	x.mu.Unlock()
	x.add(sessionsReady)
	if outage >= 0 {
		x.observe(outageDuration, outage, yes(planned))
	}
}

func (x *member) sessionDone(e reconnect.SessionDone) {
	x.mu.Lock()
	wasReady := e.Ready > 0 || e.Session == x.newest && x.ready
	shutdown := e.Reason == backoff.ReasonShutdown
	if wasReady && e.Session >= x.newest {
		x.newest, x.ready = e.Session, false
		x.since, x.lost, x.planned = time.Now(), true, e.Planned
	}
	if wasReady && !shutdown && !e.Planned {
		x.losses[x.next] = time.Now()
		x.next = (x.next + 1) % flaps
	}
	x.mu.Unlock()
	x.observe(sessionDuration, e.Uptime, e.Reason.String())
	if wasReady && !shutdown {
		x.add(seams, yes(e.Planned))
	}
}

func (x *member) end(e reconnect.ConnDone) {
	asked := errors.Is(e.Err, net.ErrClosed) || errors.Is(e.Err, context.Canceled) || e.Err == context.DeadlineExceeded
	if asked && !byItself(e.Err) {
		x.add(ends, Closed)
		return
	}
	x.add(ends, Failed)
	x.meter.bury(x)
}

// byItself reports whether a Conn that has ended with err was not closed by the program.
func byItself(err error) bool {
	_, itself := errors.AsType[*reconnect.EndError](err) // which is net.ErrClosed too
	return itself
}

// Judge returns the labels outcome and reason for the error of a dial, a probe or a wait at the gate.
func Judge(err error) (outcome, reason string) {
	canceled := errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed)
	switch {
	case err == nil:
		return OK, None
	case canceled && !errors.Is(err, context.DeadlineExceeded):
		return Canceled, None
	}
	return Failed, backoff.ReasonOf(err).String()
}

func yes(b bool) string {
	if b {
		return Yes
	}
	return No
}

// The rest is for Collect.

// read adds the connection to t. If the connection has ended, its counts are the last ones.
func (x *member) read(t *Totals) {
	ended := x.conn.Err() != nil // before the counts are read, so that they are the last
	status, stats, subs := x.conn.Status(), x.conn.Stats(), x.subscriptions()
	counts, gone := x.settle(countsOf(stats, subs), ended)
	t.Counts.add(counts)
	switch {
	case ended:
		x.meter.leave(x, counts)
	case !gone && status.State != reconnect.StateClosed:
		t.live(status, stats, len(x.sets), subs, x.away(status))
		if x.flapping() {
			t.Flapping++
		}
		if x.rotationFails(status) {
			t.Failing++
		}
	}
}

// retire ends the measuring of the counts of the connection.
func (x *member) retire() {
	last, _ := x.settle(countsOf(x.conn.Stats(), x.subscriptions()), true)
	x.meter.leave(x, last)
}

// flapping reports whether the connection is lost again and again.
func (x *member) flapping() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	oldest := x.losses[x.next]
	return !oldest.IsZero() && time.Since(oldest) < flapTime
}

// rotationFails reports whether a rotation has been failing, while the session that it is to replace is ready.
func (x *member) rotationFails(status reconnect.Status) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return status.Rotating && status.State == reconnect.StateReady && x.failed >= patientDials
}

// subscriptions returns the sums over all sets.
func (x *member) subscriptions() (sum subscription.Stats) {
	for _, stats := range x.sets {
		s := stats()
		sum.Wanted += s.Wanted
		sum.Held += s.Held
		sum.Refusals += s.Refusals
		sum.Unanswered += s.Unanswered
	}
	return sum
}

// settle returns the counts to report, which never go down. gone reports whether the counts were final
// before this call; if final is set, they are final from now on.
func (x *member) settle(now Counts, final bool) (counts Counts, gone bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	gone = x.final
	if !gone {
		x.last.raise(now)
		x.final = final
	}
	return x.last, gone
}

// away returns since when no session has been ready, and a zero time if one is.
func (x *member) away(status reconnect.Status) time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	if status.State == reconnect.StateReady || x.ready {
		return time.Time{}
	}
	return x.since
}
